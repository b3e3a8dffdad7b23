"""Patterns in samples that may move their median: drift, autocorrelation and two modes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from matbench.analysis.statistics import Samples, Vector

#: Fewer samples show no pattern.
_FEWEST = 10
#: The false-positive rate of the tests for drift and for autocorrelation.
_LEVEL = 0.002
#: A pattern matters if it may move the median by this share.
NOTABLE = 0.01
#: If the rarer of two modes has more than this share, the median may fall into either.
_RARER_MODE = 0.4
#: The coarsest step of an event timer; larger gaps between samples have other causes.
_TIMER_STEP_NS = 1100.0


class Drift(NamedTuple):
    """A trend: how far the last third's median is from the first third's, as a share of it."""

    shift: float


class Autocorrelation(NamedTuple):
    """Each sample predicts the next: the rank correlation at lag 1, which is positive."""

    r: float


class TwoModes(NamedTuple):
    """Two groups: the share of the slower one, and the ratio of the groups' medians."""

    share: float
    ratio: float


Pattern = Drift | Autocorrelation | TwoModes


def find_patterns(
    samples_ns: Samples, half_width: float | None, *, in_rounds: bool = False
) -> Iterator[Pattern]:
    """The patterns that change what a median with this half-width, a share of it, means.

    A drift matters if it exceeds both 1% and the interval; two modes if they are that far apart and
    about equally frequent. Autocorrelation matters if the interval is below 1%, but would not be if
    it were computed for the equivalent number of independent samples; not if the samples were taken
    `in_rounds`, since the interval then covers how those differ. For independent normal samples,
    each has a false-positive rate below 0.5%. Outliers do not move a median.
    """
    x = np.asarray(samples_ns, dtype=np.float64)
    if x.size < _FEWEST or np.ptp(x) == 0:
        return
    stated = half_width if half_width is not None and math.isfinite(half_width) else 0.0
    least = max(NOTABLE, stated)
    drift, r, modes = _drift(x), _autocorrelation(x), _two_modes(x)
    if abs(drift) >= least:
        yield Drift(drift)
    if (
        not in_rounds
        and r > 0
        and stated < NOTABLE <= stated * math.sqrt((1 + r) / (1 - min(r, 1 - 1e-9)))
    ):
        yield Autocorrelation(r)
    if modes is not None and modes.ratio - 1 >= least:
        yield modes


def _centred_ranks(x: Vector) -> Vector:
    """Ranks of the samples minus their mean; equal samples share a rank."""
    _, index, counts = np.unique(x, return_inverse=True, return_counts=True)
    shared = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(shared[index] - (x.size + 1) / 2, dtype=np.float64)


def _correlation(a: Vector, b: Vector, count: int) -> float:
    """The correlation of ranks, divided by the sum of squares that they would have without ties.

    This equals the mean over all ways to break the ties: many ties (a coarse timer) pull it towards
    0, so that a few odd samples do not decide it.
    """
    return float(a @ b) / (count * (count**2 - 1) / 12)


def _critical(count: int) -> float:
    """The critical value of the rank correlation of `count` independent pairs at `_LEVEL`.

    By Fisher's transformation, with the variance for ranks by E. C. Fieller, H. O. Hartley and
    E. S. Pearson, "Tests for rank correlation coefficients", Biometrika 44 (1957).
    """
    return math.tanh(NormalDist().inv_cdf(1 - _LEVEL / 2) * math.sqrt(1.06 / (count - 3)))


def _drift(x: Vector) -> float:
    """The shift of the median, if there is a trend by Spearman's rank correlation; else 0."""
    time = _centred_ranks(np.arange(x.size, dtype=np.float64))
    if not abs(_correlation(_centred_ranks(x), time, x.size)) > _critical(x.size):
        return 0.0
    third = x.size // 3
    return float(np.median(x[-third:]) / np.median(x[:third])) - 1


def _autocorrelation(x: Vector) -> float:
    """Serial correlation of ranks at lag 1, or 0; its mean is −1/n (Wald and Wolfowitz, 1943)."""
    ranks = _centred_ranks(x)
    r = _correlation(ranks[:-1], ranks[1:], x.size)
    return r if abs(r + 1 / x.size) > _critical(x.size) else 0.0


def _two_modes(x: Vector) -> TwoModes | None:
    """Two frequent groups, split at the largest gap of the middle 60% and far apart."""
    if x.size < 2 * _FEWEST:
        return None
    x = np.sort(x)
    edge = x.size // 5
    split = edge + int(np.argmax(np.diff(x)[edge - 1 : -edge + 1]))
    (a, b, c), (d, e, f) = (np.percentile(part, (25, 50, 75)) for part in (x[:split], x[split:]))
    caution = 1 + (10 / x.size) ** 2  # quartiles of few samples are uncertain
    if not e - b > max(4 * caution * max(c - a, f - d), 3 * _timer_step_ns(x), 0.005 * b):
        return None
    share = (x.size - split) / x.size
    return TwoModes(share, float(e / b)) if min(share, 1 - share) > _RARER_MODE else None


def _timer_step_ns(x: Vector) -> float:
    """The timer's step: the smallest step between values if values repeat, else 0."""
    values = np.unique(x)
    if values.size in (1, x.size):
        return 0.0
    return min(float(np.diff(values).min()), _TIMER_STEP_NS)
