"""The matrix product: its float64 reference, kept on disk, and exact trials that cost little."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from matbench.cache import Cache
from matbench.measure.oracle import (
    SIGNIFICAND_BITS,
    Float32,
    Float64,
    Trial,
    Trials,
    draw,
    generator,
    round_to,
    shifts,
)
from matbench.model import Precision, Problem, Reading

Matrix = TypeVar("Matrix", Float32, Float64)


def trials(problem: Problem, reading: Reading, cache: Cache) -> Trials:
    """All four kinds; the product is computed once, or twice where inputs are rounded."""
    precision, exact = reading.precision, reading.exact
    rounded = precision != "float32"
    with ThreadPoolExecutor() as at_once:  # NumPy leaves the other cores alone
        integers = at_once.submit(integer_trial, problem, precision, exact)
        given = reference_trial(problem, cache)
        reference = rounded_trial(given, precision, cache) if rounded else given
        selection = at_once.submit(selection_trials, problem, reference, exact)
        fresh = at_once.submit(fresh_trial, problem, reference, shifts(reading))
    others = {
        "integers": [integers.result()],
        "selection": list(selection.result()),
        "fresh": [fresh.result()],
    }
    return Trials(reference, given if rounded else None, others)


def inputs(problem: Problem) -> tuple[Float32, Float32]:
    """The seeded inputs A (M×K) and B (K×N)."""
    A = draw(problem, "A", problem.M, problem.K)
    return A, draw(problem, "B", problem.K, problem.N)


def product(A: Float32, B: Float32, cache: Cache) -> tuple[Float64, Float64]:
    """R = A·B and S = |A||B| in float64, computed once for these inputs and kept on disk.

    Where no input is negative, S is the same array as R.
    """
    digest = hashlib.sha256()
    for matrix in (A, B):
        digest.update(repr(matrix.shape).encode())
        digest.update(np.ascontiguousarray(matrix).data)
    shape = A.shape[0], B.shape[1]

    def kept(what: str, make: Callable[[], Float64]) -> Float64:
        key = f"product/1/{what}/{digest.hexdigest()}"
        data = cache.get_or_make(key, lambda: make().data.cast("B"))
        return np.frombuffer(data, np.float64).reshape(shape)

    R = kept("R", lambda: A.astype(np.float64) @ B.astype(np.float64))
    if not (A < 0).any() and not (B < 0).any():
        return R, R
    return R, kept("S", lambda: np.abs(A).astype(np.float64) @ np.abs(B).astype(np.float64))


def reference_trial(problem: Problem, cache: Cache) -> Trial:
    """The problem's own inputs with their float64 product."""
    A, B = inputs(problem)
    R, S = product(A, B, cache)
    return Trial("reference", (A, B), R=R, S=S)


def rounded_trial(trial: Trial, precision: Precision, cache: Cache) -> Trial:
    """The same inputs rounded to what a kernel declares it reads, with their own product."""
    A, B = (round_to(matrix, precision) for matrix in trial.inputs)
    R, S = product(A, B, cache)
    return trial._replace(inputs=(A, B), R=R, S=S)


def fresh_trial(problem: Problem, trial: Trial, scaled: tuple[int, int] = (0, 0)) -> Trial:
    """Second inputs: a reference trial with rows shuffled, columns and terms moved, signs changed.

    Where that is cheap, it is as good as new: the reference moves along, with nothing to compute.
    A is scaled up and B down by powers of two, so that a kernel cannot narrow exponents unseen.
    """
    assert trial.R is not None and trial.S is not None
    A, B = trial.inputs
    random = generator(problem, "fresh")
    rows = random.permutation(problem.M)
    column, term = int(random.integers(problem.N)), int(random.integers(problem.K))
    signs = random.choice(np.array([-1, 1], np.float32), problem.M)[:, None]
    signs[0] = -1  # never the first inputs again, not even at 1×1×1
    up, down = np.float32(2.0 ** scaled[0]), np.float32(2.0 ** -scaled[1])

    def moved(matrix: Matrix, shift: int) -> Matrix:
        return np.roll(matrix[rows], shift, axis=1)

    R = moved(trial.R, column)
    S = R.copy() if trial.S is trial.R else moved(trial.S, column)
    R *= signs * (up * down)
    S *= up * down
    A = moved(A, term)
    A *= signs * up
    B = np.roll(B, (term, column), axis=(0, 1))
    B *= down
    return Trial("fresh", (A, B), R=R, S=S)


def integer_trial(problem: Problem, precision: Precision = "float32", exact: bool = True) -> Trial:
    """Whole numbers of which every partial sum is exact: Σ|a·b| ≤ 2²⁴, whatever the order.

    B is an outer product x·yᵀ, so that the exact C = (A·x)·yᵀ costs no matrix product. With
    `exact` false C may be off by rounding errors, as the reference trial's may.
    """
    random = generator(problem, "integers")
    M, N, K = problem.M, problem.N, problem.K
    y = random.choice(np.array([-3, -2, -1, 1, 2, 3], np.float32), N)
    x = random.choice(np.array([-1, 1], np.float32), K)
    x[2**22 :] = 0  # beyond, even ones would not add up exactly
    widest = 2 ** SIGNIFICAND_BITS[precision] - 1
    largest = max(1, min(4096, widest, 2**24 // (3 * min(K, 2**22))))
    whole = random.integers(-largest, largest, (M, K), dtype=np.int16, endpoint=True)
    whole[random.integers(8, size=(M, K), dtype=np.uint8) == 0] = 0
    A = whole.astype(np.float32)
    B, C = np.outer(x, y), np.outer(A @ x, y)  # exact in float32, in whatever order it is summed
    if exact:
        return Trial("integers", (A, B), exact=C)
    S = np.outer((np.abs(A) @ np.abs(x)).astype(np.float64), np.abs(y))
    return Trial("integers", (A, B), R=C.astype(np.float64), S=S)


def selection_trials(problem: Problem, trial: Trial, exact: bool = True) -> tuple[Trial, Trial]:
    """Each factor in turn picks single entries of the other: C is a gather, without rounding.

    With `exact` false C may be off by rounding errors, as the reference trial's may.
    """
    A, B = trial.inputs
    M, N, K = problem.M, problem.N, problem.K
    random = generator(problem, "selection")

    def picks(count: int) -> npt.NDArray[np.intp]:
        rounds = [random.permutation(K) for _ in range(-(-count // K))]
        return np.concatenate(rounds)[:count]

    of_column, of_row = picks(N), picks(M)
    chooses_columns = np.zeros((K, N), np.float32)
    chooses_columns[of_column, np.arange(N)] = 1
    chooses_rows = np.zeros((M, K), np.float32)
    chooses_rows[np.arange(M), of_row] = 1

    def picked(A: Float32, B: Float32, C: Float32) -> Trial:
        if exact:
            return Trial("selection", (A, B), exact=C)
        R = C.astype(np.float64)
        return Trial("selection", (A, B), R=R, S=np.abs(R))

    return picked(A, chooses_columns, A[:, of_column]), picked(chooses_rows, B, B[of_row, :])
