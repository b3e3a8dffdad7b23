"""Expected results: seeded inputs, the C that they must give, and the error bound.

A `Trial` is one set of inputs with its expected C. Every workload uses some of these kinds on each
problem, named after their checks:

- *reference*: the problem's own inputs; each element must be within the error bound of the float64
  result R, or equal to the exact one.
- *integers*: positive and negative integers, and zeros, so small that every float32 sum of them is
  exact. C must match to the last bit.
- *selection*: one input selects elements of the other. C must match to the last bit, so that a
  kernel cannot round its inputs unnoticed.
- *sample*: other inputs whose result follows from the reference trial's; new ones for each timed
  launch. The device makes them; they are read back to explain errors.
"""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.cache import Cache
from matbench.model import (
    EIGHT_BITS,
    INTEGERS,
    U32,
    UNIT_ROUNDOFF,
    Kernel,
    NumericContract,
    Precision,
    Problem,
)
from matbench.records.outcome import Accuracy
from matbench.workloads.rounding import FORMATS

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

#: Bits of a precision's significand, including the hidden one.
SIGNIFICAND_BITS: dict[Precision, int] = {
    **{kind: bits for kind, (bits, *_) in FORMATS.items()}, "tf32": 11, "int32": 31, "int8": 7
}  # fmt: skip


class Typical(NamedTuple):
    """The typical size of sums whose terms have random signs, in the shape of C.

    `T` is ‖aᵢ‖·‖bⱼ‖/√K, in `sparse` rows the root of the sum of the squares of the terms, and
    infinite where a single term is selected. `begun` is |beta·C|: a sum may begin with it, so that
    it is rounded with each term.
    """

    T: Float64
    sparse: Bools
    begun: Float64 | float = 0.0

    @property
    def dense(self) -> Bools:
        """The elements that are sums of K terms."""
        return np.isfinite(self.T) & ~self.sparse[:, np.newaxis]


class Trial(NamedTuple):
    """The inputs, in the order of the workload's buffers, and the expected C.

    Either `exact` is given, or R with S, the size that error bounds are relative to: for sums of
    products, the same sums of absolute values. Errors are shown relative to `scale` (None: |R|).
    `C` is the content of C before the launch, if the kernel reads it; `scales` are the factors of A
    and of B, if they have any.

    If the signs of all terms are random, `typical` is given for a sample, and for the trial that
    samples are made from `norms`: T is the outer product of the two. Where a sample has a `single`
    term that is rounded, the bound is that of one.
    """

    name: str
    inputs: tuple[Array, ...]
    exact: Array | None = None
    R: Float64 | None = None
    S: Float64 | None = None
    scale: Float64 | None = None
    C: Float32 | None = None
    scales: tuple[Float32, Float32] | None = None
    norms: tuple[Float64, Float64] | None = None
    typical: Typical | None = None
    single: Bools | None = None

    @property
    def expected(self) -> Array:
        found = self.exact if self.exact is not None else self.R
        assert found is not None
        return found

    @property
    def sums(self) -> tuple[Float64, Float64]:
        """R and S of a trial that is not exact."""
        assert self.R is not None
        assert self.S is not None
        return self.R, self.S


class Trials(NamedTuple):
    """All trials of a kernel.

    Inputs are rounded to the precision that the kernel reads; `given` is the reference trial on the
    unrounded inputs, if rounding changes them. Each of the `others` is made when it is called, so
    that few are in memory at once. `signed` is the reference trial with random signs, from which
    samples are made if the kernel declares no lower precision.
    """

    reference: Trial
    given: Trial | None
    others: Sequence[Callable[[], Trial]] = ()
    signed: Trial | None = None


def trials(problem: Problem, contract: NumericContract, cache: Cache) -> Trials:
    """The trials of a problem for kernels that read their inputs as `contract` says."""
    module = importlib.import_module(f"matbench.workloads.{problem.workload}.trials")
    result: Trials = module.trials(problem, contract, cache)
    return result


def generator(problem: Problem, purpose: str) -> np.random.Generator:
    """A separate generator for each purpose, so that no draw depends on another."""
    digest = hashlib.sha256(f"{problem.seed}/{purpose}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, np.uint32))


def draw(problem: Problem, purpose: str, rows: int, columns: int, *, wide: bool = False) -> Array:
    """Seeded numbers: `uniform` in [0, 1), `signed` in [−1, 1), `normal` with deviation 1.

    They are float32, or float64 if `wide`.
    """
    random = generator(problem, purpose)
    kind = np.float64 if wide else np.float32
    if problem.inputs == "normal":
        return random.standard_normal((rows, columns), dtype=kind)
    values: Array = random.random((rows, columns), dtype=kind)
    if problem.inputs == "signed":
        values *= 2
        values -= 1
    return values


def round_to(values: Float32, precision: Precision) -> Float32:
    """Values rounded to nearest, ties to even, to the significand of `precision`.

    The exponent range of float16 is not applied: kernels declare the range that they accept.
    """
    if SIGNIFICAND_BITS[precision] >= 24:
        return values
    fraction, exponent = np.frexp(values)
    kept = np.float32(2 ** SIGNIFICAND_BITS[precision])
    result: Float32 = np.ldexp(np.rint(fraction * kept) / kept, exponent)
    return result


def read_as(values: Float32, contract: NumericContract) -> Float32:
    """Values as a kernel reads them: rounded, small ones to the subnormals of its storage type."""
    values = round_to(values, contract.precision)
    if contract.precision != "float16":
        return values
    unit = np.float32(2.0**-24)  # the step of numbers below 2⁻¹⁴
    return np.where(np.abs(values) < 2.0**-14, np.rint(values / unit) * unit, values)


def common(readings: Sequence[NumericContract]) -> NumericContract:
    """A contract for kernels that share inputs: the coarsest precision, the narrowest range, the
    coarsest sums. Their storage types and scales are the same.
    """
    precision = min((contract.precision for contract in readings), key=SIGNIFICAND_BITS.__getitem__)
    lows, highs = zip(*(contract.exponents for contract in readings), strict=True)
    return msgspec.structs.replace(
        readings[0],
        precision=precision,
        exponents=(max(lows), min(highs)),
        exact=all(contract.exact for contract in readings),
        sums_in=max((contract.sums_in for contract in readings), key=UNIT_ROUNDOFF.__getitem__),
        reads_C=any(contract.reads_C for contract in readings),
    )


def shifts(contract: NumericContract) -> tuple[int, int]:
    """How far one input may be scaled up and another down, as powers of two.

    Enough to leave the range of float16, but not enough to turn fractions into integers. There is a
    margin for inputs that are not near 1. Inputs stored as float16 are not scaled down, because
    they would lose bits.
    """
    if contract.result == "float16" or contract.sums_in == "float16":
        return 0, 0  # large and small sums would leave its range
    # The range of these is narrow, but factors have another.
    if contract.precision in (*EIGHT_BITS, *INTEGERS):
        return (8, 8) if contract.scales is not None else (0, 0)
    low, high = contract.exponents
    down = 0 if contract.precision == "float16" else -low - 4
    return min(18, max(0, high - 4)), min(18, max(0, down))


#: Numbers below this are a small part of inputs near 1.
_LARGEST_LEAST = 2.0**-4


def least(contract: NumericContract) -> float:
    """The size below which an input may lose bits, as given or when a sample scales it down.

    0 for kernels that accept the whole range of float32, and for those that read float16, whose
    inputs are not scaled down. Claiming a range that begins near 1 does not widen the bound
    further.
    """
    low = contract.exponents[0]
    if low <= -126 or contract.precision == "float16":
        return 0.0
    return min(_LARGEST_LEAST, 2.0 ** (low + shifts(contract)[1]))


#: The largest error of many in units of their expected root mean square.
LARGEST = 16
#: The squares of these units may add up to their number and this.
MOST_EXCESS = 100.0
#: From this many terms on, rows are made sparse: `SPARSE_TERMS` terms and a negligible rest.
LEAST_SPARSE = 64
SPARSE_TERMS = 32
_FAR = 1e200  # no bound


class Bound(NamedTuple):
    """The error bound of an element: `of_S`·S + `of_R`·|R| + `least`.

    If the signs of terms are random, also `LARGEST`·`of_T`·T, in sparse rows `of_sparse`·T, in
    place of all of `of_S` but the share that claims and scaling add. `of_T`·T is the largest root
    mean square. A single term that is selected has `of_term`.
    """

    of_S: float
    of_R: float = 0.0
    least: float = 0.0
    of_T: float = _FAR
    of_sparse: float = _FAR
    added: float = 0.0
    of_term: float = 0.0

    @property
    def is_of_T(self) -> bool:
        """Whether S plays no part where it is more than 4·T, as for 64 random terms or more."""
        return self.added == 0 and 4 * self.of_S >= LARGEST * self.of_T

    def allowed(
        self, R: Float64, S: Float64, typical: Typical | None = None, single: Bools | None = None
    ) -> Float64:
        """The largest error of each element."""
        of_terms = (self.of_S if single is None else np.where(single, self.of_term, self.of_S)) * S
        if typical is not None:
            factor = np.where(typical.sparse, self.of_sparse, LARGEST * self.of_T)[:, np.newaxis]
            begun = LARGEST * self.of_T * typical.begun
            of_terms = np.fmin(of_terms, factor * typical.T + begun + self.added * S)
        return of_terms + self.of_R * np.abs(R) + self.least

    def of(self, trial: Trial) -> Float64:
        """The largest error of each element of a trial's C."""
        return self.allowed(*trial.sums, trial.typical, trial.single)

    def excess(self, C: Array, trial: Trial) -> float:
        """By how much errors are too large together, if it is more than `MOST_EXCESS`."""
        if trial.typical is None:
            return 0.0
        dense = trial.typical.dense
        R, S = (values[dense] for values in trial.sums)
        T = (trial.typical.T + trial.typical.begun)[dense]
        with np.errstate(all="ignore"):
            errors = np.abs(C[dense].astype(np.float64) - R)
            expected = self.of_T * T + self.added * S + self.of_R * np.abs(R) + self.least
            squares = np.where(errors == 0, 0.0, (errors / expected) ** 2)
        return float(squares.sum() - squares.size)


def bound(kernel: Kernel, problem: Problem) -> Bound:
    """The error bound of a kernel: rounding errors of its sums, and of storing the results.

    Its `error_constant` is that of each product before it is added; relative to the sum, it does
    not grow with the number of terms. Multiplying by alpha rounds once more, by factors of A and B
    three times, and adding beta·C twice: to the type of C, if that is narrower. The reference of
    float64 sums is itself rounded once.
    """
    contract = kernel.contract
    unit = UNIT_ROUNDOFF[contract.sums_in]
    # Tensor cores may compute its sums, which truncate instead of rounding.
    is_truncated = kernel.precision not in ("float32", "float64", *INTEGERS)
    terms = workloads.workload_of(problem).terms(problem)
    scaled = (problem.alpha != 1) + 2 * (problem.beta != 0) + 3 * (contract.scales is not None)
    added = kernel.error_constant * U32 + scaled * unit + 2 * unit * (contract.sums_in == "float64")
    of_S = error_factor(terms, truncated=is_truncated) * unit
    if contract.sums_in == "float22":
        # Hopper's tensor cores add 32 products at a time; of each, they drop the bits below those
        # of the sum. On an H100 the error is K/3 in units of 2⁻¹⁴ if all products have one sign:
        # the bound is twice that and a little. Sums may be promoted to float32 after some terms.
        summed = min(terms, kernel.promotes or terms)
        of_S = max(2 * (summed + 1) if summed < 32 else 8 * math.sqrt(summed), 0.75 * summed)
        of_S = of_S * unit + (error_factor(terms) * U32 if summed < terms else 0.0)
        of_S = min(of_S, 0.5)
    of_term = error_factor(1, truncated=is_truncated) * unit
    # The largest root mean square error of sums of terms with random signs. Their partial sums grow
    # like a random walk, too, so that the error is 0.28·√K in any order, and the largest of many
    # millions 5.5·√K: less than `LARGEST` times this.
    of_T = 0.5 * (math.sqrt(terms) + 1) * unit
    if is_truncated:  # however many terms: what is no better than 0 is wrong
        of_T = min(max(2 * of_T, terms / (4 * LARGEST) * unit), 1 / (4 * LARGEST))
    stored, least = UNIT_ROUNDOFF.get(contract.result, 0.0), 0.0
    if stored <= unit:
        stored = 0.0
    elif contract.result == "float16":
        least = 2.0**-25  # half its smallest number
    added += scaled * stored
    return Bound(of_S + added, stored, least, of_T, _OF_SPARSE * unit, added, of_term + added)


def error_factor(K: int, *, truncated: bool = False) -> float:
    """The error bound of an element as a multiple of u·S, with u = 2⁻²⁴.

    K + 1 is the classical bound for K products and their sum in any order. From K = 32 on, errors
    of a float32 sum behave like a random walk: 4·√K, Higham and Mary, "A new approach to
    probabilistic rounding error analysis", SIAM J. Sci. Comput. 41 (2019). A kernel beyond it
    computes with less precision than it declares.

    Sums that are `truncated` also have a bias, which grows with K if all products have one sign. On
    an H200 the error of cuBLAS's TF32 product is K/8: the bound is twice that.
    """
    factor = min(K + 1, 4 * math.sqrt(K)) if K >= 32 else K + 1
    return max(2 * factor, K / 4) if truncated else factor


#: The largest error of a sum of `SPARSE_TERMS` terms, in u and the root of their squares' sum. Of
#: honest sums 15 was the largest seen; one operand rounded to 18 bits reaches 45.
_OF_SPARSE = 30


#: For checks that only decide between right and wrong.
UNKNOWN = Accuracy(None, None, None)


def accuracy(C: Array, trial: Trial, bound: Bound) -> Accuracy:
    """The errors of C on a trial that is not exact, as the host computes them."""
    R, _ = trial.sums
    with np.errstate(all="ignore"):
        error = np.abs(C.astype(np.float64) - R)
        share = shares(error, bound.of(trial))
        scale = np.abs(R) if trial.scale is None else trial.scale
        relative = (error / scale)[scale != 0]
        largest, total = float(relative.max(initial=0.0)), float(relative.sum())
        return accuracy_of(largest, total, relative.size, float(share.max(initial=0.0)))


def shares(errors: Float64, allowed: Float64) -> Float64:
    """Errors as multiples of what is allowed; infinite for NaN."""
    with np.errstate(all="ignore"):
        share = np.where(allowed > 0, np.abs(errors) / allowed, np.where(errors == 0, 0.0, np.inf))
    return np.nan_to_num(share, nan=np.inf, posinf=np.inf)


def total(parts: Array) -> Array:
    """The sum of one partial result per block, 1×1, without overflow."""
    wide = np.int64 if parts.dtype == np.int32 else np.float64
    result: Array = np.sum(parts, dtype=wide).reshape(1, 1)
    return result if wide == np.int64 else result.astype(np.float32)


def accuracy_of(largest: float, total: float, count: int, share: float) -> Accuracy:
    """Accuracy from its sums; None for values that are not finite or not defined."""
    return Accuracy(
        max_rel_err=largest if count and math.isfinite(largest) else None,
        avg_rel_err=total / count if count and math.isfinite(total / count) else None,
        bound_ratio=share if math.isfinite(share) else None,
    )
