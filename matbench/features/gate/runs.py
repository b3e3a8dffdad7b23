"""Compares samples that one or more processes took at different times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from matbench.analysis import statistics
from matbench.analysis.statistics import Samples
from matbench.records.comparison import Comparison

#: The fewest processes on each side whose medians alone are compared by `compare_runs`.
ENOUGH = 5


class Variation(NamedTuple):
    """The share by which times of unchanged code may differ between two runs.

    `processes`: between two processes. `recordings`: between the medians of two groups of
    processes, because the machine drifts.
    """

    processes: float
    recordings: float


#: Rather too much than too little.
VARIATIONS: dict[Literal["gpu", "cpu"], Variation] = {
    "gpu": Variation(processes=0.05, recordings=0.005),
    "cpu": Variation(processes=0.25, recordings=0.03),
}


def compare_runs(
    baseline_ns: Sequence[Samples], candidate_ns: Sequence[Samples], variation: Variation,
    threshold: float, confidence: float,
) -> Comparison:  # fmt: skip
    """Compare samples that were taken at different times, by one or more processes on each side.

    With `ENOUGH` processes on each side, their medians are compared: the interval is that of the
    shift between two samples of any shape (Hodges and Lehmann, Annals of Mathematical Statistics
    34, 1963), from the ranks of all differences. It is wider by the variation of recordings. With
    fewer processes the samples are compared, and the interval is wider by the variation of
    processes.
    """
    counts = len(baseline_ns), len(candidate_ns)
    allowance = variation.processes
    a, b = (np.concatenate([np.asarray(x) for x in side]) for side in (baseline_ns, candidate_ns))
    result = statistics.compare_samples(a, b, threshold, confidence)
    if result.interval is None or result.ratio is None:
        return msgspec.structs.replace(result, processes=counts)
    log_ratio = math.log(result.ratio)
    low, high = map(math.log, result.interval)
    rank = _shift_rank(*counts, confidence) if min(counts) >= ENOUGH else 0
    if rank:
        allowance = variation.recordings
        first, second = (
            np.log([np.median(x) for x in side]) for side in (baseline_ns, candidate_ns)
        )
        log_ratio = float(np.median(second) - np.median(first))
        shifts = np.sort(np.subtract.outer(second, first), axis=None)
        low, high = min(shifts[rank - 1], log_ratio), max(shifts[-rank], log_ratio)
    low, high = low - math.log1p(allowance), high + math.log1p(allowance)
    verdict, reason = statistics.verdict_on(low, high, threshold)
    return msgspec.structs.replace(
        result,
        ratio=math.exp(log_ratio),
        interval=(math.exp(low), math.exp(high)),
        verdict=verdict,
        reason=reason,
        processes=counts,
        allowance=allowance,
    )


@lru_cache(maxsize=64)
def _shift_rank(m: int, n: int, confidence: float) -> int:
    """The largest k for which the k-th differences from either end enclose the shift, or 0.

    They fail to if the Mann-Whitney statistic is below k, on either side. Its distribution has
    the generating function of the Gaussian binomial coefficient.
    """
    ways = np.zeros(m * n + 1, dtype=object)
    ways[0] = 1
    for i in range(1, n + 1):
        ways[m + i :] -= ways[: -m - i]  # times 1 − q^(m + i)
        for start in range(i):  # divided by 1 − q^i
            ways[start::i] = np.cumsum(ways[start::i])
    below = np.cumsum(ways)
    allowed = Fraction((1 - confidence) / 2) * int(below[-1])
    return int(np.count_nonzero(below <= allowed))
