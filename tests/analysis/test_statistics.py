"""Statistics on synthetic samples: coverage of the intervals, and error rates of the verdicts.

Every simulation is seeded, so all figures are reproducible.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.optional import present

from matbench.analysis.statistics import (
    SETTLED,
    TIME_IS_UP,
    ComparisonPlan,
    StoppingRule,
    compare_samples,
    drift,
    end_of_block,
    interleaved_order,
    median_interval,
    relative_half_width,
    settled_warm_up,
    spread,
    verdict_on,
)
from matbench.records.comparison import Comparison

Vector = npt.NDArray[np.float64]
Shape = int | tuple[int, int]


def autocorrelated(rng: np.random.Generator, shape: Shape, phi: float = 0.7) -> Vector:
    """AR(1) with unit variance."""
    from scipy.signal import lfilter  # which takes a second to import

    steps = rng.normal(0, math.sqrt(1 - phi**2), shape)
    return np.asarray(lfilter([1], [1, -phi], steps, axis=-1))


def times(noise: Vector, sigma: float, unit_ns: float = 1e6) -> Vector:
    return unit_ns * np.maximum(1 + sigma * noise, 0.1)


Noise = Callable[[np.random.Generator, Shape], Vector]

#: The same examples on every run.
exact = settings(derandomize=True)

DRAWS = 1000
COMPARISONS = 40


def contaminated(rng: np.random.Generator, shape: Shape) -> Vector:
    """Normal, with one sample in twenty far slower, as on a busy machine."""
    return rng.normal(0, 1, shape) + (rng.random(shape) < 0.05) * rng.exponential(20, shape)


def two_modes(rng: np.random.Generator, shape: Shape) -> Vector:
    """Two equal modes, so that the median lies where there are no samples: the hardest case."""
    return np.where(rng.random(shape) < 0.5, -1.0, 1.0) + rng.normal(0, 0.2, shape)


#: Noise of about unit scale, and its median.
INDEPENDENT: dict[str, tuple[Noise, float]] = {
    "normal": (lambda rng, shape: rng.normal(0, 1, shape), 0.0),
    "lognormal": (lambda rng, shape: rng.lognormal(0, 1, shape), 1.0),
    "heavy-tailed": (lambda rng, shape: rng.standard_t(2, shape), 0.0),
    "contaminated": (contaminated, 0.0643),
    "two modes": (two_modes, 0.0),
    "quantised": (lambda rng, shape: np.round(rng.normal(0, 1, shape) * 2) / 2, 0.0),
}


def covers(interval: tuple[float, float], value: float) -> bool:
    return interval[0] <= value <= interval[1]


# How well the median is known


@pytest.mark.parametrize("count", [10, 25, 100])
@pytest.mark.parametrize("name", INDEPENDENT)
def test_the_interval_covers_the_median(name: str, count: int) -> None:
    noise, median = INDEPENDENT[name]
    draws = noise(np.random.default_rng(count), (DRAWS, count))
    coverage = np.mean([covers(median_interval(draw), median) for draw in draws])
    assert coverage >= 0.93


@pytest.mark.parametrize("count", [6, 7, 10, 11, 20, 41])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.995])
def test_the_interval_is_the_narrowest_of_its_confidence(count: int, confidence: float) -> None:
    low, high = median_interval([float(x) for x in range(count)], confidence)
    assert low + high == count - 1

    def coverage(k: float) -> float:
        """From the sample of 0-based rank k to the one as far from the other end."""
        return 1 - float(2 * sum(math.comb(count, i) for i in range(int(k) + 1)) / 2**count)

    reachable = coverage(0) >= confidence
    assert not reachable or coverage(low) >= confidence
    assert not (coverage(low + 1) >= confidence)
    assert reachable or (low, high) == (0, count - 1)


@pytest.mark.parametrize("samples", [[], [1.0, math.nan, 2.0], [math.nan] * 20])
def test_no_interval_without_numbers(samples: list[float]) -> None:
    assert all(math.isnan(end) for end in median_interval(samples))
    assert relative_half_width(samples) == math.inf
    assert spread(samples) == math.inf


@pytest.mark.parametrize("samples", [[1.0], [0.0] * 10, [-1.0] * 10, [math.inf] * 10])
def test_no_share_of_what_is_no_positive_time(samples: list[float]) -> None:
    assert relative_half_width(samples) == math.inf
    assert spread(samples) == math.inf


def test_spread_and_half_width_are_shares_of_the_median() -> None:
    samples = [float(x) for x in range(80, 121)]
    assert spread(samples) == pytest.approx(0.1)
    assert median_interval(samples) == (93.0, 107.0)
    assert relative_half_width(samples) == pytest.approx(0.07)
    assert spread([7.0] * 5) == relative_half_width([7.0] * 5) == 0
    assert (spread([3.0, 5.0]), relative_half_width([3.0, 5.0])) == (0.125, 0.25)


# When to stop


def take(rule: StoppingRule, samples_ns: Vector, wall_ns: float) -> tuple[int, str]:
    """Sample like a benchmark, each sample taking `wall_ns` of the budget: count and reason."""
    for count in range(1, len(samples_ns) + 1):
        reason = rule.decide(samples_ns[:count], count * wall_ns)
        if reason is not None:
            return count, reason
    raise AssertionError("it never stopped")


@pytest.mark.parametrize("sigma", [0.004, pytest.param(0.012, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", INDEPENDENT)
def test_the_interval_covers_the_median_under_the_stopping_rule(name: str, sigma: float) -> None:
    noise, median = INDEPENDENT[name]
    rule = StoppingRule()
    most = 400
    looks = [n for n in range(1, most + 1) if n == most or rule.decide([1.0] * n, 0)]
    draws = times(noise(np.random.default_rng(1), (DRAWS, most)), sigma)
    covered, reasons = 0, Counter[str]()
    for draw in draws:
        for count in looks:  # the rule does not look at other counts
            reason = rule.decide(draw[:count], 2e9 if count == most else 0)
            if reason:
                break
        reasons[present(reason)] += 1
        covered += covers(median_interval(draw[:count]), float(times(np.array(median), sigma)))
    assert reasons.total() == DRAWS
    assert covered / DRAWS >= 0.90


def test_looks_are_rare() -> None:
    rule = StoppingRule()
    looks = [n for n in range(1, 200) if rule.decide([1.0] * n, 0)]
    assert looks == [10, 14, 20, 28, 40, 56, 79, 111, 156]


def test_an_interval_that_fell_into_one_of_two_modes_is_not_settled() -> None:
    quiet = np.sort(times(np.random.default_rng(0).normal(0, 1, 40), 1e-4))
    lucky = np.where(np.arange(40) < 28, quiet, 1.1 * quiet)
    assert relative_half_width(lucky) < 0.001
    assert StoppingRule().decide(quiet, 0) == SETTLED
    assert StoppingRule().decide(lucky, 0) is None


@pytest.mark.parametrize(("wider", "reason"), [(2.0, SETTLED), (2.02, None)])
def test_nothing_settled_has_a_wide_interval_of_999(wider: float, reason: str | None) -> None:
    inner, outer = np.full(7, 2**-8), np.full(13, wider * 2**-8)
    samples = 1e5 * (1 + np.concatenate([-outer, -inner, inner, outer]))
    assert relative_half_width(samples) == 2**-8
    assert StoppingRule(precision=2**-8).decide(samples, 0) == reason


@pytest.mark.parametrize(
    ("sigma", "ns", "count", "reason"),
    [
        (0.0, 1e5, 10, SETTLED),
        (0.001, 1e6, 10, SETTLED),
        (0.2, 40e6, 50, TIME_IS_UP),
        (0.001, 40e6, 10, SETTLED),
        (0.05, 40e6, 50, TIME_IS_UP),
        (0.1, 0.5e9, 10, TIME_IS_UP),
    ],
)
def test_it_takes_the_least_until_settled(sigma: float, ns: float, count: int, reason: str) -> None:
    samples = times(np.random.default_rng(0).normal(0, 1, 200), sigma, ns)
    assert take(StoppingRule(), samples, ns) == (count, reason)


def test_before_the_last_round_the_95_percent_interval_decides_alone() -> None:
    lucky = [90.0, *[100.0] * 8, 110.0]  # the wider interval spans all of it
    rounds = [StoppingRule(is_last=is_last).decide(lucky, 1.0) for is_last in (False, True)]
    assert rounds == ["settled", None]


def test_a_launch_over_a_second_takes_three() -> None:
    samples = times(np.random.default_rng(0).normal(0, 1, 20), 0.001, 1.5e9)
    assert take(StoppingRule(), samples, 1.5e9) == (3, TIME_IS_UP)
    assert take(StoppingRule(maximum_time_ns=60e9), samples, 1.5e9) == (10, SETTLED)
    assert take(StoppingRule(), np.full(20, 1.5e9), 1.5e9) == (3, SETTLED)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_what_is_no_time_never_settles(bad: float) -> None:
    for samples in ([bad] * 10, [bad] * 6 + [1e6] * 4):
        assert StoppingRule().decide(samples, 0) is None
        assert StoppingRule().decide(samples, 2e9) == TIME_IS_UP
    assert StoppingRule().decide([1.0, 2.0] * 6, math.nan) == TIME_IS_UP


def test_warming_up_ends_when_launches_stop_changing_or_after_ten_or_10_ms() -> None:
    for taken in ([], [5e6], [5e6, 2e6], [5e6, 2e6, 1.0e6], [1.0e6, 1.2e6], [1.0, 2.0] * 4):
        assert not settled_warm_up(taken)
    for taken in ([5e6, 2e6, 1.0e6, 1.04e6], [1.0, 2.0] * 5, [11e6], [6e6, 3e6, 2e6]):
        assert settled_warm_up(taken)
    assert settled_warm_up([math.nan])
    assert settled_warm_up([0.0, 0.0])


# Two samples


def pairs(
    rng: np.random.Generator, noise: Noise, sigma: float, slowdown: float, count: int
) -> tuple[Vector, Vector]:
    """Baseline and candidate taken in turns, from one stream of noise."""
    stream = times(noise(rng, 2 * count), sigma).reshape(count, 2)
    taken = np.array(interleaved_order(count, int(rng.integers(2**32))))
    return stream[taken == 0], stream[taken == 1] * slowdown


def conclude(plan: ComparisonPlan, baseline: Vector, candidate: Vector) -> Comparison:
    for count in plan.looks:
        result = plan.decide(baseline[:count], candidate[:count], 0)
        if result is not None:
            return result
    raise AssertionError("it never ended")


def drifting(rng: np.random.Generator, shape: Shape) -> Vector:
    return rng.normal(0, 1, shape) + np.linspace(0, 10, int(np.prod(shape)))


DEPENDENT: dict[str, Noise] = {
    **{name: noise for name, (noise, _) in INDEPENDENT.items() if name != "quantised"},
    "autocorrelated": lambda rng, shape: autocorrelated(rng, shape, 0.9),
    "drifting": drifting,
    "quantised": lambda rng, shape: np.round(rng.normal(0, 1, shape) * 2) / 2,
}


@pytest.mark.parametrize("sigma", [pytest.param(0.005, marks=pytest.mark.long), 0.01])
@pytest.mark.parametrize("name", DEPENDENT)
def test_a_kernel_against_itself_is_the_same(name: str, sigma: float) -> None:
    rng = np.random.default_rng(11)
    plan = ComparisonPlan()
    verdicts = Counter(
        conclude(plan, *pairs(rng, DEPENDENT[name], sigma, 1.0, plan.looks[-1])).verdict
        for _ in range(COMPARISONS)
    )
    assert verdicts["FASTER"] + verdicts["SLOWER"] == 0
    assert verdicts["SAME"] >= 0.9 * COMPARISONS


@pytest.mark.parametrize("sigma", [pytest.param(0.005, marks=pytest.mark.long), 0.01])
@pytest.mark.parametrize("name", DEPENDENT)
def test_two_percent_slower_is_found(name: str, sigma: float) -> None:
    rng = np.random.default_rng(12)
    plan = ComparisonPlan()
    results = [
        conclude(plan, *pairs(rng, DEPENDENT[name], sigma, 1.02, plan.looks[-1]))
        for _ in range(COMPARISONS)
    ]
    assert sum(result.verdict == "SLOWER" for result in results) >= 0.95 * COMPARISONS
    assert np.mean([covers(result.interval or (0, 0), 1.02) for result in results]) >= 0.97


def test_unpaired_intervals_cover_the_ratio_of_medians() -> None:
    """Shapes and counts differ, as for two kernels: nominal coverage 99.5%, required 99%."""
    rng = np.random.default_rng(14)
    for a_name, b_name, a_count, b_count in (
        ("normal", "normal", 10, 10),
        ("normal", "lognormal", 50, 20),
        ("contaminated", "two modes", 20, 60),
        ("heavy-tailed", "quantised", 12, 100),
    ):
        (a_noise, a_median), (b_noise, b_median) = INDEPENDENT[a_name], INDEPENDENT[b_name]
        a = times(a_noise(rng, (250, a_count)), 0.01)
        b = times(b_noise(rng, (250, b_count)), 0.01)
        ratio = (1 + 0.01 * b_median) / (1 + 0.01 * a_median)
        results = [compare_samples(x, y) for x, y in zip(a, b, strict=True)]
        assert np.mean([covers(r.interval or (0, 0), ratio) for r in results]) >= 0.99


def test_an_interval_that_ends_at_1_contains_it() -> None:
    for ends in ((0.0, 0.1), (-0.1, 0.0)):
        verdict, reason = verdict_on(*ends, threshold=0.01)
        assert (verdict, "contains 1" in reason) == ("UNDECIDED", True)


def in_turns(baseline: Sequence[float], candidate: Sequence[float], **plan: float) -> Comparison:
    """The pairs compared at one look."""
    once = ComparisonPlan(looks=(min(len(baseline), len(candidate)),), **plan)
    return present(once.decide(baseline, candidate, 0))


HOW = pytest.mark.parametrize("compared", [compare_samples, in_turns])
Compared = Callable[..., Comparison]


@HOW
@pytest.mark.parametrize(
    ("candidate", "verdict"), [(5.0, "SAME"), (5.049, "SAME"), (5.06, "SLOWER"), (4.5, "FASTER")]
)
def test_constant_samples(candidate: float, verdict: str, compared: Compared) -> None:
    for count in (1, 3, 8):
        few = compared([5.0] * count, [candidate] * count)
        assert few.verdict == "UNDECIDED"
        assert few.interval is None
        assert few.reason.startswith(f"{count} samples are too few; 9 are needed")
    assert compared([5.0] * 9, [candidate] * 9).verdict == verdict


@HOW
@pytest.mark.parametrize("bad", [math.nan, 0.0, -1.0])
def test_what_is_no_time_yields_no_verdict(bad: float, compared: Compared) -> None:
    good = [5.0] * 30
    for spoilt in ([*good[:-1], bad], [bad] * 30):
        for result, name in (
            (compared(good, spoilt), "candidate"),
            (compared(spoilt, good), "baseline"),
            (compared(spoilt, spoilt), "baseline"),
        ):
            assert result.verdict == "UNDECIDED"
            assert f"{name} samples are not positive" in result.reason
            assert (result.ratio, result.interval) == (None, None)


def test_no_samples_yield_no_verdict() -> None:
    assert compare_samples([], [1.0] * 20).reason == "no baseline samples"
    assert compare_samples([1.0] * 20, []).reason == "no candidate samples"
    assert compare_samples([], []).verdict == "UNDECIDED"


SWAPPED = {"FASTER": "SLOWER", "SLOWER": "FASTER", "SAME": "SAME", "UNDECIDED": "UNDECIDED"}
near = st.floats(0.98, 1.02)


@exact
@given(
    st.lists(st.tuples(near, near), min_size=1, max_size=40),
    st.sampled_from([1.0, 1.005, 1.03, 0.9]),
    st.sampled_from([compare_samples, in_turns]),
)
def test_turned_verdict(
    drawn: list[tuple[float, float]], slowdown: float, compared: Compared
) -> None:
    a = [x for x, _ in drawn]
    b = [y * slowdown for _, y in drawn]
    there = compared(a, b, confidence=0.9)
    back = compared(b, a, confidence=0.9)
    assert back.verdict == SWAPPED[there.verdict]
    assert there.ratio is not None
    assert back.ratio == pytest.approx(1 / there.ratio, rel=1e-12)
    assert (there.interval is None) == (back.interval is None)
    if there.interval and back.interval:
        assert back.interval == pytest.approx([1 / end for end in there.interval[::-1]], rel=1e-12)
        assert there.interval[0] * (1 - 1e-12) <= there.ratio <= there.interval[1] * (1 + 1e-12)


def test_a_verdict_needs_the_pairs_and_the_medians_to_agree() -> None:
    """Most pairs say slower, the medians say equal: the interval includes both."""
    baseline = [100.0] * 23 + [200.0] * 15 + [300.0] * 23
    candidate = [104.0] * 23 + [200.0] * 15 + [312.0] * 23
    result = in_turns(baseline, candidate)
    assert result.ratio == 1
    assert result.interval is not None
    assert result.interval[0] == 1
    assert result.interval[1] == pytest.approx(1.04)
    assert result.verdict == "UNDECIDED"
    assert result.reason.endswith("beyond that of the pairs: times jump between levels")
    # The control: where both agree, there is nothing to say.
    assert "jump" not in in_turns([99.0, 100, 101] * 20, [94.0, 106, 101] * 20).reason


# Comparison plans


def test_a_plan_looks_at_its_counts_only() -> None:
    plan = ComparisonPlan()
    looked = [n for n in range(200) if plan.decide([5.0] * n, [5.0] * n, 0)]
    assert looked == [12, 24, 48, 96, 192]


def test_the_confidence_is_shared_among_the_looks() -> None:
    assert ComparisonPlan().look_confidence == pytest.approx(1 - 0.005 / 8)
    assert ComparisonPlan(looks=(100,)).look_confidence == pytest.approx(0.995)


def test_a_difference_not_clearly_beyond_the_threshold_takes_all_pairs() -> None:
    baseline = [100.0] * 200
    candidate = [100.5, 102.0] * 100
    plan = ComparisonPlan(looks=(12, 24, 48))
    assert plan.decide(baseline[:12], candidate[:12], 0) is None
    assert plan.decide(baseline[:24], candidate[:24], 0) is None
    result = present(plan.decide(baseline[:48], candidate[:48], 0))
    assert (result.verdict, result.looks, result.samples) == ("SLOWER", 3, (48, 48))


def test_the_budget_ends_a_comparison_but_not_before_the_first_look() -> None:
    rng = np.random.default_rng(0)
    a, b = times(rng.normal(0, 1, 2000), 0.2), times(rng.normal(0, 1, 2000), 0.2)
    plan = ComparisonPlan()
    assert plan.decide(a[:11], b[:11], 1e12) is None
    assert plan.decide(a[:13], b[:13], 1e9) is None
    late = present(plan.decide(a[:13], b[:13], 10e9))
    assert (late.verdict, late.looks) == ("UNDECIDED", 2)
    assert late.reason.endswith("extends beyond ±1% after 13 pairs (time is up)")
    most = present(plan.decide(a[:1536], b[:1536], 0))
    assert most.looks == 8
    assert most.reason.endswith("after 1536 pairs (the maximum)")
    assert plan.decide(a[:13], b[:13], math.nan) is not None


def test_half_a_pair_waits_for_its_partner() -> None:
    plan = ComparisonPlan()
    result = present(plan.decide([5.0] * 13, [5.0] * 12, 0))
    assert result.samples == (12, 12)
    assert plan.decide([5.0] * 12, [5.0] * 11, 0) is None


def test_a_plan_needs_blocks_of_pairs_to_agree() -> None:
    """Six of eight blocks are slower, by where code and data lie, and so are most pairs."""
    starts = [0, 2, 4, 6, 8, 10, 12, 14]
    slower = [block in (0, 1, 2, 4, 6, 7) for block in range(8)]
    pairs = [2] * 7 + [34]
    candidate = [
        factor
        for is_slower, count in zip(slower, pairs, strict=True)
        for factor in [110.0 if is_slower else 95.0] * count
    ]
    plan = ComparisonPlan(looks=(48,))
    alone = present(plan.decide([100.0] * 48, candidate, 0))
    assert alone.verdict == "SLOWER"
    assert present(alone.interval) == pytest.approx((1.1, 1.1))
    together = present(plan.decide([100.0] * 48, candidate, 0, starts))
    assert together.verdict == "UNDECIDED"
    assert present(together.interval) == pytest.approx((0.95, 1.1))
    agreed = present(plan.decide([100.0] * 48, [110.0] * 48, 0, starts))
    assert agreed.verdict == "SLOWER"


def test_the_first_look_is_at_six_blocks_and_the_last_at_few_more() -> None:
    starts = [0]
    while (end := end_of_block(starts[-1])) < 1536:
        starts.append(end)
    assert [sum(start < look for start in starts) for look in (12, 24, 96, 1536)] == [6, 12, 25, 49]


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(1.0, "SAME"), (1.02, "UNDECIDED"), (0.98, "UNDECIDED"), (1.04, "SLOWER"), (0.96, "FASTER")],
)
def test_a_difference_that_places_may_make_does_not_decide(ratio: float, verdict: str) -> None:
    plan = ComparisonPlan(looks=(12, 24), least=0.03)
    found = present(plan.decide([100.0] * 24, [100.0 * ratio] * 24, 0))
    assert found.verdict == verdict
    small = "a difference within ±3% may be due to where code and data lie"
    assert found.reason.startswith(small) == (verdict == "UNDECIDED")
    early = plan.decide([100.0] * 12, [100.0 * ratio] * 12, 0)
    assert (early is None) == (verdict == "UNDECIDED")


def test_the_order_within_pairs_is_random_and_seeded() -> None:
    order = interleaved_order(1000, seed=7)
    assert order == interleaved_order(1000, seed=7)
    assert order != interleaved_order(1000, seed=8)
    assert order[:100] == interleaved_order(100, seed=7)
    assert set(order) == {(0, 1), (1, 0)}
    assert 440 <= sum(first == 0 for first, _ in order) <= 560


def test_nothing_is_settled_before_the_least_time() -> None:
    rule = StoppingRule(minimum_time_ns=30e6)
    steady = [100.0 + i % 2 / 10 for i in range(14)]
    assert rule.decide(steady[:10], 29e6) is None
    assert rule.decide(steady, 29e6) is None
    assert rule.decide(steady, 31e6) == SETTLED
    assert StoppingRule().decide(steady[:10], 1e6) == SETTLED


def test_rounds_share_samples_time_and_uncertainty() -> None:
    rule = StoppingRule(minimum_time_ns=30e6)
    first, third = rule.of_round(1, 5, 0), rule.of_round(3, 5, 100, least=3)
    assert first.precision == pytest.approx(0.005 * math.sqrt(5))
    assert rule.of_round(5, 5, 8).precision == rule.precision
    assert (first.minimum, rule.of_round(5, 5, 8).minimum, third.minimum) == (2, 10, 103)
    assert (first.minimum_time_ns, first.maximum_time_ns) == (6e6, 0.4e9)
    # Looks count the samples of this round: 3, 5, 7.
    steady = np.full(200, 1e5)
    decided = [n for n in range(101, 109) if third.decide(steady[:n], 7e6) == SETTLED]
    assert decided == [103, 105, 107]


# Drift


@pytest.mark.parametrize("sign", [1, -1])
def test_a_drift_is_detected(sign: int) -> None:
    rng = np.random.default_rng(0)
    slope = sign * 0.06 * np.arange(40) / 40
    for _ in range(50):
        found = drift(1e6 * (1 + slope + 0.01 * rng.normal(0, 1, 40)), None)
        assert found * sign == pytest.approx(0.04, abs=0.02)


def test_a_drift_matters_from_1_percent_if_it_exceeds_the_interval() -> None:
    """The medians of the thirds of 30 rising samples are 20 steps apart."""
    rising = [1e6 * (1 + 0.0006 * i) for i in range(30)]
    shift = pytest.approx(1.0147 / 1.0027 - 1)
    assert [drift(rising, share) for share in (None, 0.011, math.inf)] == [shift] * 3
    assert drift(rising, 0.013) == 0
    halves = [2.0] * 5 + [2.5] * 5 + [3.0] * 5
    assert (drift(halves, 0.49), drift(halves, 0.5)) == (0.5, 0)
    assert drift([1e6 * (1 + 0.00045 * i) for i in range(30)], None) == 0


def test_ten_samples_that_only_rise_are_drifting() -> None:
    assert drift([100.0 + i for i in range(10)], None) > 0
    assert drift([100.0 + i for i in range(9)], None) == drift([100.0] * 50, None) == 0


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("normal", lambda rng, n: times(rng.normal(0, 1, n), 0.005)),
        ("uniform", lambda rng, n: times(rng.random(n), 0.02)),
        ("steps of 32 ns", lambda rng, n: np.round(rng.normal(1e4, 50, n) / 32) * 32),
        ("steps of 1 µs", lambda rng, n: np.round(rng.normal(1e4, 300, n), -3)),
        ("two values", lambda rng, n: np.where(rng.random(n) < 0.1, 10240.0, 11264.0)),
    ],
)  # fmt: skip
def test_false_alarms_are_rare(name: str, draw: Callable[..., Vector]) -> None:
    rng = np.random.default_rng(3)
    every = [drift(draw(rng, count), 0.0099) for count in (10, 20, 50) for _ in range(400)]
    assert sum(shift != 0 for shift in every) <= 0.005 * len(every)
