"""Stamps of launches with known answers, for tests of block times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from matbench.analysis.block_times import BlockSample
from matbench.features.timeline import profile
from matbench.features.timeline.record import BlockProfile
from matbench.model import DeviceInfo, Launch
from support.devices import device, gpu

RATE = 2.0  # ticks per ns
EPOCH_NS = 1_800_000_000_000_000_000


class Block(NamedTuple):
    """When a block truly ran, in ns, and where."""

    unit: int
    start: int
    end: int


def gpu_or_cpu(kind: str = "gpu", multiprocessors: int = 2) -> DeviceInfo:
    made = gpu if kind == "gpu" else device
    return made(name="test device", limits={"multiprocessors": multiprocessors})


def sampled(
    ran: Sequence[Block], *, bases: dict[int, int] | None = None, step_ns: int = 1,
    told: bool = True, event_ns: float = 0.0, empty_ns: float = 0.0,
) -> BlockSample:  # fmt: skip
    """The stamps of a device with counters that start at `bases` and a timer with steps."""
    rows = []
    for unit, start, end in ran:
        base = 1000 + (bases or {}).get(unit, 0)
        ticks = [base + round(RATE * start), base + round(RATE * end)]
        times = [(EPOCH_NS + t) // step_ns * step_ns for t in (start, end)]
        rows.append([*ticks, *(times if told else [0, 0]), unit if told else 0])
    return BlockSample(np.array(rows, np.uint64), RATE, event_ns, empty_ns, 0.01)


def analysed(sample: BlockSample, on: DeviceInfo | None = None) -> BlockProfile:
    launch = Launch(grid=(len(sample.stamps), 1, 1), block=(64, 1, 1))
    return profile.analyse(sample, launch, on or gpu_or_cpu())


#: Two multiprocessors: the second one is idle for the last quarter of 200 µs.
UNEVEN = [Block(0, 0, 100_000), Block(0, 100_000, 200_000), Block(1, 0, 150_000)]

#: Any launch on six multiprocessors, and where their counters start.
LAUNCHES = st.lists(
    st.builds(
        lambda unit, start, took: Block(unit, start, start + took),
        *(st.integers(0, 5), st.integers(0, 10**6), st.integers(1, 10**5)),
    ),
    min_size=1,
    max_size=40,
)
COUNTERS = st.dictionaries(st.integers(0, 5), st.integers(0, 2**62), max_size=6)
