"""The lines of a chart of speed and error over n."""

from __future__ import annotations

import pytest
from support import records
from support.ladder import LADDER, timed

from matbench.analysis import chart
from matbench.errors import UsageError
from matbench.model import Problem
from matbench.records.outcome import Claims, Outcome


def test_a_line_is_a_kernel_at_its_fastest_and_the_fastest_comes_first() -> None:
    shown = chart.of(LADDER)
    found = shown.lines
    assert shown.left_out == 1
    assert shown.sizes == [1000, 2000]
    assert shown.shared == ["cold samples", "uniform inputs"]
    assert [line.label for line in found] == ["fast", "slow", "library"]
    fast, slow, library = found
    assert fast.n == slow.n == (1000, 2000)
    assert fast.giga_per_s == (1000, 16000)
    assert slow.giga_per_s == pytest.approx((200, 16000 / 90))
    assert fast.error == (3e-7, 0.0)
    assert library.is_baseline and not fast.is_baseline


def labels(*outcomes: Outcome) -> list[str]:
    return [line.label for line in chart.of(outcomes).lines]


def test_a_line_tells_whether_its_kernel_has_claims() -> None:
    narrow = timed("narrow", 8, 1, claims=Claims(precision="tf32"))
    found = chart.of([narrow, timed("plain", 8, 2)]).lines
    assert {line.label: line.has_claims for line in found} == {"narrow": True, "plain": False}


def test_devices_and_ways_of_timing_are_lines_of_their_own() -> None:
    assert labels(timed("a", 8, 1), timed("a", 8, 2, device="A100")) == ["a · H200", "a · A100"]
    hot = timed("a", 8, 2, hot=records.timing(2))
    assert labels(timed("a", 8, 1), hot) == ["a · cold samples", "a · hot samples"]
    signed = Problem(8, 8, 8, inputs="signed")
    found = labels(timed("a", 8, 1), timed("a", 8, 2, problem=signed))
    assert found == ["a · uniform inputs", "a · signed inputs"]


def test_what_is_no_chart_is_refused() -> None:
    with pytest.raises(UsageError, match="no measured case has a single size n"):
        chart.of(LADDER[-2:])
    dot = timed("d", 8, 1, problem=Problem(1, 8, 1, workload="dot"))
    with pytest.raises(UsageError, match="a chart shows one workload, not matmul and dot"):
        chart.of([LADDER[0], dot])
