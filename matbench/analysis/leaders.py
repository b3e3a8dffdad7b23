"""Which of several cases may be the fastest, from how much their times vary between rounds.

Samples of one round are closer together than the medians of rounds, in each of which all cases of a
size take their turn: between rounds, clocks and other programs change. So cases with several rounds
are compared by their medians, with the variance between rounds pooled over the cases, all with all
(Tukey and Kramer's procedure); cases of one round by intervals, with a margin for other rounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from matbench.records.outcome import Timing

CONFIDENCE = 0.95
#: Smaller differences never decide: in one process, they may be fixed by where memory lies.
LEAST = {"gpu": 0.005, "cpu": 0.03}
#: The same for cases that were all timed in one round, so that nothing is known of others.
LEAST_OF_ONE_ROUND = {"gpu": 0.005, "cpu": 0.25}
#: The variance is that of cases that are less than so much slower than the fastest, as a logarithm.
_ALIKE = math.log(2)
#: So many rounds have one to spare at either end.
_LEAST_TRIMMED = 7

Vector = npt.NDArray[np.float64]


def round_medians_ns(timing: Timing) -> list[float]:
    """The median of each round, in nanoseconds; of all samples if they are of one round."""
    if not timing.rounds:
        return [timing.median_ns] if timing.median_ns is not None else []
    ends = list(itertools.accumulate(timing.rounds, initial=0))
    samples = timing.samples_ns
    return [float(np.median(samples[i:j])) for i, j in itertools.pairwise(ends) if j > i]


def may_lead(timings: Sequence[Timing], kind: Literal["gpu", "cpu"]) -> list[bool]:
    """Whether none of the others is known to be faster, for each; `kind` is that of the device.

    All have a positive median, and the one with the smallest leads. The probability that any
    difference between equal cases decides is at most 1 − `CONFIDENCE`.
    """
    cases = [_trimmed(np.log(round_medians_ns(timing))) for timing in timings]
    first = min(range(len(cases)), key=lambda place: timings[place].median_ns or math.inf)
    fastest, rounds, _ = cases[first]
    alike = [case for case in cases if case[0] - fastest < _ALIKE]
    freedom = sum(count - 1 for _, count, _ in alike)
    if not freedom:  # by the intervals of the medians, which tell nothing of other rounds
        ends_ns = [
            timing.interval_ns or (math.exp(mean), math.exp(mean))
            for timing, (mean, *_) in zip(timings, cases, strict=True)
        ]
        return [low <= (1 + LEAST_OF_ONE_ROUND[kind]) * ends_ns[first][1] for low, _ in ends_ns]
    deviation = math.sqrt(sum(squares for _, _, squares in alike) / freedom)
    width = deviation * studentized_range(len(alike), freedom) / math.sqrt(2)
    least = math.log1p(LEAST[kind])
    return [
        mean - fastest <= max(least, width * math.sqrt(1 / count + 1 / rounds))
        for mean, count, _ in cases
    ]


def _trimmed(logarithms: Vector) -> tuple[float, int, float]:
    """The mean of the rounds of a case, how many it is of, and the sum of squares around it; of
    seven or more, without the fastest and the slowest.

    A processor that is busy elsewhere slows a whole round. The squares are then those of winsorized
    values (K. K. Yuen, Biometrika 61, 1974).
    """
    x = np.sort(logarithms)
    kept = x
    if x.size >= _LEAST_TRIMMED:
        kept = x[1:-1]
        x = np.clip(x, x[1], x[-2])
    return float(kept.mean()), kept.size, float(np.square(x - x.mean()).sum())


@lru_cache(maxsize=256)
def studentized_range(count: int, freedom: int, confidence: float = CONFIDENCE) -> float:
    """The quantile of the range of `count` ≥ 2 normal means over their estimated deviation.

    `freedom`: the degrees of freedom of the estimate. By numerical integration, to four digits:
    importing scipy's distributions takes longer than measuring a case.
    """
    z = np.linspace(-9, 9, 1801)
    below = np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in z])
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    # The range is at most w: z is the largest of `count`, and the others lie within w below it.
    ranges = np.linspace(0, 18, 361)
    inside = below - np.interp(z - ranges[:, None], z, below, left=0.0)
    within = count * (inside ** (count - 1) @ density) * (z[1] - z[0])
    deviation = 8 / math.sqrt(2 * freedom)
    s = np.linspace(max(1e-9, 1 - deviation), 1 + deviation, 801)
    half = freedom / 2
    logarithm = math.log(2) + half * math.log(half) - math.lgamma(half)
    weights = np.exp(logarithm + (freedom - 1) * np.log(s) - half * s * s) * (s[1] - s[0])
    low, high = 0.0, 200.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        if weights @ np.interp(middle * s, ranges, within) < confidence:
            low = middle
        else:
            high = middle
    return high
