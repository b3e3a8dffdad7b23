"""Notes on problems of samples: outliers, drift, autocorrelation and two modes."""

from __future__ import annotations

import math
import re
from statistics import NormalDist

import numpy as np

from matbench.analysis.statistics import Samples, Vector, count_bad

#: The fewest samples that notes are made for; fewer show no pattern.
NOTES_MINIMUM = 10
#: The false-positive rate of the tests for drift and for autocorrelation.
NOTES_LEVEL = 0.002
#: A note about samples matters if its effect may move the median by this share.
NOTABLE = 0.01
#: If the rarer of two modes has more than this share, the median may fall into either.
MODES_MINIMUM = 0.4
#: The coarsest step of an event timer; larger gaps between samples have other causes.
TIMER_STEP_NS = 1100.0


def notes(samples_ns: Samples) -> tuple[str, ...]:
    """Notes that a reader of the median should know, one clause each.

    Outliers, drift, autocorrelation and two modes; for independent normal samples, each has a
    false-positive rate below 0.5%. Fewer than ten samples, or equal ones, give no notes.
    """
    x = np.asarray(samples_ns, dtype=np.float64)
    if bad := count_bad(x):
        return (f"{bad} of {x.size} samples are not positive and finite",)
    if x.size < NOTES_MINIMUM or np.ptp(x) == 0:
        return ()
    found = (_outliers(x), _drift(x), _autocorrelation(x), _two_modes(x))
    return tuple(note for note in found if note)


def _timer_step_ns(x: Vector) -> float:
    """The timer's step: the smallest step between values if values repeat, else 0."""
    values = np.unique(x)
    if values.size in (1, x.size):
        return 0.0
    return min(float(np.diff(values).min()), TIMER_STEP_NS)


def _caution(count: int) -> float:
    """The factor that widens limits based on quartiles, which are uncertain for few samples."""
    return 1 + (10 / count) ** 2


def _outliers(x: Vector) -> str | None:
    """Samples "far out" by Tukey's fences: 3 interquartile ranges beyond the quartiles (1977).

    A timer's step blurs the quartiles, and 0.5% of the median is never far out.
    """
    low, median, high = np.percentile(x, (25, 50, 75))
    fence = max(3 * _caution(x.size) * (high - low + _timer_step_ns(x)), 0.005 * median)
    outside = x[(x < low - fence) | (x > high + fence)]
    if not outside.size:
        return None
    farthest = outside[np.argmax(np.abs(outside - median))] / median
    verb = "is an outlier" if outside.size == 1 else "are outliers"
    return f"{outside.size} of {x.size} samples {verb} (up to {farthest:.3g} × the median)"


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
    """The critical value of the rank correlation of `count` independent pairs at `NOTES_LEVEL`.

    By Fisher's transformation, with the variance for ranks by E. C. Fieller, H. O. Hartley and
    E. S. Pearson, "Tests for rank correlation coefficients", Biometrika 44 (1957).
    """
    return math.tanh(NormalDist().inv_cdf(1 - NOTES_LEVEL / 2) * math.sqrt(1.06 / (count - 3)))


def _drift(x: Vector) -> str | None:
    """A trend: Spearman's rank correlation with time, if the median moves by at least 0.1%."""
    time = _centred_ranks(np.arange(x.size, dtype=np.float64))
    if not abs(_correlation(_centred_ranks(x), time, x.size)) > _critical(x.size):
        return None
    third = x.size // 3
    shift = float(np.median(x[-third:]) / np.median(x[:third])) - 1
    if not abs(shift) >= 0.001:
        return None
    return f"drifting: {shift:+.1%} from the first to the last third of the samples"


def _autocorrelation(x: Vector) -> str | None:
    """Serial correlation of ranks at lag 1; its mean is −1/n (Wald and Wolfowitz, 1943)."""
    ranks = _centred_ranks(x)
    r = _correlation(ranks[:-1], ranks[1:], x.size)
    if not abs(r + 1 / x.size) > _critical(x.size):
        return None
    effect = "narrow" if r > 0 else "wide"
    return f"autocorrelated: r = {r:.2f} from sample to sample, so the interval is too {effect}"


def _two_modes(x: Vector) -> str | None:
    """Two groups, split at the largest gap of the middle 60%, far apart for their spread."""
    if x.size < 2 * NOTES_MINIMUM:
        return None
    x = np.sort(x)
    edge = x.size // 5
    split = edge + int(np.argmax(np.diff(x)[edge - 1 : -edge + 1]))
    (a, b, c), (d, e, f) = (np.percentile(part, (25, 50, 75)) for part in (x[:split], x[split:]))
    if not e - b > max(4 * _caution(x.size) * max(c - a, f - d), 3 * _timer_step_ns(x), 0.005 * b):
        return None
    share = (x.size - split) / x.size
    return f"two modes: {share:.0%} of the samples take {e / b:.3g} times as long as the others"


#: The texts of `notes`, in the order of their functions; records keep them, so they must match.
_NOTES = re.compile(
    r"[\d,]+ of [\d,]+ samples (?P<outliers>is an outlier|are outliers) "
    r"|drifting: (?P<drift>[+-][\d.]+)%"
    r"|autocorrelated: r = (?P<r>-?[\d.]+)"
    r"|two modes: (?P<share>\d+)% of the samples take (?P<factor>[\d.e+]+) times"
    r"|(?P<processes>\d+) processes, whose medians differ"
)


def matters(note: str, half_width: float | None) -> bool:
    """Whether a note changes the meaning of a median with this half-width, a share of it.

    Of the texts of `notes`: outliers do not matter, for they do not move a median, and nor does a
    difference between processes, which the interval covers. A drift matters
    if it exceeds both 1% and the interval, two modes if they are that far apart and about equally
    frequent. Autocorrelation matters if the interval is below 1%, but would not be if it were
    computed for the equivalent number of independent samples. Any other note matters.
    """
    found = _NOTES.match(note)
    if found is None:
        return True
    if found["outliers"] or found["processes"]:
        return False
    stated = half_width if half_width is not None and math.isfinite(half_width) else 0.0
    if found["drift"]:
        return abs(float(found["drift"])) / 100 >= max(NOTABLE, stated)
    if found["r"]:
        r = float(found["r"])
        widened = stated * math.sqrt((1 + r) / (1 - r)) if r < 1 else math.inf
        return r > 0 and stated < NOTABLE <= widened
    share, factor = int(found["share"]) / 100, float(found["factor"])
    return min(share, 1 - share) > MODES_MINIMUM and factor - 1 >= max(NOTABLE, stated)
