"""The lines of a chart of speed and error over n."""

from __future__ import annotations

import pytest
from support import records
from support.ladder import LADDER, timed

from matbench.features.charts import speed_and_error
from matbench.model import Problem
from matbench.records.outcome import Outcome


def test_a_line_is_a_kernel_at_its_fastest_and_the_fastest_comes_first() -> None:
    shown = speed_and_error.make_chart(LADDER)
    found = shown.lines
    assert shown.left_out == 1
    assert shown.sizes == [1000, 2000]
    assert shown.shared == ["cold samples", "uniform inputs"]
    assert [line.label for line in found] == ["fast", "slow", "library"]
    fast, slow, library = found
    assert [p.n for p in fast.points] == [p.n for p in slow.points] == [1000, 2000]
    assert [p.work_per_s for p in fast.points] == [1e12, 16e12]
    assert [p.work_per_s for p in slow.points] == pytest.approx([200e9, 16e12 / 90])
    assert [p.error for p in fast.points] == [3e-7, 0.0]
    assert library.is_baseline
    assert not fast.is_baseline


def labels(*outcomes: Outcome) -> list[str]:
    return [line.label for line in speed_and_error.make_chart(outcomes).lines]


def test_an_interval_of_times_is_one_of_rates() -> None:
    cold = records.timing(2.0, interval_ns=(1.6e6, 4e6))
    [line] = speed_and_error.make_chart([timed("a", 1000, 2.0, cold=cold)]).lines
    [point] = line.points
    assert (point.low, point.work_per_s, point.high) == pytest.approx((0.5e12, 1e12, 1.25e12))


def beside(*sizes: int) -> dict[int, int | None]:
    [line] = speed_and_error.make_chart([timed("a", n, 1) for n in sizes]).lines
    assert [p.n for p in line.regular] == [p.n for p in line.points if p.beside is None]
    return {point.n: point.beside for point in line.points}


def test_a_size_beside_one_with_more_factors_of_two_is_awkward() -> None:
    assert beside(512, 1000, 1024, 4095, 4096) == {
        512: None, 1000: 1024, 1024: None, 4095: 4096, 4096: None
    }  # fmt: skip
    assert beside(512, 800, 1024) == {512: None, 800: None, 1024: None}, "not near"
    assert beside(1000, 1024, 1025) == {1000: None, 1024: None, 1025: None}, "one would be left"


def test_a_size_is_awkward_only_for_kernels_measured_beside_it() -> None:
    first, second = speed_and_error.make_chart(
        [timed("a", n, 1) for n in (1000, 2048)] + [timed("b", n, 2) for n in (1000, 1024, 2048)]
    ).lines
    assert [p.beside for p in first.points] == [None, None]
    assert [p.beside for p in second.points] == [1024, None, None]


def test_devices_and_ways_of_timing_are_lines_of_their_own() -> None:
    assert labels(timed("a", 8, 1), timed("a", 8, 2, device="A100")) == ["a · H200", "a · A100"]
    hot = timed("a", 8, 2, hot=records.timing(2))
    assert labels(timed("a", 8, 1), hot) == ["a · cold samples", "a · hot samples"]
    signed = Problem(8, 8, 8, inputs="signed")
    found = labels(timed("a", 8, 1), timed("a", 8, 2, problem=signed))
    assert found == ["a · uniform inputs", "a · signed inputs"]
