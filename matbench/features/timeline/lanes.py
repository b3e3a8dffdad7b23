"""When each block of a launch ran, and on which multiprocessor."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matbench.features.timeline.record import MOST_BARS, Bar, Timeline

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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


def make_timeline(placed: Placed) -> Timeline | None:
    """A lane per multiprocessor, and in it all its blocks; None if these are too many to show."""
    start, end = (np.rint(ns).astype(np.int64) for ns in (placed.start_ns, placed.end_ns))
    if len(start) > MOST_BARS:
        return None
    zeros = np.zeros(len(start), np.int64)
    if placed.unit is None:  # a lane only keeps apart what ran at the same time
        lane, slot = apart(start, end, zeros), zeros
    else:
        lane, slot = placed.unit, apart(start, end, placed.unit)
    order = np.lexsort((start, lane))
    bars = zip(
        *(column[order].tolist() for column in (lane, start, end, slot, placed.row)), strict=True
    )
    return Timeline(
        lanes=int(lane.max()) + 1,
        slots=int(slot.max()) + 1,
        multiprocessors=None if placed.names is None else tuple(placed.names.tolist()),
        bars=tuple(Bar(*bar) for bar in bars),
    )


def apart(start: Ints, end: Ints, unit: Ints) -> Ints:
    """A slot for each block, numbered from 0, so that no two blocks overlap in a unit's slot."""
    slots = np.zeros(len(start), np.int64)
    running: list[tuple[int, int]] = []
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
