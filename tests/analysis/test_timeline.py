"""Timelines hold when and where blocks ran, or as many of them as a picture can show."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.launches import UNEVEN, analysed, sampled

from matbench.analysis import timeline
from matbench.records.blocks import Bar, Period, Timeline


def placed(ran: list[tuple[int, float, float]], *, told: bool = True) -> timeline.Placed:
    """Blocks as multiprocessor, start and end in ns."""
    unit, start, end = (np.array(column) for column in zip(*ran, strict=True))
    names, lane = np.unique(unit.astype(np.uint64), return_inverse=True)
    told_unit = (lane.astype(np.int64), names) if told else (None, None)
    return timeline.Placed(np.arange(len(ran)), start.astype(float), end.astype(float), *told_unit)


def test_slots_of_one_unit_never_overlap() -> None:
    start, end = np.array([0.0, 1, 2, 10, 11]), np.array([5.0, 3, 4, 12, 13])
    slots = timeline.apart(start, end, np.array([0, 0, 0, 0, 1]))
    assert slots.tolist() == [0, 1, 2, 0, 0]


def test_busy_times_join_blocks_that_touch_or_overlap() -> None:
    start, end = np.array([5.0, 0, 1, 7]), np.array([6.0, 2, 5, 8])
    assert timeline.busy(start, end) == [(0, 6), (7, 8)]


def test_few_blocks_are_all_there() -> None:
    found = timeline.of(placed([(7, 0, 10), (3, 0, 30), (7, 5, 20), (7, 10, 12)]))
    assert found == Timeline(
        lanes=2,
        slots=2,
        together=2,
        multiprocessors=(3, 7),
        bars=(Bar(0, 0, 30, 0, 1), Bar(1, 0, 10, 0, 0), Bar(1, 5, 20, 1, 2), Bar(1, 10, 12, 0, 3)),
    )
    profile = analysed(sampled(UNEVEN))
    assert profile.timeline is not None
    assert len(profile.timeline.bars) == profile.blocks


def test_without_multiprocessors_lanes_only_keep_blocks_apart() -> None:
    found = timeline.of(placed([(0, 0, 10), (0, 5, 20), (0, 10, 30)], told=False))
    assert (found.multiprocessors, found.lanes, found.slots) == (None, 2, 1)
    assert [bar.lane for bar in found.bars] == [0, 0, 1]


def test_of_too_many_blocks_some_are_there_and_the_busy_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = [(unit, 100 * wave + slot, 100 * wave + 90) for unit in range(3) for wave in range(20)
           for slot in range(4)]  # fmt: skip
    monkeypatch.setattr(timeline, "MOST_BARS", 130)
    found = timeline.of(placed(ran))
    assert (len(found.bars), found.slots, found.together) == (120, 2, 4)
    assert len(found.busy) == 60
    monkeypatch.setattr(timeline, "MOST_BARS", 50)
    monkeypatch.setattr(timeline, "MOST_PERIODS", 10)
    found = timeline.of(placed([*ran, (1, 3000, 3001)]))
    assert (len(found.bars), found.slots) == (31, 1)
    assert len(found.busy) == 10
    assert Period(1, 3000, 3001) in found.busy, "after the longest pause"


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e4), st.floats(0, 1e3)), min_size=1))
def test_any_timeline_can_be_read_again(ran: list[tuple[int, float, float]]) -> None:
    ends = [(unit, start, start + took) for unit, start, took in ran]
    for told in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(timeline, "MOST_BARS", 10)
            patch.setattr(timeline, "MOST_PERIODS", 6)
            found = timeline.of(placed(ends, told=told))
        assert len(found.bars) <= 10
        assert len(found.busy) <= max(6, found.lanes)
        for lane in range(found.lanes):
            for slot in range(found.slots):
                here = [bar for bar in found.bars if (bar.lane, bar.slot) == (lane, slot)]
                assert all(a.end_ns <= b.start_ns for a, b in pairwise(here))
