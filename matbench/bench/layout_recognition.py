"""Recognises a wrong C as the product for another layout, transpose, alpha or beta, or as what
usual mistakes lead to."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import get_args

import numpy as np

from matbench.bench import wording
from matbench.model import Case, Layout, Placing, Transpose
from matbench.workloads.oracle import Array, Bound, Float64, Trial

#: Larger products are not tried, because that would take too long.
_MOST_OPERATIONS = 2**29
#: How often each is added is only found out for so many terms.
_MOST_TERMS = 2048
#: The bits of significands of 16 bits, and what names float16.
_TF32_BITS = 11
USUAL_BITS = {_TF32_BITS: "float16", 8: "bfloat16"}
_HALF = re.compile("half|f(?:loat|p)?16")
#: How to get float32 from libraries whose default is TF32.
_EXACT = {
    "torch": (
        'pass `input_precision="ieee"` to `tl.dot`, or set '
        "`torch.backends.cuda.matmul.allow_tf32 = False`"
    ),
    "jax": 'pass `precision="highest"`',
}
_NAMES = {"NN": "A·B", "NT": "A·Bᵀ", "TN": "Aᵀ·B", "TT": "Aᵀ·Bᵀ"}


def described(C: Array, trial: Trial, bound: Bound, case: Case) -> str | None:
    """What C is, in words; None if it is not recognised."""
    problem = case.problem
    size = problem.M * problem.N * problem.K
    if problem.workload != "matmul" or size > _MOST_OPERATIONS or trial.S is None:
        return None
    if not np.isfinite(C).all():
        return None
    A, B = (matrix.astype(np.float64) for matrix in trial.inputs)
    added: Float64 | float = 0.0 if trial.C is None else trial.C.astype(np.float64)
    roundings = _roundings(A, B, case) if trial.typical is None else ()
    for text, actual, wanted in _candidates(C, A, B, added, case, roundings):
        if actual.shape == wanted.shape and _is(actual, wanted, trial, bound):
            return text
    return None


def _is(actual: Array, wanted: Float64, trial: Trial, bound: Bound) -> bool:
    """Whether all of C is that, within the error bound for terms of any sign, and far nearer to it
    than to what is right."""
    R, S = trial.sums
    with np.errstate(all="ignore"):
        size = np.full_like(wanted, float(np.abs(S).max()))
        errors = np.abs(actual - wanted)
        is_near = errors.max() <= np.abs(actual - R).max() / 4
        right: bool = bool((errors <= bound.allowed(wanted, size)).all() and is_near)
    return right


def _candidates(
    C: Array,
    A: Float64,
    B: Float64,
    added: Float64 | float,
    case: Case,
    roundings: Iterable[tuple[str, Float64, Float64]],
) -> Iterator[tuple[str, Array, Float64]]:
    """Descriptions of what C may be, with C as it would be read then, and its expected value."""
    problem = case.problem
    alpha, beta = problem.alpha, problem.beta
    AB = A @ B
    if alpha != 1:
        yield "as if alpha were 1", C, AB + beta * added
    if beta != 0:
        yield "beta·C is not added", C, alpha * AB
        yield "as if beta were 1", C, alpha * AB + added
    elif case.kernel.reads:
        yield "C is added, as if beta were 1", C, alpha * AB + added
    of_terms = _of_terms((C - beta * added) / alpha, A, B) if alpha else ()
    for text, a, b in (*_mistakes(A, B), *roundings, *of_terms):
        yield text, C, alpha * (a @ b) + beta * added
    stored = case.kernel.placing
    seen = set()
    for layout, transpose in product(get_args(Layout), get_args(Transpose)):
        other = Placing(layout, transpose)
        if (layout, transpose) == (stored.layout, stored.transpose):
            continue
        a, b = (_read(X, name, stored, other) for X, name in ((A, "A"), (B, "B")))
        if np.array_equal(a, A) and np.array_equal(b, B):
            continue  # only C's layout differs: it is transposed, which is reported elsewhere
        c = _read(C, "C", stored, other)
        wanted = alpha * (a @ b) + (beta * _read(added, "C", stored, other) if beta else 0.0)
        key = c.tobytes(), wanted.tobytes()
        if key not in seen:
            seen.add(key)
            yield _words(stored, other), c, wanted


def _mistakes(A: Float64, B: Float64) -> Iterator[tuple[str, Float64, Float64]]:
    """Usual mistakes, with the operands as they have them."""
    yield "it leaves out the last term of K", A[:, :-1], B[:-1]
    yield "it leaves out the first term of K", A[:, 1:], B[1:]
    for tile in (8, 16, 32):
        if not any(side % tile for side in (*A.shape, *B.shape)):
            of = f"in tiles of {tile}×{tile}"
            yield f"it swaps the indices of A {of}", _turned(A, tile), B
            yield f"it swaps the indices of B {of}", A, _turned(B, tile)


def _roundings(A: Float64, B: Float64, case: Case) -> Iterator[tuple[str, Float64, Float64]]:
    """Operands rounded, or truncated, to usual bits."""
    if case.kernel.contract.storage == case.kernel.precision == "float32":
        for bits, made_whole in product(USUAL_BITS, (np.rint, np.trunc)):
            a, b = (kept(matrix, bits, made_whole) for matrix in (A, B))
            yield like_rounded(bits, case, exactly=True), a, b


def kept(matrix: Array, bits: int, made_whole: np.ufunc = np.rint) -> Float64:
    """Numbers of which so many bits of the significand are kept."""
    significands, exponents = np.frexp(matrix.astype(np.float64))
    numbers: Float64 = np.ldexp(made_whole(np.ldexp(significands, bits)), exponents - bits)
    return numbers


def like_rounded(bits: int, case: Case, *, exactly: bool = False) -> str:
    """What errors say that are as large as with inputs of so many bits, or `exactly` those."""
    how, source = _EXACT.get(case.kernel.arrays), case.kernel.source.lower()
    if how is not None and abs(bits - _TF32_BITS) <= 1:
        return f'as exact as TF32 inputs: declare `precision = "tf32"`, or {how}'
    precision = "tf32" if bits > 9 else "bfloat16"
    if precision == "tf32" not in source and _HALF.search(source):
        precision = "float16"
    declared = f'declare `precision = "{precision}"`'
    if exactly:
        inputs = "float16 inputs" if precision == "float16" else f"inputs of {bits} bits"
        return f"as exact as {inputs}: {declared}"
    claim = f"if they are, {declared}"
    if bits >= 14:
        claim = "if its inputs are split, declare `error_constant`"
    return f"errors are as large as with inputs rounded to about {bits} bits: {claim}"


def _of_terms(C: Array, A: Float64, B: Float64) -> Iterator[tuple[str, Float64, Float64]]:
    """How often each term of K is in C, by least squares, if that is a whole number."""
    K = A.shape[1]
    if not 1 < K <= _MOST_TERMS or C.size < K:
        return
    with contextlib.suppress(np.linalg.LinAlgError):
        whole = np.rint(np.linalg.solve((A.T @ A) * (B @ B.T), (A.T @ C * B).sum(axis=1)))
        said = []
        if not whole.any():  # C is 0
            return
        for many in np.unique(whole[whole != 1]):
            member = whole == many
            terms = wording.run(member, "term") or wording.periodic(member, "term")
            terms = terms or f"{member.sum()} terms"
            twice = "twice" if many == 2 else f"{many:g} times"
            said.append(f"adds {terms} {twice}" if many else f"leaves out {terms}")
        yield f"of K, it {' and '.join(said)}", A * whole, B


def _turned(matrix: Float64, tile: int) -> Float64:
    """A matrix with each of its square tiles transposed."""
    rows, columns = (side // tile for side in matrix.shape)
    turned: Float64 = matrix.reshape(rows, tile, columns, tile).transpose(0, 3, 2, 1)
    return turned.reshape(matrix.shape)


def _read(X: Array | float, name: str, stored: Placing, other: Placing) -> Array:
    """A matrix stored in the layout `stored`, read as if it were in the layout `other`."""
    matrix = np.asarray(X)
    if matrix.ndim == 0:
        return matrix
    place, meant = (placing.place(name, *matrix.shape) for placing in (stored, other))
    memory = np.ascontiguousarray(matrix if place.column_step == 1 else matrix.T).ravel()
    by_rows = meant.column_step == 1
    result: Array = memory.reshape(matrix.shape if by_rows else matrix.shape[::-1])
    return result if by_rows else result.T


def _words(stored: Placing, other: Placing) -> str:
    """The front matter that fits it; of another transpose alone also the mistake that it may be."""
    keys = []
    if other.layout != stored.layout:
        keys.append(f'layout = "{other.layout}"')
    if other.transpose != stored.transpose:
        keys.append(f'transpose = "{other.transpose}"')
    by = ", column-major" if other.layout == "column-major" else ""
    pairs = zip("AB", stored.transpose, other.transpose, strict=True)
    turned = [name for name, before, after in pairs if before != after]
    swapped = f", or the indices of {' and '.join(turned)} are swapped"
    swapped = swapped if other.layout == stored.layout else ""
    return f"it is {_NAMES[other.transpose]}{by}: {' and '.join(keys)}{swapped}"
