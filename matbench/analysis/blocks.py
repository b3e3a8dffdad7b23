"""Evaluates the stamps of an instrumented launch: durations, occupancy, waves, tail, imbalance.

Pure arithmetic. Ticks are compared only within one multiprocessor; figures across multiprocessors
use a clock that they share, or are None.

On a GPU each multiprocessor's tick counter has its own start, and `%globaltimer` is the clock that
all share. On a CPU all compute units read one clock, and it is not known which unit ran a block.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from matbench.analysis import timeline
from matbench.analysis.timeline import Placed
from matbench.errors import CaseError
from matbench.model import DeviceInfo, Launch
from matbench.records.blocks import Bin, BlockProfile, Counters, Quartiles, Spread
from matbench.records.outcome import BlockTimes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Numbers = TypeVar("Numbers", Ints, Floats)

#: Counters are aligned if they differ by at most this share of the span plus two steps of the
#: shared clock, but by no more than the second share.
_ALIGNED_SHARE, _LITTLE_SHARE = 0.01, 0.05
#: Bins of the histogram, and how many interquartile ranges they extend beyond the quartiles.
_BINS = 12
_REACH = 3


class BlockSample(NamedTuple):
    """The stamps of one instrumented launch, a row per block: start and end in ticks, start and
    end in nanoseconds (0 if the device has no clock that all multiprocessors share), and the
    multiprocessor. Also the event times of that launch and of an empty one."""

    stamps: npt.NDArray[np.uint64]
    ticks_per_ns: float
    event_ns: float
    empty_ns: float
    perturbation: float


class _Blocks(NamedTuple):
    """The blocks that have both stamps. Ticks count from the first start on the same
    multiprocessor (in `base`), nanoseconds from the first start of all. `unit` numbers the
    multiprocessors that ran any block, and `names` are their device numbers. If they are not
    `known`, because the device does not report them, all blocks are on one."""

    start: Ints
    end: Ints
    start_ns: Ints
    end_ns: Ints
    unit: Ints
    names: npt.NDArray[np.uint64]
    base: npt.NDArray[np.uint64]
    known: bool
    row: Ints
    unstamped: int


def _read(stamps: npt.NDArray[np.uint64]) -> _Blocks:
    whole = (stamps[:, 1] > 0) & (stamps[:, 1] >= stamps[:, 0])
    kept = stamps[whole]
    if not len(kept):
        raise CaseError(f"none of the {len(stamps):,} blocks has an end stamp")
    known = bool((kept[:, 2] > 0).all())
    names, unit = np.unique(kept[:, 4] if known else np.zeros_like(kept[:, 4]), return_inverse=True)
    base = np.full(len(names), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(base, unit, kept[:, 0])
    zero_ns = kept[:, 2].min()
    # Subtracted as integers: nanoseconds since 1970 do not fit in a float.
    return _Blocks(
        start=(kept[:, 0] - base[unit]).astype(np.int64),
        end=(kept[:, 1] - base[unit]).astype(np.int64),
        start_ns=(kept[:, 2] - zero_ns).astype(np.int64),
        end_ns=(np.maximum(kept[:, 3], kept[:, 2]) - zero_ns).astype(np.int64),
        unit=unit.astype(np.int64),
        names=names,
        base=base,
        known=known,
        row=np.flatnonzero(whole),
        unstamped=len(stamps) - len(kept),
    )


def brief(sample: BlockSample, device: DeviceInfo, *, clock_is_sm: bool = False) -> BlockTimes:
    """The figures that a sweep shows for each case; `CaseError` if no block has both stamps.

    `clock_is_sm`: ticks are those of the SM clock, so that the sample also gives its frequency.
    """
    blocks = _read(sample.stamps)
    units = max(device.limits["multiprocessors"], len(blocks.names))
    return BlockTimes(
        median_ns=float(np.median(blocks.end - blocks.start)) / sample.ticks_per_ns or None,
        imbalance=_imbalance(blocks, units) if blocks.known else None,
        perturbation=sample.perturbation,
        sm_mhz=sample.ticks_per_ns * 1e3 if clock_is_sm else None,
    )


def analyse(sample: BlockSample, launch: Launch, device: DeviceInfo) -> BlockProfile:
    """All figures from the stamps of one launch; `CaseError` if no block has both stamps."""
    blocks, rate = _read(sample.stamps), sample.ticks_per_ns
    durations = blocks.end - blocks.start
    ticks = Quartiles(*np.percentile(durations, [0, 25, 50, 75, 100]).tolist())
    ends = blocks.base[blocks.unit] + blocks.end.astype(np.uint64)
    naive_ticks = int(ends.max()) - int(blocks.base.min())
    profile = BlockProfile(
        backend=device.backend,
        device=device.name,
        device_kind=device.kind,
        launch=launch,
        blocks=len(durations),
        unstamped_blocks=blocks.unstamped,
        ticks_per_ns=rate,
        duration_ticks=ticks,
        duration_us=ticks.times(1e-3 / rate),
        histogram=_histogram(durations, 1e-3 / rate),
        multiprocessors=device.limits["multiprocessors"],
        counters="one" if device.kind == "cpu" else "not known",
        naive_span_ticks=naive_ticks,
        naive_span_ns=naive_ticks / rate,
        event_ns=sample.event_ns,
        empty_ns=sample.empty_ns,
        launch_ns=sample.event_ns - sample.empty_ns,
        perturbation=sample.perturbation,
    )
    placed = _place(blocks, rate, device.kind)
    if placed is not None:
        running = int(_most_together(placed.start_ns, placed.end_ns)[0])
        profile = msgspec.structs.replace(
            profile,
            running_most=running,
            waves=len(durations) / running,
            tail_share=_tail_share(placed),
            span_ns=float(placed.end_ns.max()),
            timeline=timeline.make_timeline(placed),
        )
    if blocks.known:
        profile = _by_multiprocessor(profile, blocks)
    if not profile.launch_ns > 0:
        return profile
    spans = profile.naive_span_ns, profile.span_ns, profile.multiprocessor_span_ns
    naive, span, unit = (ns / profile.launch_ns if ns is not None else None for ns in spans)
    return msgspec.structs.replace(
        profile, naive_span_ratio=naive, span_ratio=span, multiprocessor_span_ratio=unit
    )


def _by_multiprocessor(profile: BlockProfile, blocks: _Blocks) -> BlockProfile:
    """The profile with what is known if each block's multiprocessor is."""
    rate, units = profile.ticks_per_ns, max(profile.multiprocessors, len(blocks.names))
    resident = _most_together(blocks.start, blocks.end, blocks.unit)
    counts = np.bincount(blocks.unit, minlength=units)
    apart_ticks = _apart_ticks(blocks, rate)
    span_ns, unit_ticks = float(blocks.end_ns.max()), int(blocks.end.max())
    allowed_ns = min(_ALIGNED_SHARE * span_ns + 2 * _timer_step_ns(blocks), _LITTLE_SHARE * span_ns)
    counters: Counters = "aligned" if apart_ticks / rate <= allowed_ns else "not aligned"
    return msgspec.structs.replace(
        profile,
        multiprocessors_used=len(blocks.names),
        blocks_per_multiprocessor=Spread(
            float(counts.min()), float(np.median(counts)), float(counts.max())
        ),
        resident_most=int(resident.max()),
        resident_median=float(np.median(resident)),
        waves=profile.blocks / int(resident.sum()),
        imbalance=_imbalance(blocks, units),
        counters="one" if len(blocks.names) == 1 else counters,
        counter_offset_ticks=apart_ticks,
        span_ns=span_ns,
        multiprocessor_span_ticks=unit_ticks,
        multiprocessor_span_ns=unit_ticks / rate,
    )


# Durations


def _histogram(durations: Ints, us_per_tick: float) -> tuple[Bin, ...]:
    """Equal bins for most durations, one bin for all shorter ones and one for all longer ones.

    Bounds are whole ticks, so that rounding by a coarse clock leaves no bin empty.
    """
    shortest, longest = int(durations.min()), int(durations.max())
    lower, upper = np.percentile(durations, [25, 75])
    reach = _REACH * (upper - lower)
    low, high = max(shortest, math.floor(lower - reach)), min(longest, math.ceil(upper + reach))
    width = -(-(high + 1 - low) // _BINS)
    bounds = [*range(low, high + 1, width), high + 1]
    if shortest < low:
        bounds.insert(0, shortest)
    if longest > high:
        bounds.append(longest + 1)
    counts = np.diff(np.searchsorted(np.sort(durations), bounds))
    return tuple(
        Bin(first * us_per_tick, last * us_per_tick, int(count))
        for first, last, count in zip(bounds, bounds[1:], counts, strict=False)
    )


# Multiprocessors, each by its own counter


def _last(ends: Numbers, unit: Ints) -> Numbers:
    """The last end on each multiprocessor; none is negative."""
    last: Numbers = np.zeros(int(unit.max()) + 1, ends.dtype)
    np.maximum.at(last, unit, ends)
    return last


def _most_together(start: Numbers, end: Numbers, unit: Ints | None = None) -> Ints:
    """The most blocks that overlap on each multiprocessor; blocks that only touch do not."""
    if unit is None:
        unit = np.zeros(len(start), np.int64)
    units, times = np.concatenate([unit, unit]), np.concatenate([end, start])
    change = np.repeat(np.array([-1, 1], np.int64), len(unit))
    order = np.lexsort((change, times, units))
    firsts = np.searchsorted(units[order], np.arange(int(unit.max()) + 1))
    most: Ints = np.maximum.reduceat(np.cumsum(change[order]), firsts)
    return np.maximum(most, 1)  # by a coarse clock, blocks may take no time


def _imbalance(blocks: _Blocks, multiprocessors: int) -> float | None:
    """The longest busy time over the mean of all multiprocessors, minus 1."""
    order = np.lexsort((blocks.start, blocks.unit))
    unit = blocks.unit[order]
    # One axis for all multiprocessors: each one's times follow those of the one before.
    room = np.cumsum(_last(blocks.end, blocks.unit) + 1)
    shift = np.concatenate([[0], room[:-1]])[unit]
    start, end = blocks.start[order] + shift, blocks.end[order] + shift
    reached = np.concatenate([[0], np.maximum.accumulate(end)[:-1]])
    busy = np.bincount(unit, weights=np.maximum(0, end - np.maximum(start, reached)))
    return float(busy.max() * multiprocessors / busy.sum() - 1) if busy.any() else None


# All multiprocessors, by a clock that they share


def _moments(blocks: _Blocks, rate: float) -> Floats:
    """When each multiprocessor's first block started, in ns by the shared clock.

    The median over its blocks, because a single stamp may be late by a step of that clock.
    """
    from scipy import ndimage

    seen = blocks.start_ns - blocks.start / rate
    moments: Floats = ndimage.median(seen, blocks.unit, np.arange(len(blocks.names)))
    return moments


def _apart_ticks(blocks: _Blocks, rate: float) -> float:
    """The largest difference between counters at one moment."""
    moments = _moments(blocks, rate)
    # Unsigned differences wrap around; converted to signed numbers they are right.
    ahead = (blocks.base - blocks.base[0]).astype(np.int64)
    return float(np.ptp(ahead - (moments - moments[0]) * rate))


def _timer_step_ns(blocks: _Blocks) -> float:
    """The smallest observed step of the shared clock; 0 if none was."""
    seen = np.unique(np.concatenate([blocks.start_ns, blocks.end_ns]))
    return float(np.diff(seen).min()) if len(seen) > 1 else 0.0


def _place(blocks: _Blocks, rate: float, device_kind: str) -> Placed | None:
    """Within a multiprocessor by its ticks, which are finer than the shared clock."""
    if not blocks.known and device_kind != "cpu":
        return None
    shift: Floats | float = _moments(blocks, rate)[blocks.unit] if blocks.known else 0.0
    start, end = blocks.start / rate + shift, blocks.end / rate + shift
    first = start.min()
    unit, names = (blocks.unit, blocks.names) if blocks.known else (None, None)
    return Placed(blocks.row, start - first, end - first, unit, names)


def _tail_share(placed: Placed) -> float:
    _, start, end, unit, _ = placed
    span = float(end.max())
    if unit is not None:
        full_until = float(_last(end, unit).min())
    else:
        ends = np.sort(end)
        # Before the i-th end, the blocks that have started minus the i that have ended are running.
        running = np.searchsorted(np.sort(start), ends) - np.arange(len(ends))
        full_until = float(ends[running == running.max()].max())
    return (span - full_until) / span if span > 0 else 0.0
