"""Comparing runs of one or more processes: intervals, false verdicts, and what is found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matbench.features.gate.runs import ENOUGH, VARIATIONS, Variation, _shift_rank, compare_runs
from matbench.records.comparison import Comparison

NONE = Variation(0.0, 0.0)
TURNED = {"FASTER": "SLOWER", "SLOWER": "FASTER", "SAME": "SAME", "UNDECIDED": "UNDECIDED"}
Runs = Sequence[Sequence[float]]


def run(median: float, count: int = 20, spread: float = 0.01) -> list[float]:
    """Samples spread evenly around a median."""
    return [median * (1 + spread * (2 * i / (count - 1) - 1)) for i in range(count)]


# The rank


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 4), (5, 5), (5, 9), (9, 5), (8, 20)])
def test_the_rank_is_that_of_the_exact_mann_whitney_test(m: int, n: int, confidence: float) -> None:
    """By scipy: U below the rank has at most half of the error's probability, and no more fits."""
    from scipy.stats import mannwhitneyu  # which takes a second to import

    def at_most(u: int) -> float:
        """P(U ≤ u), from samples that have this U."""
        ranks = list(range(1, m + 1))
        for i in reversed(range(m)):
            moved = min(u - sum(r - k - 1 for k, r in enumerate(ranks)), n)
            ranks[i] += moved
        others = [r for r in range(1, m + n + 1) if r not in ranks]
        found = mannwhitneyu(ranks, others, alternative="less", method="exact")
        assert found.statistic == u
        return float(found.pvalue)

    rank = _shift_rank(m, n, confidence)
    allowed = (1 - confidence) / 2
    assert rank == 0 or at_most(rank - 1) <= allowed * (1 + 1e-9)
    assert at_most(rank) > allowed


# Simulated runs: each process has its own offset


def compared(old: Any, new: Any, variation: Variation, threshold: float = 0.01) -> Comparison:
    return compare_runs(old, new, variation, threshold, confidence=0.99)


def simulated(
    seed: int, pairs: int, *, slower: float = 0.0, processes: int = 5, offset: float = 0.02
) -> list[Comparison]:
    """Comparisons of two sets of processes whose offsets are drawn alike, with heavy tails."""
    random = np.random.default_rng(seed)

    def side(factor: float) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
        offsets = random.standard_t(3, processes) * offset
        noise = random.gamma(2.0, 0.005, (processes, 30))
        return list(1e5 * factor * np.exp(offsets[:, None] + noise))

    return [compared(side(1.0), side(1.0 + slower), NONE) for _ in range(pairs)]


@pytest.mark.parametrize("processes", [5, 8])
def test_equal_code_is_rarely_slower_or_faster(processes: int) -> None:
    """At 99% confidence and without any allowance, on processes that differ by several percent."""
    found = simulated(1, 250, processes=processes)
    assert sum(one.verdict in ("SLOWER", "FASTER") for one in found) <= 5
    covered = sum(one.interval is not None and one.interval[0] <= 1 <= one.interval[1]
                  for one in found)  # fmt: skip
    assert covered >= 245


def test_one_process_on_each_side_is_often_wrong_without_an_allowance() -> None:
    """The control: what several processes, or the allowance, are for."""
    found = simulated(2, 100, processes=1)
    assert sum(one.verdict in ("SLOWER", "FASTER") for one in found) > 50
    random = np.random.default_rng(2)
    one, other = (1e5 * np.exp(shift + random.gamma(2.0, 0.005, 30)) for shift in (0.0, 0.06))
    assert compared([one], [other], NONE).verdict == "SLOWER"
    assert compared([one], [other], VARIATIONS["cpu"]).verdict == "UNDECIDED"


def test_a_difference_larger_than_the_noise_is_found() -> None:
    found = simulated(3, 100, slower=0.2)
    assert sum(one.verdict == "SLOWER" for one in found) >= 95
    assert all(one.verdict != "FASTER" for one in found)
    ratios = [one.ratio for one in found if one.ratio is not None]
    assert np.median(ratios) == pytest.approx(1.2, rel=0.02)


# What is compared, and the allowance


def test_from_five_processes_on_medians_alone_count() -> None:
    """The samples of one process may differ from each other by any amount."""
    five = [run(100.0 + i, spread=0.5) for i in range(ENOUGH)]
    slower = [run(120.0 + i, spread=0.5) for i in range(ENOUGH)]
    found = compared(five, slower, Variation(0.25, 0.01))
    assert found.processes == (5, 5)
    assert found.samples == (100, 100)
    assert found.allowance == 0.01
    assert found.verdict == "SLOWER"
    assert found.ratio == pytest.approx(122 / 102)
    assert found.interval == pytest.approx((120 / 104 / 1.01, 124 / 100 * 1.01))


@pytest.mark.parametrize("counts", [(1, 1), (4, 5), (5, 4), (4, 40)])
def test_fewer_processes_on_a_side_are_not_enough(counts: tuple[int, int]) -> None:
    old, new = ([run(100.0, spread=1e-4) for _ in range(count)] for count in counts)
    found = compared(old, new, Variation(0.25, 0.01))
    assert found.allowance == 0.25
    assert found.interval == pytest.approx((1 / 1.25, 1.25), rel=1e-3)
    assert found.verdict == "UNDECIDED"


def test_too_few_samples_have_no_interval() -> None:
    few = compared([[1.0, 2.0]], [[1.0, 2.0]], NONE)
    assert few.verdict == "UNDECIDED"
    assert few.interval is None
    assert few.processes == (1, 1)
    assert "too few" in few.reason


levels = st.floats(1.0, 1e9)
sides = st.integers(1, 7).flatmap(
    lambda count: st.lists(
        st.lists(levels, min_size=8, max_size=12), min_size=count, max_size=count
    )
)
variations = st.builds(Variation, st.floats(0, 1), st.floats(0, 1))


@given(sides, sides, variations, st.floats(0, 0.5))
def test_swapped_sides(one: Runs, other: Runs, variation: Variation, threshold: float) -> None:
    forth, back = (compared(*pair, variation, threshold) for pair in ((one, other), (other, one)))
    assert forth.processes == (back.processes or ())[::-1]
    assert forth.ratio is not None
    assert back.ratio is not None
    assert forth.ratio * back.ratio == pytest.approx(1)
    if forth.interval is None:
        assert back.interval is None
        return
    assert back.interval is not None
    low, high = forth.interval
    assert low <= forth.ratio * (1 + 1e-9)
    assert forth.ratio <= high * (1 + 1e-9)
    assert back.interval == pytest.approx((1 / high, 1 / low))
    near = any(math.isclose(end, edge, rel_tol=1e-9) for end in (low, high)
               for edge in (1, 1 + threshold, 1 / (1 + threshold)))  # fmt: skip
    assert near or back.verdict == TURNED[forth.verdict]
