"""Timelines hold when and where blocks ran."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.launches import UNEVEN, analysed, sampled

from matbench.features.timeline import lanes
from matbench.records.blocks import Bar, Timeline


def placed(ran: list[tuple[int, float, float]], *, told: bool = True) -> lanes.Placed:
    """Blocks as multiprocessor, start and end in ns."""
    unit, start, end = (np.array(column) for column in zip(*ran, strict=True))
    names, lane = np.unique(unit.astype(np.uint64), return_inverse=True)
    told_unit = (lane.astype(np.int64), names) if told else (None, None)
    return lanes.Placed(np.arange(len(ran)), start.astype(float), end.astype(float), *told_unit)


def test_slots_of_one_unit_never_overlap() -> None:
    start, end = np.array([0.0, 1, 2, 10, 11]), np.array([5.0, 3, 4, 12, 13])
    slots = lanes.apart(start, end, np.array([0, 0, 0, 0, 1]))
    assert slots.tolist() == [0, 1, 2, 0, 0]


def test_few_blocks_are_all_there() -> None:
    found = lanes.make_timeline(placed([(7, 0, 10), (3, 0, 30), (7, 5, 20), (7, 10, 12)]))
    assert found == Timeline(
        lanes=2,
        slots=2,
        multiprocessors=(3, 7),
        bars=(Bar(0, 0, 30, 0, 1), Bar(1, 0, 10, 0, 0), Bar(1, 5, 20, 1, 2), Bar(1, 10, 12, 0, 3)),
    )
    profile = analysed(sampled(UNEVEN))
    assert profile.timeline is not None
    assert len(profile.timeline.bars) == profile.blocks


def test_without_multiprocessors_lanes_only_keep_blocks_apart() -> None:
    found = lanes.make_timeline(placed([(0, 0, 10), (0, 5, 20), (0, 10, 30)], told=False))
    assert found is not None
    assert (found.multiprocessors, found.lanes, found.slots) == (None, 2, 1)
    assert [bar.lane for bar in found.bars] == [0, 0, 1]


def test_too_many_blocks_have_no_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = [(unit, 100.0 * wave, 100.0 * wave + 90) for unit in range(3) for wave in range(20)]
    monkeypatch.setattr(lanes, "MOST_BARS", 60)
    assert lanes.make_timeline(placed(ran)) is not None
    assert lanes.make_timeline(placed([*ran, (1, 3000, 3001)])) is None


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e4), st.floats(0, 1e3)), min_size=1))
def test_any_timeline_can_be_read_again(ran: list[tuple[int, float, float]]) -> None:
    ends = [(unit, start, start + took) for unit, start, took in ran]
    for told in (True, False):
        found = lanes.make_timeline(placed(ends, told=told))
        assert found is not None
        assert sorted(bar.block for bar in found.bars) == list(range(len(ran)))
        for lane in range(found.lanes):
            for slot in range(found.slots):
                here = [bar for bar in found.bars if (bar.lane, bar.slot) == (lane, slot)]
                assert all(a.end_ns <= b.start_ns for a, b in pairwise(here))
