"""Recognises a wrong C as the product for another layout, transpose, alpha or beta, or as what
usual mistakes lead to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import get_args

import numpy as np

from matbench.measure.oracle import Array, Bound, Float64, Trial
from matbench.model import Case, Layout, Placing, Problem, Transpose

#: Larger products are not tried, because that would take too long.
_MOST_OPERATIONS = 2**29
_NAMES = {"NN": "A·B", "NT": "A·Bᵀ", "TN": "Aᵀ·B", "TT": "Aᵀ·Bᵀ"}


def described(C: Array, trial: Trial, bound: Bound, case: Case) -> str | None:
    """What C is, in words; None if it is not recognised."""
    problem = case.problem
    if problem.workload != "matmul" or not is_quick(problem) or trial.S is None:
        return None
    if not np.isfinite(C).all() or problem.M * problem.N < 2:
        return None
    A, B = (matrix.astype(np.float64) for matrix in trial.inputs)
    added: Float64 | float = 0.0 if trial.C is None else trial.C.astype(np.float64)
    for text, actual, wanted in _candidates(C, A, B, added, case):
        if actual.shape == wanted.shape and _is(actual, wanted, trial.S, bound):
            return text
    return None


def is_quick(problem: Problem) -> bool:
    """Whether its product is computed soon."""
    return problem.M * problem.N * problem.K <= _MOST_OPERATIONS


def _is(actual: Array, wanted: Float64, S: Float64, bound: Bound) -> bool:
    """Whether all of C is that, within the error bound for terms of any sign."""
    with np.errstate(all="ignore"):
        size = np.full_like(wanted, float(np.abs(S).max()))
        right: bool = bool((np.abs(actual - wanted) <= bound.allowed(wanted, size)).all())
    return right


def _candidates(
    C: Array, A: Float64, B: Float64, added: Float64 | float, case: Case
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
    for text, a, b in _mistakes(A, B):
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
