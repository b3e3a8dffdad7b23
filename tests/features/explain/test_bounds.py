"""What bounds a case: memory, arithmetic or neither."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support import records
from support.h200 import H200, LIMITS, case_of, outcome_of

from matbench.features.explain.bounds import bound
from matbench.features.explain.traffic import traffic
from matbench.records.explanation import Bottleneck, HardwareCounters


def bounded(n: int, median_ns: float, name: str = "tiled", **more: Any) -> Bottleneck:
    """A kernel with T = 32 at size n that took this long on an H200."""
    case = case_of(name, n)
    moved = traffic(case.kernel, case.problem, case.params, H200.limits)
    hot = {"hot": records.timing(median_ns / 1e6)} if more.pop("hot", False) else {}
    outcome = outcome_of(case, median_ns, **hot)
    return bound(outcome, moved, LIMITS, more.pop("device", H200), **more)


def at(flop_per_s: float, n: int = 4096) -> float:
    """Nanoseconds for a product of size n at this rate."""
    return 2 * n**3 / flop_per_s * 1e9


@pytest.mark.parametrize(
    ("share", "by"), [(0.69, "neither"), (0.7001, "arithmetic"), (1.0, "arithmetic"),
                      (1.001, "doubtful limit"), (5.0, "doubtful limit")],
)  # fmt: skip
def test_from_seven_tenths_of_the_limit_on_and_not_above_it(share: float, by: str) -> None:
    assert bounded(4096, at(share * 60e12)).by == by


LEAST_64 = 3 * 64 * 64 * 4


def test_when_the_least_traffic_takes_the_bandwidth_memory_bounds_it() -> None:
    found = bounded(64, LEAST_64 / 3.6e12 * 1e9)
    assert found.by == "memory"
    assert found.least_share == pytest.approx(0.9)
    assert bounded(64, LEAST_64 / 2.7e12 * 1e9).by == "neither"
    for copies, by in ((1.19, "memory"), (1.21, "neither")):  # no memory is faster
        took = LEAST_64 / (copies * 4e12) * 1e9
        assert bounded(64, took, has_own_limit=False).by == by


@pytest.mark.parametrize(("read", "by"), [(50e9, "memory"), (30e9, "neither")])
def test_counters_settle_whether_memory_bounds_it(read: float, by: str) -> None:
    counted = HardwareCounters(dram_read_bytes=read, dram_written_bytes=6e9)
    found = bounded(4096, 16e6, counters=counted)
    assert found.by == by
    assert found.counted_share == pytest.approx((read + 6e9) / 16e-3 / 4e12)
    # Counted traffic takes precedence over the least possible traffic.
    cached = HardwareCounters(dram_read_bytes=0.0, dram_written_bytes=0.0)
    assert bounded(64, LEAST_64 / 3.6e12 * 1e9, counters=cached).by == "neither"


def test_half_a_count_is_none() -> None:
    counted = HardwareCounters(dram_read_bytes=50e9)
    assert bounded(4096, 16e6, counters=counted).counted_share is None


def test_what_has_no_measured_limit_is_not_bounded_by_arithmetic() -> None:
    found = bounded(4096, at(50e12), has_own_limit=False)
    assert (found.by, found.computed_share) == ("neither", None)


def test_a_launch_with_few_blocks_leaves_multiprocessors_idle() -> None:
    assert bounded(256, 20e3).idle_multiprocessors == 132 - 64
    assert bounded(4096, 20e3).idle_multiprocessors == 0
    cpu = msgspec.structs.replace(H200, kind="cpu")
    assert bounded(256, 20e3, device=cpu).idle_multiprocessors == 0


def test_nothing_is_known_without_a_time_a_device_or_its_limits() -> None:
    case = case_of("tiled", 64)
    moved = traffic(case.kernel, case.problem, case.params, H200.limits)
    timed = outcome_of(case, 1e6)
    wrong = outcome_of(case, 1e6, status="wrong")
    for outcome, limits, device in (
        (None, LIMITS, H200), (wrong, LIMITS, H200), (timed, None, H200), (timed, LIMITS, None),
    ):  # fmt: skip
        assert bound(outcome, moved, limits, device) == Bottleneck(by="not known")
