"""Statements on the accuracy of products, from results and what they should have been.

Errors are relative to u, the unit roundoff of C's type, and to the size of an element's terms:
(|A|·|B|) at its place. Grade A is that of J. Demmel, X. Li, J. Langou, W. Pereira, M. Gates and
C. Rubio-González, "How to grade the accuracy of an implementation of the BLAS" (2024); the grades
below it are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matbench.features.grade.record import Bounds, Growth, Letter, Statement, Ulps
from matbench.model import UNIT_ROUNDOFF, Storage
from matbench.workloads import rounding

Float64 = npt.NDArray[np.float64]

#: A bound holds if errors are at most so many times K·u times its size, and fails if they are more
#: than `_FAILS` times that. A sum that rounds each operation to nearest has 1, and tensor cores 2.
_HOLDS, _FAILS = 16.0, 64.0
#: The slope of log E over log K up to which growth counts as linear: the largest error of a sum
#: that always rounds down grows with a slope of 1, give or take.
_LINEAR = 1.15
#: Smaller errors are exact results: their logarithm would say nothing.
_LEAST = 2.0**-12


class Errors(NamedTuple):
    """The largest errors of one product over u, relative to each of three sizes."""

    K: int
    by_element: float
    by_row: float
    by_matrix: float


def errors(C: Float64, R: Float64, A: Float64, B: Float64, storage: Storage) -> Errors:
    """How far C is from the exact product R of A and B; infinite for NaN."""
    K = A.shape[1]
    rows, columns = np.abs(A).max(axis=1), np.abs(B).max(axis=0)
    with np.errstate(all="ignore"):
        difference = np.abs(C - R) / UNIT_ROUNDOFF[storage]
        sizes = (np.abs(A) @ np.abs(B), K * np.outer(rows, columns), K * rows.max() * columns.max())
        ratios = [np.where(difference == 0, 0.0, difference / size) for size in sizes]
    largest = [float(ratio.max()) for ratio in ratios]
    return Errors(K, *(error if not math.isnan(error) else math.inf for error in largest))


def growth(points: Sequence[tuple[int, float]], probes: int, *, short: bool = False) -> Growth:
    """How errors by element grow, from several of each K.

    Sums of `short` products, of 8 bits, are exact up to some K. Then errors that are smaller than a
    rounded sum's, √K/4, count as that: the step from none to some is no growth.
    """
    sizes = sorted({K for K, _ in points})
    largest = tuple(max(error for K, error in points if size == K) for size in sizes)
    if not all(math.isfinite(error) for error in largest):
        return Growth(probes=probes, reason="C is not finite")
    from scipy import stats

    fit = stats.linregress(
        [math.log(K) for K, _ in points],
        [math.log(max(error, math.sqrt(K) / 4 if short else _LEAST)) for K, error in points],
    )
    half = float(stats.t.ppf(0.975, len(points) - 2) * fit.stderr)
    slope = float(fit.slope)
    low, high = slope - half, slope + half
    return Growth(
        verdict="at most linear" if high <= _LINEAR else "faster" if low > _LINEAR else "unclear",
        slope=slope, interval=(low, high), sizes=tuple(sizes), errors=largest, probes=probes,
    )  # fmt: skip


def bounds(samples: Sequence[Errors], probes: int, storage: Storage) -> Bounds:
    """The tightest bound that all products keep."""
    largest = [max(sample[1 + index] / sample.K for sample in samples) for index in range(3)]
    letters: tuple[Letter, ...] = ("A", "B", "C", "D")
    # The first that does not clearly fail.
    index = next((i for i, error in enumerate(largest) if not error > _FAILS), 3)
    verdict = letters[index] if index == 3 or largest[index] <= _HOLDS else "unclear"
    # Rounding both factors to b bits gives errors of up to 2·2⁻ᵇ for a single product.
    most = rounding.FORMATS[storage][0]
    kept = math.floor(most - math.log2(max(largest[0], 2.0) / 2)) if largest[0] < math.inf else 0
    element, row, matrix = (error if math.isfinite(error) else None for error in largest)
    return Bounds(
        verdict=verdict, by_element=element, by_row=row, by_matrix=matrix, bits=max(0, kept),
        probes=probes,
    )  # fmt: skip


def letter(bound: Bounds | None, *others: Statement | None) -> Letter:
    """The grade: that of the bounds, unless growth or zeros contradict it."""
    if bound is None:
        return "unclear"
    verdicts = [getattr(other, "verdict", "unclear") for other in others]
    if bound.verdict in ("A", "B") and "Strassen-like" in verdicts:
        return "C"
    if bound.verdict == "A" and {"faster", "unclear"} & set(verdicts):
        return "unclear"
    return bound.verdict


def ulps(C: Float64, R: Float64, storage: Storage, inputs: str) -> Ulps:
    """Errors in units in the last place of R."""
    if not np.isfinite(C).all():
        return Ulps(inputs=inputs, probes=C.size, reason="C is not finite")
    off, right = np.abs(C - R) / rounding.spacing(R, storage), rounding.nearest(R, storage) == C
    largest, mean, correct = float(off.max()), float(off.mean()), float(right.mean())
    return Ulps(inputs=inputs, largest=largest, mean=mean, correctly_rounded=correct, probes=C.size)


def read_bits(read: Float64, given: Float64, storage: Storage) -> int:
    """With how many significant bits numbers were read: rounding to b bits moves none by more than
    2⁻ᵇ of its power of two."""
    bits = rounding.FORMATS[storage][0]
    error = np.abs(read - given) / np.ldexp(1.0, np.frexp(given)[1] - 1)
    largest = float(error.max())
    if not math.isfinite(largest):
        return 0
    return bits if largest <= 2.0**-bits else max(0, math.floor(-math.log2(largest) + 1e-9))


def mistaken(C: Float64, R: Float64) -> str | None:
    """The most frequent class that C has where R has another: `NaN instead of Inf`."""
    have, want = (
        np.select([np.isnan(X), np.isposinf(X), np.isneginf(X)], ["NaN", "+Inf", "-Inf"], "finite")
        for X in (C, R)
    )
    wrong = have != want
    texts = sorted(
        "Inf of the wrong sign"
        if got[1:] == wanted[1:]
        else f"{got.lstrip('+-')} instead of {wanted.lstrip('+-')}"
        for got, wanted in zip(have[wrong].tolist(), want[wrong].tolist(), strict=True)
    )
    return max(texts, key=texts.count, default=None)
