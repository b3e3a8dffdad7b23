"""Intervals of medians, rules for when to stop sampling, and comparisons of two sets of samples.

Times are in nanoseconds (`_ns`) and in the order they were taken; ratios and shares are plain
numbers (0.01 is 1%). Nothing here assumes a distribution: intervals come from order statistics.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import msgspec
import numpy as np
import numpy.typing as npt

from matbench.records.comparison import Comparison, Verdict

Samples = Sequence[float] | npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SETTLED = "settled"
TIME_IS_UP = "time is up"
ROUNDS_DIFFER = "rounds differ"
#: Launches slower than this, in nanoseconds, are repeated as little as possible: three times.
SLOW_LAUNCH_NS = 1e9
SLOW_MINIMUM = 3

#: Each look at the samples is another chance to stop on an interval that is narrow by luck, so
#: looks are rare: each is at this many times the count of the one before.
GROWTH = 1.4
#: The confidence of the second interval that a settled median must pass; see `StoppingRule`.
GUARD_CONFIDENCE = 0.999


def rounds_of(median_ns: float, rounds: int) -> int:
    """How many of so many rounds a case with that median gets."""
    return min(rounds, SLOW_MINIMUM) if median_ns > SLOW_LAUNCH_NS else rounds


@lru_cache(maxsize=1024)
def _rank(count: int, confidence: float) -> int:
    """The largest k for which the k-th samples from either end enclose the median, or 0.

    They fail to if fewer than k of `count` samples fall on one side of the median, a binomial
    event with p = ½ on each side (David and Nagaraja, Order Statistics, 7.1).
    """
    # Summed as integers: importing scipy's distributions takes longer than measuring a case.
    allowed = Fraction((1 - confidence) / 2) * 2**count
    total, rank, ways = 0, 0, 1
    while rank < count // 2:
        total += ways
        if total > allowed:
            break
        rank += 1
        ways = ways * (count - rank + 1) // rank
    return rank


def median_interval(samples: Samples, confidence: float = 0.95) -> tuple[float, float]:
    """A confidence interval of the median, (low, high), from order statistics alone.

    For independent samples of any distribution, the coverage is at least `confidence`; ties only
    raise it. Too few samples to reach it (fewer than 6 for 95%) give (minimum, maximum); none, or
    any NaN, give (nan, nan).
    """
    x = np.sort(np.asarray(samples, dtype=np.float64))
    if not x.size or np.isnan(x[-1]):
        return math.nan, math.nan
    k = max(_rank(x.size, confidence), 1)
    return float(x[k - 1]), float(x[-k])


def relative_half_width(samples: Samples, confidence: float = 0.95) -> float:
    """Half the width of the median's interval as a share of the median.

    Infinite if it is not defined: fewer than two samples, a median that is not positive, or ends
    that are not finite.
    """
    low, high = median_interval(samples, confidence)
    if len(samples) < 2 or not math.isfinite(high - low):
        return math.inf
    median = float(np.median(samples))
    return (high - low) / 2 / median if median > 0 else math.inf


def spread(samples: Samples) -> float:
    """Half the interquartile range as a share of the median: half of all samples lie within ±it.

    Infinite if it is not defined, as in `relative_half_width`.
    """
    if len(samples) < 2 or not np.isfinite(samples).all():
        return math.inf
    low, median, high = map(float, np.percentile(samples, (25, 50, 75)))
    return (high - low) / 2 / median if median > 0 else math.inf


def drift(samples_ns: Samples, half_width: float | None) -> float:
    """How far the last third's median is from the first third's, as a share of it; 0 if that does
    not change what a median with this half-width, a share of it, means.

    A drift matters if there is a trend by Spearman's rank correlation (with a false-positive rate
    of 0.2%), and if it exceeds both 1% and the interval.
    """
    x = np.asarray(samples_ns, dtype=np.float64)
    if x.size < 10 or np.ptp(x) == 0:
        return 0.0
    _, index, counts = np.unique(x, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[index] - (x.size + 1) / 2  # equal ones share one
    # Divided by the sum of squares without ties, which is the mean over all ways to break ties:
    # many ties (a coarse timer) pull it towards 0, so that a few odd samples do not decide it.
    correlation = float(ranks @ np.arange(x.size)) / (x.size * (x.size**2 - 1) / 12)
    # Fisher's transformation, with the variance for ranks by E. C. Fieller, H. O. Hartley and
    # E. S. Pearson, "Tests for rank correlation coefficients", Biometrika 44 (1957).
    deviations = NormalDist().inv_cdf(1 - 0.002 / 2)
    if not abs(correlation) > math.tanh(deviations * math.sqrt(1.06 / (x.size - 3))):
        return 0.0
    third = x.size // 3
    shift = float(np.median(x[-third:]) / np.median(x[:third])) - 1
    stated = half_width if half_width is not None and math.isfinite(half_width) else 0.0
    return shift if abs(shift) > max(0.01, stated) else 0.0


class StoppingRule(msgspec.Struct, frozen=True):
    """When to stop sampling a case; times in nanoseconds, `precision` as a share.

    The rule looks at the first `minimum` samples, and again whenever the count has grown by 40%.
    Samples are settled if the 95% interval of the median is within ±`precision` and the 99.9%
    interval is not wider than that, or than twice the 95% one (1.7 times is usual). The second
    condition keeps the coverage above 90%: without it, sampling would stop on intervals that are
    narrow by luck.

    Nothing is settled before `minimum_time_ns`. Sampling never stops before `minimum` samples, not
    even after `maximum_time_ns`, except that slow launches may stop after `slow_minimum` samples.

    If other rounds will follow (`is_last` is false), the 95% interval alone decides. Looks count
    from the samples of the rounds `before`.
    """

    precision: float = 0.005
    minimum: int = 10
    minimum_time_ns: float = 0.0
    maximum_time_ns: float = 2e9
    slow_minimum: int = SLOW_MINIMUM
    before: int = 0
    is_last: bool = True

    def of_round(self, number: int, rounds: int, before: int, least: int = 1) -> StoppingRule:
        """The rule for round `number` of `rounds`, from 1, after `before` samples in earlier ones.

        It decides on the samples of all rounds so far. Each round has its share of the time and of
        the samples, and at least `least` new ones. Before the last round the uncertainty may be
        larger, by the square root of all rounds over those so far.
        """
        return msgspec.structs.replace(
            self,
            precision=self.precision * math.sqrt(rounds / number),
            minimum=max(before + least, -(-self.minimum * number // rounds)),
            minimum_time_ns=self.minimum_time_ns / rounds,
            maximum_time_ns=self.maximum_time_ns / rounds,
            slow_minimum=max(before + 1, min(self.slow_minimum, number)),
            before=before,
            is_last=number == rounds,
        )

    def decide(self, samples_ns: Samples, elapsed_ns: float) -> str | None:
        """None to continue, or why to stop: `SETTLED`, or `TIME_IS_UP` if not settled in time.

        To be called after each sample; between looks it is cheap.
        """
        count = len(samples_ns)
        if count < self.minimum and not (
            count >= self.slow_minimum and np.median(samples_ns) > SLOW_LAUNCH_NS
        ):
            return None
        time_is_up = not elapsed_ns < self.maximum_time_ns
        too_early = elapsed_ns < min(self.minimum_time_ns, self.maximum_time_ns)
        look = self.minimum - self.before
        while look < count - self.before:
            look = math.ceil(look * GROWTH)
        if not time_is_up and (too_early or look > count - self.before):
            return None
        half_width = relative_half_width(samples_ns)
        is_settled = half_width <= self.precision
        if is_settled and self.is_last:
            guard = relative_half_width(samples_ns, GUARD_CONFIDENCE)
            is_narrow = guard <= max(self.precision, 2 * half_width)
            is_settled = guard == 0 or (_rank(count, 0.95) > 0 and is_narrow)  # 0: all are equal
        if is_settled:
            return SETTLED
        return TIME_IS_UP if time_is_up else None


def settled_warm_up(durations_ns: Sequence[float]) -> bool:
    """Whether the warm-up can end: the last launch took as long as the one before, ±5%.

    It ends in any case after ten launches or 10 ms, because checks have already run.
    """
    if len(durations_ns) >= 10 or not sum(durations_ns) < 10e6:
        return True
    if len(durations_ns) < 2:
        return False
    before, last = durations_ns[-2:]
    return abs(last - before) <= 0.05 * before


def compare_samples(
    baseline_ns: Samples, candidate_ns: Samples, threshold: float = 0.01, confidence: float = 0.995
) -> Comparison:
    """Decide whether the candidate is FASTER, SLOWER or the SAME as the baseline, or UNDECIDED, by
    samples that were not taken in turns.

    Samples that are not positive, or too few for the confidence, are UNDECIDED. The intervals of
    both medians' logarithms are combined by the squares of their widths (Zou and Donner, Statistics
    in Medicine 27, 2008). No common shape is assumed.
    """
    a, b = np.asarray(baseline_ns, np.float64), np.asarray(candidate_ns, np.float64)
    result = _medians_compared(a, b, confidence)
    if result.reason:
        return result
    # Of logarithms, so that swapping both only changes signs.
    a_median, b_median = math.log(np.median(a)), math.log(np.median(b))
    a_low, a_high = median_interval(np.log(a), confidence)
    b_low, b_high = median_interval(np.log(b), confidence)
    low = b_median - a_median - math.hypot(b_median - b_low, a_high - a_median)
    high = b_median - a_median + math.hypot(b_high - b_median, a_median - a_low)
    return _decided(result, low, high, threshold)


def _medians_compared(a: Vector, b: Vector, confidence: float) -> Comparison:
    """The ratio of medians, without a verdict; the reason says why there cannot be one, if so."""
    counts, reason = (a.size, b.size), ""
    for name, x in (("candidate", b), ("baseline", a)):
        if not (x > 0).all():  # a clock may be too coarse
            reason = f"{np.count_nonzero(~(x > 0))} of {x.size} {name} samples are not positive"
        if not x.size:
            reason = f"no {name} samples"
    ratio = None if reason else float(np.median(b) / np.median(a))
    if not reason and not _rank(min(counts), confidence):
        fewest = math.ceil(1 - math.log2(1 - confidence))
        reason = f"{min(counts)} samples are too few; {fewest} are needed"
    return Comparison(ratio, None, "UNDECIDED", 1, counts, reason)


def _decided(
    result: Comparison, low: float, high: float, threshold: float, least: float = 0.0
) -> Comparison:
    """The comparison with an interval of log(candidate / baseline), and the verdict on that."""
    verdict, reason = verdict_on(low, high, threshold, least)
    interval = math.exp(low), math.exp(high)
    return msgspec.structs.replace(result, interval=interval, verdict=verdict, reason=reason)


def verdict_on(
    low: float, high: float, threshold: float, least: float = 0.0
) -> tuple[Verdict, str]:
    """The verdict on an interval of log(candidate / baseline), and its reason.

    SAME if the whole interval of the ratio lies between 1 / (1 + `threshold`) and 1 + `threshold`;
    else FASTER or SLOWER if it excludes 1. Differences of at most `least` (a share) make neither.
    """
    margin, beyond = math.log1p(threshold), math.log1p(least)
    inside = f"±{threshold * 100:.3g}%"
    if -margin <= low and high <= margin:
        return "SAME", f"the whole interval is within {inside}"
    if high < -beyond:
        return "FASTER", "the whole interval is below 1"
    if low > beyond:
        return "SLOWER", "the whole interval is above 1"
    if low > 0 or high < 0:
        where = "may be due to where code and data lie"
        return "UNDECIDED", f"a difference within ±{least * 100:.3g}% {where}"
    return "UNDECIDED", f"the interval contains 1 and extends beyond {inside}"


class ComparisonPlan(msgspec.Struct, frozen=True):
    """How many interleaved pairs a comparison takes; `maximum_time_ns` in nanoseconds.

    Samples i of both were taken together, in random order. They are evaluated when the number of
    pairs is one of `looks`, each time with an interval of confidence
    1 − (1 − `confidence`) / len(looks), so that `confidence` holds for all looks together
    (Bonferroni), even with drift and autocorrelation. It is that of the median of candidate /
    baseline over the pairs, extended to the ratio of medians.

    The comparison ends when the whole interval is within ±`threshold` or beyond it; an interval
    that merely excludes 1 gives a verdict only at the end, because a small difference deserves more
    pairs.

    Differences of at most `least` do not decide. If pairs were taken in blocks, each with data and
    code at other places, the interval also covers that of the median of the blocks (95%): where
    they lie can make one of two equal kernels faster for as long as they stay there (Mytkowicz et
    al., ASPLOS 2009).
    """

    looks: tuple[int, ...] = (12, 24, 48, 96, 192, 384, 768, 1536)
    threshold: float = 0.01
    confidence: float = 0.995
    maximum_time_ns: float = 10e9
    least: float = 0.0

    @property
    def look_confidence(self) -> float:
        return 1 - (1 - self.confidence) / len(self.looks)

    def decide(
        self,
        baseline_ns: Samples,
        candidate_ns: Samples,
        elapsed_ns: float,
        starts: Sequence[int] = (0,),
    ) -> Comparison | None:
        """None to take another pair, or the final comparison.

        To be called after each pair. Blocks begin with the pairs `starts`. After the first look,
        the comparison ends when `elapsed_ns` reaches `maximum_time_ns`. A sample without a partner
        is ignored until it has one.
        """
        pairs = min(len(baseline_ns), len(candidate_ns))
        time_is_up = not elapsed_ns < self.maximum_time_ns
        last = pairs >= self.looks[-1] or (time_is_up and pairs >= self.looks[0])
        if not last and pairs not in self.looks:
            return None
        a, b = (np.asarray(one[:pairs], np.float64) for one in (baseline_ns, candidate_ns))
        looks = min(bisect_left(self.looks, pairs) + 1, len(self.looks))
        result = _medians_compared(a, b, self.look_confidence)
        result = msgspec.structs.replace(result, looks=looks)
        if result.ratio is None or result.reason:
            return result
        ratios = np.log(b) - np.log(a)
        own = median_interval(ratios, self.look_confidence)
        ends = [math.log(result.ratio), *own]
        if len(starts) > 1:
            blocks = [float(np.median(block)) for block in np.split(ratios, starts[1:])]
            ends += median_interval(blocks)
        low, high = min(ends), max(ends)
        result = _decided(result, low, high, self.threshold, self.least)
        beyond = math.log1p(max(self.threshold, self.least))
        is_clear = result.verdict == "SAME" or low > beyond or high < -beyond
        if not (is_clear or last):
            return None
        if result.verdict == "UNDECIDED":
            end = TIME_IS_UP if pairs < self.looks[-1] else "the maximum"
            reason = f"{result.reason} after {pairs} pairs ({end})"
            if not own[0] <= ends[0] <= own[1]:
                reason += "; the ratio is beyond that of the pairs: times jump between levels"
            result = msgspec.structs.replace(result, reason=reason)
        return result


def end_of_block(start: int) -> int:
    """Where the next block of pairs begins: blocks are of two pairs, later of an eighth of all
    before, so that a few pairs are of several blocks and many are of few."""
    return start + max(2, start // 8)


def interleaved_order(pairs: int, seed: int) -> list[tuple[int, int]]:
    """The order within each of `pairs` pairs, (0, 1) or (1, 0), by a fair coin with a seed.

    0 stands for the baseline, 1 for the candidate. Tosses are independent, not balanced, which
    makes the paired comparison exact for equal kernels.
    """
    coin = random.Random(seed)  # noqa: S311
    return [(0, 1) if coin.random() < 0.5 else (1, 0) for _ in range(pairs)]
