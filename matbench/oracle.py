"""What is right: seeded inputs, their float64 product on the CPU, and the error rounding allows.

A `Trial` is one pair of inputs with what C must be. Four kinds are tried on every problem:

- *reference*: the problem's own inputs; each element within a rounding-error bound of the float64
  product R.
- *fresh*: the same numbers with rows, columns and terms moved and signs changed, so that R only
  has to be moved too. A kernel that caches or hard-codes its answer fails here.
- *integers*: whole numbers of both signs, and zeros, small enough that every float32 sum of them
  is exact. C must match to the last bit.
- *selection*: one factor picks entries of the other (a permutation, or its like where the shape is
  not square). C must match to the last bit, so that a kernel cannot round its inputs unseen.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from matbench.cache import Cache
from matbench.model import U32, Accuracy, Precision, Problem

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Matrix = TypeVar("Matrix", Float32, Float64)

#: Bits of the significand (the hidden one included) that a precision keeps.
SIGNIFICAND_BITS: dict[Precision, int] = {
    "float32": 24,
    "tf32": 11,
    "float16": 11,
    "bfloat16": 8,
}


class Trial(NamedTuple):
    """Inputs A (M×K) and B (K×N), and what C (M×N) must be.

    Either `exact` is given, or R with S = |A||B|, the size of what rounding errors are measured by.
    """

    name: str
    A: Float32
    B: Float32
    exact: Float32 | None = None
    R: Float64 | None = None
    S: Float64 | None = None


def _random(problem: Problem, purpose: str) -> np.random.Generator:
    """A generator of its own for each purpose, so that no draw depends on another."""
    digest = hashlib.sha256(f"{problem.seed}/{purpose}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, np.uint32))


def inputs(problem: Problem) -> tuple[Float32, Float32]:
    """The seeded inputs: `uniform` in [0, 1), `signed` in [−1, 1), `normal` with deviation 1."""

    def draw(purpose: str, rows: int, columns: int) -> Float32:
        random = _random(problem, purpose)
        if problem.inputs == "normal":
            normal: Float32 = random.standard_normal((rows, columns), dtype=np.float32)
            return normal
        values: Float32 = random.random((rows, columns), dtype=np.float32)
        if problem.inputs == "signed":
            values *= 2
            values -= 1
        return values

    return draw("A", problem.M, problem.K), draw("B", problem.K, problem.N)


def round_to(values: Float32, precision: Precision) -> Float32:
    """Values rounded to nearest, ties to even, in the significand of `precision`.

    The exponent range of float16 is not applied: a kernel says in its own file what range it takes.
    """
    dropped = 24 - SIGNIFICAND_BITS[precision]
    if dropped == 0:
        return values
    bits = np.ascontiguousarray(values).view(np.uint32).astype(np.uint64)
    half = np.uint64(1 << (dropped - 1))
    odd = (bits >> np.uint64(dropped)) & np.uint64(1)
    rounded = (bits + half - np.uint64(1) + odd) & ~np.uint64((1 << dropped) - 1)
    result: Float32 = rounded.astype(np.uint32).view(np.float32)
    return result.reshape(values.shape)


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


def error_factor(K: int, constant: float = 1.0) -> float:
    """How many times u·S an element may be off, with u = 2⁻²⁴.

    K + 1 is the classical bound for K products and their sum in any order. From K = 32 on the
    errors of a float32 sum behave like a random walk: 4·√K, Higham and Mary, "A new approach to
    probabilistic rounding error analysis", SIAM J. Sci. Comput. 41 (2019). A kernel beyond it
    computes with less precision than it declares. `constant` is what a kernel declares for itself.
    """
    return constant * (min(K + 1, 4 * math.sqrt(K)) if K >= 32 else K + 1)


def reference_trial(problem: Problem, cache: Cache) -> Trial:
    """The problem's own inputs with their float64 product."""
    A, B = inputs(problem)
    R, S = product(A, B, cache)
    return Trial("reference", A, B, R=R, S=S)


def rounded_trial(trial: Trial, precision: Precision, cache: Cache) -> Trial:
    """The same inputs rounded to what a kernel declares it reads, with their own product."""
    A, B = round_to(trial.A, precision), round_to(trial.B, precision)
    R, S = product(A, B, cache)
    return trial._replace(A=A, B=B, R=R, S=S)


def fresh_trial(problem: Problem, trial: Trial) -> Trial:
    """Second inputs: a reference trial with rows shuffled, columns and terms moved, signs changed.

    Where that is cheap, it is as good as new: the reference moves along, with nothing to compute.
    """
    assert trial.R is not None and trial.S is not None
    random = _random(problem, "fresh")
    rows = random.permutation(problem.M)
    column, term = int(random.integers(problem.N)), int(random.integers(problem.K))
    signs = random.choice(np.array([-1, 1], np.float32), problem.M)[:, None]
    signs[0] = -1  # never the first inputs again, not even at 1×1×1

    def moved(matrix: Matrix, shift: int) -> Matrix:
        return np.roll(matrix[rows], shift, axis=1)

    R = moved(trial.R, column)
    S = R.copy() if trial.S is trial.R else moved(trial.S, column)
    R *= signs
    A = moved(trial.A, term)
    A *= signs
    return Trial("fresh", A, np.roll(trial.B, (term, column), axis=(0, 1)), R=R, S=S)


def integer_trial(problem: Problem, precision: Precision = "float32") -> Trial:
    """Whole numbers of which every partial sum is exact: Σ|a·b| ≤ 2²⁴, whatever the order.

    B is an outer product x·yᵀ, so that the exact C = (A·x)·yᵀ costs no matrix product.
    """
    random = _random(problem, "integers")
    M, N, K = problem.M, problem.N, problem.K
    y = random.choice(np.array([-3, -2, -1, 1, 2, 3], np.float32), N)
    x = random.choice(np.array([-1, 1], np.float32), K)
    x[2**22 :] = 0  # beyond, even ones would not add up exactly
    widest = 2 ** SIGNIFICAND_BITS[precision] - 1
    largest = max(1, min(4096, widest, 2**24 // (3 * min(K, 2**22))))
    whole = random.integers(-largest, largest, (M, K), dtype=np.int16, endpoint=True)
    whole[random.integers(8, size=(M, K), dtype=np.uint8) == 0] = 0
    A = whole.astype(np.float32)
    # Exact in float32 too, in whatever order it is summed.
    return Trial("integers", A, np.outer(x, y), exact=np.outer(A @ x, y))


def selection_trials(problem: Problem, A: Float32, B: Float32) -> tuple[Trial, Trial]:
    """Each factor in turn picks single entries of the other: C is a gather, without rounding."""
    M, N, K = problem.M, problem.N, problem.K
    random = _random(problem, "selection")

    def picks(count: int) -> npt.NDArray[np.intp]:
        rounds = [random.permutation(K) for _ in range(-(-count // K))]
        return np.concatenate(rounds)[:count]

    of_column, of_row = picks(N), picks(M)
    chooses_columns = np.zeros((K, N), np.float32)
    chooses_columns[of_column, np.arange(N)] = 1
    chooses_rows = np.zeros((M, K), np.float32)
    chooses_rows[np.arange(M), of_row] = 1
    return (
        Trial("selection", A, chooses_columns, exact=A[:, of_column]),
        Trial("selection", chooses_rows, B, exact=B[of_row, :]),
    )


class Verdict(NamedTuple):
    """What comparing C with a trial gave: all counts over its M·N elements."""

    accuracy: Accuracy
    wrong: int
    first_wrong: int | None


def judge(C: Float32, trial: Trial, factor: float) -> Verdict:
    """Compare C with a trial on the host; the device's own comparison must agree with this one."""
    if trial.exact is not None:
        bad = ~(trial.exact == C)
        return _verdict(bad, Accuracy(None, None, None))
    assert trial.R is not None and trial.S is not None
    with np.errstate(all="ignore"):
        error = np.abs(C.astype(np.float64) - trial.R)
        bound = factor * U32 * trial.S
        bad = ~(error <= bound)
        share = np.where(bound > 0, error / bound, np.where(error == 0, 0.0, np.inf))
        nonzero = trial.R != 0
        relative = error[nonzero] / np.abs(trial.R[nonzero])
        accuracy = accuracy_of(
            float(relative.max(initial=0.0)),
            float(relative.sum()),
            int(nonzero.sum()),
            float(share.max(initial=0.0)),
        )
    return _verdict(bad, accuracy)


def accuracy_of(largest: float, total: float, count: int, share: float) -> Accuracy:
    """Accuracy from its sums; what is not finite or not defined is None."""

    def known(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return Accuracy(
        max_rel_err=known(largest) if count else None,
        avg_rel_err=known(total / count) if count else None,
        bound_ratio=known(share),
    )


def _verdict(bad: npt.NDArray[np.bool_], accuracy: Accuracy) -> Verdict:
    wrong = int(bad.sum())
    return Verdict(accuracy, wrong, int(bad.argmax()) if wrong else None)
