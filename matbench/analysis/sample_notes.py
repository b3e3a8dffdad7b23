"""What may be wrong with samples, in words: outliers, drift, autocorrelation, two modes."""

from __future__ import annotations

import math
import re
from statistics import NormalDist

import numpy as np

from matbench.analysis.statistics import Samples, Vector, count_bad

#: Notes are about at least so many samples; fewer show no pattern.
NOTES_MINIMUM = 10
#: How often, at most, independent samples are said to drift, or to be autocorrelated.
NOTES_LEVEL = 0.002
#: A note about samples matters where what it tells of may move the median by this share.
NOTABLE = 0.01
#: Of two modes the rarer has at least this share where the median may fall into either.
MODES_MINIMUM = 0.4
#: Coarsest step of an event timer; a larger gap between samples is not the timer's.
TIMER_STEP_NS = 1100.0


def notes(samples_ns: Samples) -> tuple[str, ...]:
    """What a reader of the median should know about its samples, one clause each, in words.

    Outliers, drift, autocorrelation and two modes; each is said without cause less than once in
    200 sets of independent normal samples. Fewer than ten samples, or equal ones, give none.
    """
    x = np.asarray(samples_ns, dtype=np.float64)
    if bad := count_bad(x):
        return (f"{bad} of {x.size} samples are not positive and finite",)
    if x.size < NOTES_MINIMUM or np.ptp(x) == 0:
        return ()
    found = (_outliers(x), _drift(x), _autocorrelation(x), _two_modes(x))
    return tuple(note for note in found if note)


def _timer_step_ns(x: Vector) -> float:
    """The smallest step between values where values repeat (the timer's), else 0."""
    values = np.unique(x)
    if values.size in (1, x.size):
        return 0.0
    return min(float(np.diff(values).min()), TIMER_STEP_NS)


def _caution(count: int) -> float:
    """How much wider limits stand that rest on quartiles, for those of few samples are unsure."""
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
    return f"{outside.size} of {x.size} samples {verb} (up to {farthest:.3g} of the median)"


def _centred_ranks(x: Vector) -> Vector:
    """Ranks of the samples less their mean; equal samples share theirs."""
    _, index, counts = np.unique(x, return_inverse=True, return_counts=True)
    shared = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(shared[index] - (x.size + 1) / 2, dtype=np.float64)


def _correlation(a: Vector, b: Vector, count: int) -> float:
    """The correlation of ranks, over the sum of squares that they would have without ties.

    So it is the mean over all ways to break the ties, and many ties (a coarse timer) draw it to
    0 instead of leaving it to a few odd samples.
    """
    return float(a @ b) / (count * (count**2 - 1) / 12)


def _critical(count: int) -> float:
    """The correlation of ranks that `count` independent pairs exceed at `NOTES_LEVEL`.

    By Fisher's transformation, whose variance for ranks is that of E. C. Fieller, H. O. Hartley and
    E. S. Pearson, "Tests for rank correlation coefficients", Biometrika 44 (1957).
    """
    return math.tanh(NormalDist().inv_cdf(1 - NOTES_LEVEL / 2) * math.sqrt(1.06 / (count - 3)))


def _drift(x: Vector) -> str | None:
    """A trend by Spearman's rank correlation with time, if it moves the median by 0.1%."""
    time = _centred_ranks(np.arange(x.size, dtype=np.float64))
    if not abs(_correlation(_centred_ranks(x), time, x.size)) > _critical(x.size):
        return None
    third = x.size // 3
    shift = float(np.median(x[-third:]) / np.median(x[:third])) - 1
    if not abs(shift) >= 0.001:
        return None
    return f"drifting: {shift:+.1%} from the first to the last third of the samples"


def _autocorrelation(x: Vector) -> str | None:
    """Serial correlation of ranks at lag 1, −1/n in the mean (Wald and Wolfowitz, 1943)."""
    ranks = _centred_ranks(x)
    r = _correlation(ranks[:-1], ranks[1:], x.size)
    if not abs(r + 1 / x.size) > _critical(x.size):
        return None
    effect = "narrow" if r > 0 else "wide"
    return f"autocorrelated: r = {r:.2f} from sample to sample, so the interval is too {effect}"


def _two_modes(x: Vector) -> str | None:
    """Two groups, parted at the largest gap of the middle 60%, far apart for their own spread."""
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


#: What `notes` say, in the order of their functions.
_NOTES = re.compile(
    r"[\d,]+ of [\d,]+ samples (?P<outliers>is an outlier|are outliers) "
    r"|drifting: (?P<drift>[+-][\d.]+)%"
    r"|autocorrelated: r = (?P<r>-?[\d.]+)"
    r"|two modes: (?P<share>\d+)% of the samples take (?P<factor>[\d.e+]+) times"
)


def matters(note: str, half_width: float | None) -> bool:
    """Whether a note changes what to make of a median with this half-width, a share of it.

    Of those that `notes` makes: outliers do not move a median. A drift matters when it exceeds both
    1% and the interval, two modes when they are that far apart and nearly as frequent.
    Autocorrelation matters when the interval says less than 1% and, with the samples counted as the
    fewer independent ones that they amount to, would say more. Any other note matters.
    """
    found = _NOTES.match(note)
    if found is None:
        return True
    if found["outliers"]:
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
