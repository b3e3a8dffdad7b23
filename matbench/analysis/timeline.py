"""When each block of a launch ran, and on which multiprocessor, reduced to what a picture shows."""

from __future__ import annotations

import heapq
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from matbench.records.blocks import MOST_BARS, MOST_PERIODS, Bar, Period, Timeline

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Numbers = TypeVar("Numbers", Ints, Floats)

#: More bars above each other than this cannot be told apart.
_MOST_ROWS = 600


class Placed(NamedTuple):
    """When blocks ran, in ns since the first start, by a clock that the whole device shares.

    `row` is a block's row in the stamps. `unit` numbers the multiprocessors that ran any block from
    0, and `names` are their device numbers; both are None if the device does not report them.
    """

    row: Ints
    start_ns: Floats
    end_ns: Floats
    unit: Ints | None
    names: npt.NDArray[np.uint64] | None


def of(placed: Placed) -> Timeline:
    """A lane per multiprocessor, and as many blocks in it as a picture can show."""
    start, end = (np.rint(ns).astype(np.int64) for ns in (placed.start_ns, placed.end_ns))
    one = np.zeros(len(start), np.int64)
    if placed.unit is None:  # a lane only keeps apart what ran at the same time
        lane, slot = apart(start, end, one), one
    else:
        lane, slot = placed.unit, apart(start, end, placed.unit)
    lanes, together = int(lane.max()) + 1, int(slot.max()) + 1
    shown, slots = _thinned(lane, slot, start)
    columns = (lane, start, end, slot, placed.row)
    bars = zip(*(column[shown].tolist() for column in columns), strict=True)
    return Timeline(
        lanes=lanes,
        slots=slots,
        together=together,
        multiprocessors=None if placed.names is None else tuple(placed.names.tolist()),
        bars=tuple(Bar(*bar) for bar in bars),
        busy=_periods(lane, start, end) if len(shown) < len(start) else (),
    )


def _thinned(lane: Ints, slot: Ints, start: Ints) -> tuple[Ints, int]:
    """All blocks; or those in the first slots of each lane, or every n-th of those."""
    slots = min(int(slot.max()) + 1, max(1, _MOST_ROWS // (int(lane.max()) + 1)))
    while slots > 1 and (slot < slots).sum() > MOST_BARS:
        slots -= 1
    shown = np.flatnonzero(slot < slots)
    order: Ints = shown[np.lexsort((start[shown], lane[shown]))]
    return order[:: -(-len(order) // MOST_BARS)], slots


def _periods(lane: Ints, start: Ints, end: Ints) -> tuple[Period, ...]:
    """When each lane was busy; of too many pauses, the longest."""
    found = [
        Period(number, *period)
        for number in range(int(lane.max()) + 1)
        for period in busy(start[lane == number], end[lane == number])
    ]
    surplus = len(found) - MOST_PERIODS
    if surplus <= 0:
        return tuple(found)
    pauses = np.array([b.start_ns - a.end_ns if b.lane == a.lane else np.iinfo(np.int64).max
                       for a, b in pairwise(found)])  # fmt: skip
    joined = set(np.argsort(pauses, kind="stable")[:surplus].tolist())
    kept = found[:1]
    for place, period in enumerate(found[1:]):
        if place in joined and period.lane == kept[-1].lane:
            kept[-1] = Period(period.lane, kept[-1].start_ns, period.end_ns)
        else:
            kept.append(period)
    return tuple(kept[:MOST_PERIODS])


def apart(start: Numbers, end: Numbers, unit: Ints) -> Ints:
    """A slot for each block, numbered from 0, so that no two blocks overlap in a unit's slot."""
    slots = np.zeros(len(start), np.int64)
    running: list[tuple[float, int]] = []
    free: list[int] = []
    here, used = -1, 0
    for block in np.lexsort((start, unit)):
        if unit[block] != here:
            here, used, running, free = unit[block], 0, [], []
        while running and running[0][0] <= start[block]:
            heapq.heappush(free, heapq.heappop(running)[1])
        if not free:
            heapq.heappush(free, used)
            used += 1
        slots[block] = heapq.heappop(free)
        heapq.heappush(running, (end[block], slots[block]))
    return slots


def busy(start: Numbers, end: Numbers) -> list[tuple[int, int]]:
    """The periods in which at least one block ran, as starts and ends in order."""
    order = np.argsort(start)
    start, reached = start[order], np.maximum.accumulate(end[order])
    gaps = np.flatnonzero(start[1:] > reached[:-1])
    firsts, lasts = start[np.r_[0, gaps + 1]], reached[np.r_[gaps, -1]]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
