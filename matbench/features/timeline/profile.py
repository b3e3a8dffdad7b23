"""Evaluates the stamps of an instrumented launch: durations, occupancy, waves, tail, imbalance.

Pure arithmetic. Ticks are compared only within one multiprocessor; figures across multiprocessors
use a clock that they share, or are None.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from matbench.analysis import block_times
from matbench.analysis.block_times import Blocks, BlockSample, Floats, Ints, Numbers
from matbench.features.timeline import lanes
from matbench.features.timeline.lanes import Placed
from matbench.features.timeline.record import Bin, BlockProfile, Counters, Quartiles, Spread
from matbench.model import DeviceInfo, Launch

#: Counters are aligned if they differ by at most this share of the span plus two steps of the
#: shared clock, but by no more than the second share.
_ALIGNED_SHARE, _LITTLE_SHARE = 0.01, 0.05
#: Bins of the histogram, and how many interquartile ranges they extend beyond the quartiles.
_BINS = 12
_REACH = 3


def analyse(sample: BlockSample, launch: Launch, device: DeviceInfo) -> BlockProfile:
    """All figures from the stamps of one launch; `CaseError` if no block has both stamps."""
    blocks, rate = block_times.read(sample.stamps), sample.ticks_per_ns
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
            timeline=lanes.make_timeline(placed),
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


def _by_multiprocessor(profile: BlockProfile, blocks: Blocks) -> BlockProfile:
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
        imbalance=block_times.imbalance(blocks, units),
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


# All multiprocessors, by a clock that they share


def _moments(blocks: Blocks, rate: float) -> Floats:
    """When each multiprocessor's first block started, in ns by the shared clock.

    The median over its blocks, because a single stamp may be late by a step of that clock.
    """
    from scipy import ndimage

    seen = blocks.start_ns - blocks.start / rate
    moments: Floats = ndimage.median(seen, blocks.unit, np.arange(len(blocks.names)))
    return moments


def _apart_ticks(blocks: Blocks, rate: float) -> float:
    """The largest difference between counters at one moment."""
    moments = _moments(blocks, rate)
    # Unsigned differences wrap around; converted to signed numbers they are right.
    ahead = (blocks.base - blocks.base[0]).astype(np.int64)
    return float(np.ptp(ahead - (moments - moments[0]) * rate))


def _timer_step_ns(blocks: Blocks) -> float:
    """The smallest observed step of the shared clock; 0 if none was."""
    seen = np.unique(np.concatenate([blocks.start_ns, blocks.end_ns]))
    return float(np.diff(seen).min()) if len(seen) > 1 else 0.0


def _place(blocks: Blocks, rate: float, device_kind: str) -> Placed | None:
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
        full_until = float(block_times.last(end, unit).min())
    else:
        ends = np.sort(end)
        # Before the i-th end, the blocks that have started minus the i that have ended are running.
        running = np.searchsorted(np.sort(start), ends) - np.arange(len(ends))
        full_until = float(ends[running == running.max()].max())
    return (span - full_until) / span if span > 0 else 0.0
