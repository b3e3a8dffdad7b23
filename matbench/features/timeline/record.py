"""The stamps of one instrumented launch, evaluated block by block."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from matbench.model import Count, Launch
from matbench.records.outcome import PERTURBATION_LIMIT, Amount, Excess, Factor, Positive, Share

#: A timeline of more blocks would be neither small nor readable.
MOST_BARS = 10_000
Counters = Literal["aligned", "not aligned", "one", "not known"]


class Quartiles(msgspec.Struct, frozen=True):
    minimum: Amount
    lower: Amount
    median: Amount
    upper: Amount
    maximum: Amount


class Bin(msgspec.Struct, frozen=True):
    """How many blocks took from `low_us` up to, but not including, `high_us`."""

    low_us: Amount
    high_us: Amount
    blocks: Count

    def __post_init__(self) -> None:
        if not self.low_us < self.high_us:
            raise ValueError("a bin that does not end above its start")


class Bar(msgspec.Struct, frozen=True, array_like=True):
    """When a block ran, in ns since the first start, in a slot of its lane.

    `block` is its number in the grid.
    """

    lane: Count
    start_ns: Count
    end_ns: Count
    slot: Count
    block: Count


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """When blocks ran and where, by a clock that the whole device shares.

    A lane is a multiprocessor; `multiprocessors` are their numbers on the device. None: lanes only
    keep apart what ran at the same time. Each lane has `slots`, in which bars do not overlap. Every
    block has a bar; they are ordered by lane and start.
    """

    lanes: Annotated[int, msgspec.Meta(ge=1, le=MOST_BARS)]
    slots: Positive
    multiprocessors: tuple[Count, ...] | None
    bars: Annotated[tuple[Bar, ...], msgspec.Meta(min_length=1, max_length=MOST_BARS)]

    def __post_init__(self) -> None:
        if self.multiprocessors is not None and len(self.multiprocessors) != self.lanes:
            raise ValueError(f"{len(self.multiprocessors)} multiprocessors for {self.lanes} lanes")
        if any(bar.lane >= self.lanes or bar.slot >= self.slots for bar in self.bars):
            raise ValueError("a bar in a lane or slot that is not there")
        if any(bar.end_ns < bar.start_ns for bar in self.bars):
            raise ValueError("a bar that ends before its start")


class BlockProfile(msgspec.Struct, frozen=True, tag="blocks", tag_field="type", kw_only=True):
    """One instrumented launch, block by block. None: this device does not report it.

    `blocks` have both stamps; `unstamped_blocks` ended without the second one and are excluded.
    A multiprocessor is busy while at least one block is resident on it.

    - `resident_most` is the most blocks that were resident together on one multiprocessor;
      `resident_median` the median, over the multiprocessors that ran any, of each one's most;
      `running_most` the most that ran together on the whole device.
    - `waves` is `blocks` over the number that the device held at once: the sum of each
      multiprocessor's most, or `running_most` if multiprocessors are not known.
    - `tail_share` is the share of the span after the first multiprocessor ended its last block;
      if multiprocessors are not known, after the last moment at which `running_most` blocks ran.
    - `imbalance` is the longest busy time of a multiprocessor over the mean of all, minus 1.
      Multiprocessors that ran no block count with a busy time of 0.
    - `naive_span_ticks` is the latest end minus the earliest start over all blocks, regardless of
      the counter. `counter_offset_ticks` is the largest difference between the counters of two
      multiprocessors at one moment.
    - `span_ns` is by the clock that all share, `multiprocessor_span_ticks` the longest on one
      multiprocessor by its own counter.
    - `timeline` is None without a clock that all share, and for more than `MOST_BARS` blocks.
    """

    backend: str
    device: str
    device_kind: Literal["gpu", "cpu"]
    launch: Launch
    blocks: Positive
    unstamped_blocks: Count
    ticks_per_ns: Factor
    duration_ticks: Quartiles
    histogram: Annotated[tuple[Bin, ...], msgspec.Meta(min_length=1)]
    multiprocessors: Count
    multiprocessors_used: Count | None = None
    blocks_per_multiprocessor: Quartiles | None = None
    resident_most: Count | None = None
    resident_median: Amount | None = None
    running_most: Count | None = None
    waves: Amount | None = None
    tail_share: Share | None = None
    imbalance: Excess | None = None
    counters: Counters
    counter_offset_ticks: Amount | None = None
    naive_span_ticks: Count
    span_ns: Amount | None = None
    multiprocessor_span_ticks: Count | None = None
    event_ns: float
    empty_ns: float
    perturbation: float
    timeline: Timeline | None = None

    def __post_init__(self) -> None:
        known = self.blocks_per_multiprocessor, self.multiprocessors_used, self.resident_median
        if len({figure is None for figure in known}) > 1:
            raise ValueError("multiprocessors are only partly known")
        if self.counters in ("aligned", "not aligned") and self.counter_offset_ticks is None:
            raise ValueError("counters are compared without an offset")

    @property
    def duration_us(self) -> Quartiles:
        ticks = msgspec.structs.astuple(self.duration_ticks)
        return Quartiles(*(value / self.ticks_per_ns / 1e3 for value in ticks))

    @property
    def naive_span_ns(self) -> float:
        return self.naive_span_ticks / self.ticks_per_ns

    @property
    def launch_ns(self) -> float:
        """The event time minus an empty launch's; noise can make it negative."""
        return self.event_ns - self.empty_ns

    @property
    def perturbed(self) -> bool:
        """Whether reading the clock slowed the launch by more than the limit."""
        return not self.perturbation <= PERTURBATION_LIMIT
