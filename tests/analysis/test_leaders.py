"""Which cases may be the fastest: those that rounds cannot tell from the fastest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.records import timing

from matbench.analysis import ranking
from matbench.analysis.ranking import LEAST, LEAST_OF_ONE_ROUND, may_lead, studentized_range
from matbench.records.outcome import Timing

CASES, ROUNDS = 4, 5


def in_rounds(medians_ns: Any, samples: int = 3) -> Timing:
    """Rounds of a few samples around each of these medians."""
    taken = [m * factor for m in medians_ns for factor in np.linspace(0.999, 1.001, samples)]
    return timing(samples_ns=taken, rounds=(samples,) * len(medians_ns))


@given(st.integers(2, 30), st.integers(1, 200))
def test_quantiles_are_those_of_scipy(count: int, freedom: int) -> None:
    from scipy.stats import studentized_range as known

    below = known.cdf(studentized_range(count, freedom), count, freedom)
    assert below == pytest.approx(ranking.CONFIDENCE, abs=2e-4)


def test_medians_of_rounds() -> None:
    assert ranking.round_medians_ns(timing(samples_ns=(1, 2, 3, 9, 8), rounds=(3, 2))) == [2, 8.5]
    assert ranking.round_medians_ns(timing(samples_ns=(1, 2, 9))) == [2]


def test_rounds_have_all_samples() -> None:
    with pytest.raises(ValueError, match="rounds of 3 samples, but 2"):
        timing(samples_ns=(1, 2), rounds=(1, 2))


def test_one_lucky_round_of_seven_does_not_lead() -> None:
    lucky, steady = in_rounds([1.0] * 6 + [0.5]), in_rounds([0.97] * 7)
    assert may_lead([lucky, steady], "gpu") == [False, True]
    assert may_lead([lucky], "gpu") == [True]


def simulated(slower: float, seed: int, deviation: float = 0.03) -> list[bool]:
    """Equal kernels, but that the last is `slower` by a share; what differs are rounds."""
    noise = np.random.default_rng(seed).normal(0, deviation, (CASES, ROUNDS))
    factors = np.array([1.0] * (CASES - 1) + [1 + slower])
    rounds = 1e5 * factors[:, None] * np.exp(noise)
    return may_lead([in_rounds(row) for row in rounds], "gpu")


def test_one_of_several_equal_kernels_hardly_ever_leads_alone() -> None:
    alone = sum(sum(simulated(0.0, seed)) == 1 for seed in range(400))
    assert alone <= 4


def test_a_kernel_leads_too_unless_it_is_slower_by_three_deviations() -> None:
    """Three of a round's, as in the text above; what is within the noise is not decided."""
    assert sum(simulated(0.1, seed)[-1] for seed in range(400)) <= 20
    assert sum(simulated(0.01, seed)[-1] for seed in range(400)) >= 380


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_small_differences_never_decide(kind: Any) -> None:
    exact = in_rounds([1e5, 1e5, 1e5, 1e5, 1.0001e5])
    for share, leads in ((0.9 * LEAST[kind], True), (1.2 * LEAST[kind], False)):
        slower = in_rounds([(1 + share) * m for m in (1e5, 1e5, 1e5, 1e5, 1.0001e5)])
        assert may_lead([slower, exact], kind) == [leads, True]


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_one_round_says_nothing_of_others(kind: Any) -> None:
    """Then intervals must be apart, and by more than what may differ between rounds."""
    least = LEAST_OF_ONE_ROUND[kind]

    def single(ns: float, width: float) -> Timing:
        return timing(samples_ns=(ns,), interval_ns=(ns * (1 - width), ns * (1 + width)))

    fast = single(1000.0, 0.001)
    assert may_lead([fast, single(1000 * (1 + least), 0.001)], kind) == [True, True]
    assert may_lead([fast, single(1000 * (1 + least) * 1.01, 0.001)], kind) == [True, False]
    assert may_lead([fast, single(1000 * (1 + least) * 1.01, 0.1)], kind) == [True, True]
    assert may_lead([timing(1), timing(1.1 * (1 + least))], kind) == [True, False]  # no intervals


def test_a_single_round_is_judged_by_the_rounds_of_others() -> None:
    noisy = in_rounds([1.0e5, 1.1e5, 0.9e5, 1.05e5, 0.95e5])
    for ns, leads in ((1.2e5, True), (1.9e5, False)):
        assert may_lead([noisy, in_rounds([ns])], "gpu") == [True, leads]
    for ns, leads in ((0.82e5, True), (0.76e5, False)):
        assert may_lead([noisy, in_rounds([ns])], "gpu") == [leads, True]


def test_what_is_far_slower_does_not_blur_the_others() -> None:
    """The variance is that of cases that could be confused with the fastest."""
    fast, near = in_rounds([1e5, 1.001e5, 0.999e5]), in_rounds([1.1e5, 1.101e5, 1.099e5])
    wild = in_rounds([4e5, 9e5, 2.5e5])
    assert may_lead([fast, near, wild], "gpu") == [True, False, False]


def test_one_late_round_of_seven_does_not_blur_a_difference() -> None:
    """As when a processor is busy elsewhere; the control has only five rounds."""
    fast, slow = [1e5, 1.001e5, 0.999e5, 1e5, 1.002e5, 0.998e5, 1.8e5], 1.2
    slower = [slow * ns for ns in fast]
    assert may_lead([in_rounds(fast), in_rounds(slower)], "cpu") == [True, False]
    assert may_lead([in_rounds(fast[2:]), in_rounds(slower[2:])], "cpu") == [True, True]
