"""The matrix product alpha·A·B + beta·C: its reference, cached on disk, and its trials."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from functools import partial, reduce
from operator import iadd
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matbench.cache import Cache, digest
from matbench.model import EIGHT_BITS, INTEGERS, UNIT_ROUNDOFF, NumericContract, Problem, Storage
from matbench.workloads import doubled, scaling
from matbench.workloads.oracle import (
    SIGNIFICAND_BITS,
    Array,
    Float32,
    Float64,
    Trial,
    Trials,
    Typical,
    draw,
    generator,
    least,
    read_as,
)
from matbench.workloads.rounding import LARGEST, numbers, rounded

#: Products are computed by parts of so many numbers: larger ones leave the cache.
PART = 2**21
#: The largest number of inputs of a type, for which the float64 reference has no rounding error.
_LARGEST_DRAWN: dict[Storage, int] = {"int8": 127, "int32": 2**17}
#: The largest of small whole numbers, which all types of 16 bits or more have.
LARGEST_WHOLE = 8
#: The contract of most kernels.
FLOAT32 = NumericContract()


def trials(problem: Problem, contract: NumericContract, cache: Cache) -> Trials:
    """All kinds but samples; the product is computed once, or twice if inputs are rounded or get
    random signs."""
    is_rounded = contract.precision not in ("float32", "float64", *EIGHT_BITS, *INTEGERS)
    as_given = not is_rounded and least(contract) == 0
    given = reference_trial(problem, cache, contract)
    reference = given if as_given else rounded_trial(given, contract, cache)
    # C before the launch: numbers that all types can represent.
    added: Float32 | None = None
    if contract.reads_C or problem.beta != 0:
        whole = generator(problem, "C").integers(-64, 65, (problem.M, problem.N))
        added = (whole / (1 if contract.result == "int32" else 8)).astype(np.float32)

    others: list[Callable[[], Trial]] = [partial(integer_trial, problem, contract)]
    if contract.storage in (*EIGHT_BITS, *INTEGERS):
        others += [partial(numbers_trial, problem, contract, name) for name in "AB"]
    completed = of_problem(reference, problem, added, contract)
    return Trials(
        completed,
        of_problem(given, problem, added, contract) if is_rounded else None,
        [lambda make=make: of_problem(make(), problem, added, contract) for make in others],  # type: ignore[misc]
        _signed_trial(problem, contract, reference, completed, cache),
    )


def inputs(problem: Problem, contract: NumericContract = FLOAT32) -> tuple[Array, Array]:
    """The seeded inputs A (M×K) and B (K×N): float64 for kernels that read it, or float32.

    For kernels that read 8 bits or whole numbers, they are numbers that these can represent.
    """
    wide, storage = contract.precision == "float64", contract.storage
    rows, columns = (problem.M, problem.K), (problem.K, problem.N)
    with ThreadPoolExecutor(2) as at_once:
        A, B = at_once.map(partial(draw, problem, wide=wide), "AB", rows, columns)
        for values in (A, B) if storage in INTEGERS else ():
            largest = _LARGEST_DRAWN[storage]
            values *= (largest + 1) // 4 if problem.inputs == "normal" else largest
            np.clip(values, -largest, largest, out=values)
        if storage in (*EIGHT_BITS, *INTEGERS):
            A, B = at_once.map(rounded, (A, B), (storage, storage))
    return A, B


def operands(problem: Problem, contract: NumericContract, trial: Trial) -> tuple[Array, Array]:
    """The factors of the product: A and B, or with their scales in float64."""
    if trial.scales is None:
        A, B = trial.inputs
        return A, B
    A, B = (
        matrix.astype(np.float64) * scaling.spread(factors, contract.scales, name, problem)
        for name, matrix, factors in zip("AB", trial.inputs, trial.scales, strict=True)
    )
    return A, B


def of_problem(
    trial: Trial, problem: Problem, C: Float32 | None, contract: NumericContract
) -> Trial:
    """Turns the trial of A·B into that of alpha·A·B + beta·C."""
    if _is_scaled(problem):
        alpha, added = problem.alpha, 0.0 if C is None else problem.beta * C.astype(np.float64)
        R, S = trial.sums
        trial = trial._replace(R=alpha * R + added, S=abs(alpha) * S + np.abs(added))
    if trial.R is not None and contract.result == "int32":
        trial = trial._replace(R=wrapped(trial.R))
    return trial._replace(C=C)


def wrapped(R: Float64) -> Float64:
    """Sums of int32, which are modulo 2³²."""
    return R - 2.0**32 * np.floor((R + 2.0**31) / 2.0**32)


def _is_scaled(problem: Problem) -> bool:
    """Whether alpha and beta round the result."""
    return problem.alpha != 1 or problem.beta != 0


def product(
    A: Array, B: Array, cache: Cache, least: float = 0.0, *, twice: bool = False
) -> tuple[Float64, Float64]:
    """R = A·B and S = |A||B| in float64, computed once for these inputs and cached on disk.

    In S, inputs count as at least `least`. If no input is smaller, S is the same array as R.
    With `twice`, it is computed in twice the precision and rounded once.
    """
    exact = doubled.product if twice else in_float64
    R = _kept("R twice" if twice else "R", A, B, cache, partial(exact, A, B))
    if not (least > A).any() and not (least > B).any():
        return R, R
    sizes = partial(in_float64, A, B, lambda part: np.maximum(np.abs(part), least))
    return R, _kept(f"S/{least}" if least else "S", A, B, cache, sizes)


def in_float64(A: Array, B: Array, of: Callable[[Array], Array] = np.asarray) -> Float64:
    """of(A) · of(B) in float64, by parts of the terms, so that no long matrix is copied as a
    whole."""
    (M, K), N = A.shape, B.shape[1]
    step = max(1, min(M, N), PART // max(M, N))
    places = (slice(k, k + step) for k in range(0, K, step))
    parts = (of(A[:, k]).astype(np.float64) @ of(B[k]).astype(np.float64) for k in places)
    return reduce(iadd, parts)


def _kept(what: str, A: Array, B: Array, cache: Cache, make: Callable[[], Float64]) -> Float64:
    given = [np.ascontiguousarray(matrix) for matrix in (A, B)]
    digests = [(matrix.shape, matrix.dtype.str, digest(matrix.data.cast("B"))) for matrix in given]
    data = cache.get_or_make(f"product/4/{what}/{digests}", lambda: make().data.cast("B"))
    return np.frombuffer(data, np.float64).reshape(A.shape[0], B.shape[1])


def reference_trial(problem: Problem, cache: Cache, contract: NumericContract = FLOAT32) -> Trial:
    """The problem's own inputs with their product."""
    trial = Trial("reference", inputs(problem, contract))
    if contract.scales is not None:
        of_A, of_B = (scaling.drawn(contract, name, problem) for name in "AB")
        trial = trial._replace(scales=(of_A, of_B))
    return _with_product(trial, problem, contract, cache)


def _with_product(trial: Trial, problem: Problem, contract: NumericContract, cache: Cache) -> Trial:
    """The trial with R, and with S unless it has that."""
    power = None if trial.scales is None else _power(problem, contract, trial)
    A, B = trial.inputs if power is not None else operands(problem, contract, trial)
    if trial.S is not None:
        R = _kept("R", A, B, cache, partial(in_float64, A, B))
        return trial._replace(R=R if power is None else R * power)
    R, S = product(A, B, cache, twice=contract.precision == "float64")
    if power is not None:
        scaled = R * power
        R, S = scaled, scaled if S is R else S * power
    return trial._replace(R=R, S=S)


def _power(problem: Problem, contract: NumericContract, trial: Trial) -> Float64 | None:
    """What the scales multiply each element of C by; None if they differ between its terms."""
    assert trial.scales is not None
    has_powers = trial.name in ("integers", "selection")
    if scaling.GROUPS[contract.scales].terms < problem.K and not has_powers:
        return None
    of_A, of_B = (
        scaling.spread(factors, contract.scales, name, problem)
        for name, factors in zip("AB", trial.scales, strict=True)
    )
    return of_A[:, :1].astype(np.float64) * of_B[:1]


def rounded_trial(trial: Trial, contract: NumericContract, cache: Cache) -> Trial:
    """The same inputs rounded to the precision that a kernel declares, with their product.

    Inputs below the kernel's range of exponents may have errors as large as at the range's end.
    """
    A, B = (read_as(matrix, contract) for matrix in trial.inputs)
    R, S = product(A, B, cache, least(contract))
    return trial._replace(inputs=(A, B), R=R, S=S)


def _signed_trial(
    problem: Problem, contract: NumericContract, trial: Trial, completed: Trial, cache: Cache
) -> Trial | None:
    """The reference trial with a random sign for each input; as it is if it has random signs.

    Then sums are so small that rounded inputs, or a sum that is left out, show at any K. None for
    kernels that round their inputs to a lower precision; for float64 sums, which are far more
    precise than their reference; for int32 sums, which are exact; and for scales of blocks, as a
    few blocks may outweigh all others.
    """
    if not has_typical_sums(contract):
        return None

    norms: list[Float64] = []
    for matrix, kept in zip(operands(problem, contract, trial), "ij", strict=True):
        size = np.maximum(np.abs(matrix), least(contract)) if least(contract) else matrix
        norms.append(np.sqrt(np.einsum("ij,ij->" + kept, size, size, dtype=np.float64)))
    norms[0] *= abs(problem.alpha) / np.sqrt(problem.K)
    if problem.inputs != "uniform":
        return completed._replace(norms=(norms[0], norms[1]))
    given: list[Array] = []
    for matrix, name in zip(trial.inputs, "AB", strict=True):
        drawn = generator(problem, f"signs of {name}").bytes(-(-matrix.size // 8))
        bits = np.unpackbits(np.frombuffer(drawn, np.uint8), count=matrix.size)
        given.append(matrix * (1 - 2 * bits.reshape(matrix.shape).view(np.int8)))
    signed = trial._replace(name="signed", inputs=tuple(given))
    signed = _with_product(signed, problem, contract, cache)
    signed = of_problem(signed, problem, completed.C, contract)
    return signed._replace(S=completed.S, norms=(norms[0], norms[1]))


def has_typical_sums(contract: NumericContract) -> bool:
    """Whether sums of terms with random signs are held to the bound of their typical size."""
    known = contract.precision in ("float32", *EIGHT_BITS) and contract.scales != "blocks"
    return known and contract.sums_in != "float64" and contract.result != "int32"


class DrawnOrder(NamedTuple):
    """What `draw_order` of `samples.cu` draws for rows, then columns, then terms: the origin of
    each and its factor; and which term rows and columns select, or less than -1 for sparse rows.
    """

    origin: npt.NDArray[np.int32]
    factor: Float32
    selects: npt.NDArray[np.int32]


def sample_trial(
    problem: Problem, contract: NumericContract, given: Trial, made: Trial, order: DrawnOrder
) -> Trial:
    """What is expected of the inputs in `made`, into which the device changed those of `given`.

    If a row or column selects a single term, S is 0 there: C must match to the last bit, unless
    `selection_of` says otherwise.
    """
    M, N = problem.M, problem.N
    moved = np.ix_(order.origin[:M], order.origin[M : M + N])
    power = np.outer(order.factor[:M], order.factor[M : M + N]).astype(np.float64)
    A, B = (matrix.astype(np.float64) for matrix in operands(problem, contract, made))
    C = None if given.C is None else (given.C[moved] * power).astype(np.float32)
    added = np.zeros((M, N)) if C is None else problem.beta * C.astype(np.float64)
    R, S = problem.alpha * (A @ B) + added, given.sums[1][moved] * np.abs(power)
    sparse = order.selects[:M] < -1
    rows = problem.alpha * A[sparse]
    S[sparse] = np.abs(rows) @ np.abs(B) + np.abs(added[sparse])
    single = (order.selects[:M, np.newaxis] >= 0) | (order.selects[M : M + N] >= 0)
    selection = selection_of(problem, contract)
    size = np.abs(power) if selection is Selection.SPLIT else np.abs(added)
    S[single] = 0 if selection is Selection.EXACT else np.maximum(np.abs(R), size)[single]
    typical = None
    if given.norms is not None:
        T = np.outer(*given.norms)[moved] * np.abs(power)
        T[sparse] = np.sqrt(rows**2 @ B**2)
        T[single] = np.inf
        typical = Typical(T, sparse, np.abs(added))
    rounded = single & (selection is Selection.ROUNDED)
    if contract.result == "int32":
        R = wrapped(R)
    return made._replace(R=R, S=S, C=C, typical=typical, single=rounded)


class Selection(IntEnum):
    """How exact a selected term must be, as `matrix_compare` of `samples.cu` is told."""

    #: Inputs are split, or small ones may be below the range of exponents: within the error bound
    #: of a term of size 1.
    SPLIT = -1
    #: Alpha, beta or a type rounds it: within its error bound.
    ROUNDED = 0
    #: To the last bit.
    EXACT = 1


def selection_of(problem: Problem, contract: NumericContract) -> Selection:
    """How exact a term must be that a row or column selects."""
    if not contract.exact or contract.exponents[0] > -126:
        return Selection.SPLIT
    bits = SIGNIFICAND_BITS[contract.precision]
    fits = max(UNIT_ROUNDOFF[kind] for kind in (contract.sums_in, contract.result)) <= 2.0**-bits
    is_scaled = _is_scaled(problem) or contract.scales is not None
    return Selection.EXACT if fits and not is_scaled else Selection.ROUNDED


def integer_trial(problem: Problem, contract: NumericContract = FLOAT32) -> Trial:
    """Integers for which every partial sum is exact in any order: Σ|a·b| ≤ 2²⁴.

    B is an outer product x·yᵀ, so that the exact C = (A·x)·yᵀ needs no matrix product. With sums or
    results of 16 bits, with alpha or beta, or if the kernel is not `exact`, C may have rounding
    errors, within the error bound of the reference trial.
    """
    random = generator(problem, "integers")
    M, N, K = problem.M, problem.N, problem.K
    bits = 14 if "float16" in (contract.sums_in, contract.result) else 24
    if contract.sums_in == "float22":
        bits = 12
    most = 2 ** (bits - 2)
    y = random.choice(np.array([-3, -2, -1, 1, 2, 3], np.float32), N)
    x = random.choice(np.array([-1, 1], np.float32), K)
    x[most:] = 0  # with more terms, even sums of ones would not be exact
    widest = 2 ** min(24, SIGNIFICAND_BITS[contract.precision]) - 1
    largest = max(1, min(4096, widest, 2**bits // (3 * min(K, most))))
    whole = random.integers(-largest, largest, (M, K), dtype=np.int16, endpoint=True)
    whole[random.integers(8, size=(M, K), dtype=np.uint8) == 0] = 0
    A = whole.astype(np.float32)
    with np.errstate(invalid="ignore"):  # a kernel on this CPU may have left its flag set
        B, C = np.outer(x, y), np.outer(A @ x, y)  # exact in float32, in any order of summation
    if contract.precision == "float64":
        A, B = A.astype(np.float64), B.astype(np.float64)
    wide = ("float22", "float32", "float64", "int32")
    trial, power = _with_powers(Trial("integers", (A, B)), problem, contract, random)
    C = C * power
    exact = contract.exact and contract.sums_in in wide and not _is_scaled(problem)
    if exact and contract.result in ("float32", "int32"):
        return trial._replace(exact=C.astype(contract.result))
    S = np.outer((np.abs(A) @ np.abs(x)).astype(np.float64), np.abs(y))
    if exact and contract.result == "float64":
        S = np.zeros_like(S)
    return trial._replace(R=C.astype(np.float64), S=S * power)


def takes_whole_numbers(problem: Problem, contract: NumericContract) -> bool:
    """Whether a product of `whole_numbers` has no rounding error, and needs nothing else."""
    sums = contract.sums_in, contract.result
    return (
        contract.exact
        and contract.scales is None
        and not contract.reads_C
        and all(kind in ("float32", "float64") for kind in sums)
        and contract.storage in ("float32", "float64", "float16", "bfloat16")
        and problem.batch == 1
        and problem.K <= 2**24 // LARGEST_WHOLE**2
        and not _is_scaled(problem)
    )


def whole_numbers(problem: Problem, key: int) -> tuple[Array, Array]:
    """A and B of small whole numbers, which a key determines, as int8."""
    random = np.random.default_rng(key)
    M, N, K = problem.M, problem.N, problem.K
    most = LARGEST_WHOLE
    A, B = (random.integers(-most, most + 1, shape, np.int8) for shape in ((M, K), (K, N)))
    return A, B


def wrong_rows(A: Array, B: Array, C: Array, key: int) -> Array:
    """The rows of C that are not those of A·B, all of whole numbers, by a product with a random
    vector (Freivalds, "Probabilistic machines can use less running time", 1977): a wrong row is
    missed with a probability of at most 1 in 2^20."""
    x = np.random.default_rng([key, 1]).integers(2**20, size=C.shape[1])
    expected = A.astype(np.int64) @ (B.astype(np.int64) @ x)
    with np.errstate(invalid="ignore"):  # NaN becomes some number
        whole = C.astype(np.int64)
    return np.flatnonzero((whole @ x != expected) | (whole != C).any(axis=1))


def numbers_trial(problem: Problem, contract: NumericContract, of: str) -> Trial:
    """Any of the finite numbers of a type in A or in B, of which the other selects some.

    C must match to the last bit, or within what alpha, beta and its type round.
    """
    random = generator(problem, f"numbers of {of}")
    M, N, K = problem.M, problem.N, problem.K
    shape, count = ((M, K), N) if of == "A" else ((N, K), M)
    kind = np.float64 if contract.storage == "int32" else np.float32
    if contract.storage == "int32":
        largest = int(LARGEST["int32"])
        drawn = random.integers(-largest, largest, shape, endpoint=True).astype(kind)
    else:
        every = numbers(contract.storage)
        every = every[np.isfinite(every)].astype(kind)
        both = np.concatenate([every, -every])
        drawn = both[random.integers(both.size, size=shape, dtype=np.int16)]
    terms = random.integers(K, size=count)
    signs = random.choice(np.array([-1, 1], kind), count)
    selecting = np.zeros((count, K), kind)
    selecting[np.arange(count), terms] = signs
    C = drawn[:, terms] * signs
    A, B = (drawn, selecting) if of == "A" else (selecting, drawn)
    given = Trial("selection", (A, np.ascontiguousarray(B.T)))
    trial, power = _with_powers(given, problem, contract, random)
    R = (C if of == "A" else C.T) * power
    if not _is_scaled(problem) and contract.result in ("float32", "int32"):
        return trial._replace(exact=np.ascontiguousarray(R).astype(contract.result))
    return trial._replace(R=R.astype(np.float64), S=np.abs(R).astype(np.float64))


def _with_powers(
    trial: Trial, problem: Problem, contract: NumericContract, random: np.random.Generator
) -> tuple[Trial, Float64 | float]:
    """The trial with scales, if it needs some, and what these multiply C by: powers of two."""
    if contract.scales is None:
        return trial, 1.0
    of_A, of_B = (scaling.powers(random, contract, name, problem) for name in "AB")
    trial = trial._replace(scales=(of_A, of_B))
    power = _power(problem, contract, trial)
    assert power is not None
    return trial, power
