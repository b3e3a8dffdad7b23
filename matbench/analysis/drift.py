"""A drift in samples that may move their median."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from matbench.analysis.statistics import Samples, Vector

#: Fewer samples show no trend.
_FEWEST = 10
#: The false-positive rate of the test.
_LEVEL = 0.002
#: A drift matters if it may move the median by this share.
NOTABLE = 0.01


def drift(samples_ns: Samples, half_width: float | None) -> float:
    """How far the last third's median is from the first third's, as a share of it; 0 if that does
    not change what a median with this half-width, a share of it, means.

    A drift matters if there is a trend by Spearman's rank correlation, and if it exceeds both 1%
    and the interval.
    """
    x = np.asarray(samples_ns, dtype=np.float64)
    if x.size < _FEWEST or np.ptp(x) == 0:
        return 0.0
    time = np.arange(x.size)
    # Divided by the sum of squares without ties, which is the mean over all ways to break ties:
    # many ties (a coarse timer) pull it towards 0, so that a few odd samples do not decide it.
    correlation = float(_centred_ranks(x) @ time) / (x.size * (x.size**2 - 1) / 12)
    if not abs(correlation) > _critical(x.size):
        return 0.0
    third = x.size // 3
    shift = float(np.median(x[-third:]) / np.median(x[:third])) - 1
    stated = half_width if half_width is not None and math.isfinite(half_width) else 0.0
    return shift if abs(shift) >= max(NOTABLE, stated) else 0.0


def _centred_ranks(x: Vector) -> Vector:
    """Ranks of the samples minus their mean; equal samples share a rank."""
    _, index, counts = np.unique(x, return_inverse=True, return_counts=True)
    shared = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(shared[index] - (x.size + 1) / 2, dtype=np.float64)


def _critical(count: int) -> float:
    """The critical value of the rank correlation of `count` independent pairs at `_LEVEL`.

    By Fisher's transformation, with the variance for ranks by E. C. Fieller, H. O. Hartley and
    E. S. Pearson, "Tests for rank correlation coefficients", Biometrika 44 (1957).
    """
    return math.tanh(NormalDist().inv_cdf(1 - _LEVEL / 2) * math.sqrt(1.06 / (count - 3)))
