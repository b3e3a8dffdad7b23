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
from matbench.features.timeline import record
from matbench.model import DeviceInfo, Launch

#: Counters are aligned if they differ by at most this share of the span plus two steps of the
#: shared clock, but by no more than the second share.
_ALIGNED_SHARE, _LITTLE_SHARE = 0.01, 0.05
#: Bins of the histogram, and how many interquartile ranges they extend beyond the quartiles.
_BINS, _REACH = 12, 3


def analyse(sample: BlockSample, launch: Launch, device: DeviceInfo) -> record.BlockProfile:
    """All figures from the stamps of one launch; `CaseError` if no block has both stamps."""
    blocks, rate = block_times.read(sample.stamps), sample.ticks_per_ns
    known, durations = blocks.known, blocks.end - blocks.start
    ends = blocks.base[blocks.unit] + blocks.end.astype(np.uint64)
    profile = record.BlockProfile(
        backend=device.backend,
        device=device.name,
        device_kind=device.kind,
        launch=launch,
        blocks=len(durations),
        unstamped_blocks=blocks.unstamped,
        ticks_per_ns=rate,
        duration_ticks=_quartiles(durations),
        histogram=_histogram(durations, 1e-3 / rate),
        multiprocessors=device.limits["multiprocessors"],
        counters="one" if device.kind == "cpu" else "not known",
        naive_span_ticks=int(ends.max()) - int(blocks.base.min()),
        event_ns=sample.event_ns,
        empty_ns=sample.empty_ns,
        perturbation=sample.perturbation,
    )
    moments: Floats = np.zeros(1)
    if known:
        from scipy import ndimage

        # When each multiprocessor's first block started, in ns by the shared clock: the median over
        # its blocks, because a single stamp may be late by a step of that clock.
        seen = blocks.start_ns - blocks.start / rate
        moments = ndimage.median(seen, blocks.unit, np.arange(len(blocks.names)))
    if known or device.kind == "cpu":
        # Within a multiprocessor by its ticks, which are finer than the shared clock.
        start, end = (moments[blocks.unit] + ticks / rate for ticks in (blocks.start, blocks.end))
        start, end = start - start.min(), end - start.min()
        [running] = _most_together(start, end, np.zeros_like(blocks.unit)).tolist()
        span_ns = float(end.max())
        # Until when every multiprocessor had blocks or, if they are not known, as many ran as ever:
        # before the i-th end, the blocks that have started minus the i that have ended are running.
        if known:
            full_ns = float(block_times.last(end, blocks.unit).min())
        else:
            ends_ns = np.sort(end)
            together = np.searchsorted(np.sort(start), ends_ns) - np.arange(len(ends_ns))
            full_ns = float(ends_ns[together == together.max()].max())
        profile = msgspec.structs.replace(
            profile,
            running_most=running,
            waves=len(durations) / running,
            tail_share=(span_ns - full_ns) / span_ns if span_ns > 0 else 0.0,
            span_ns=span_ns,
            timeline=make_timeline(start, end, blocks),
        )
    if not known:
        return profile
    resident = _most_together(blocks.start, blocks.end, blocks.unit)
    units = len(blocks.names)
    most_units = max(profile.multiprocessors, units)
    span_ns = float(blocks.end_ns.max())
    # Unsigned differences wrap around; converted to signed numbers they are right.
    ahead = (blocks.base - blocks.base[0]).astype(np.int64)
    offset = float(np.ptp(ahead - (moments - moments[0]) * rate))
    read = np.unique(np.concatenate([blocks.start_ns, blocks.end_ns]))
    step_ns = float(np.diff(read).min()) if len(read) > 1 else 0.0
    allowed_ns = min(_ALIGNED_SHARE * span_ns + 2 * step_ns, _LITTLE_SHARE * span_ns)
    aligned = "aligned" if offset / rate <= allowed_ns else "not aligned"
    return msgspec.structs.replace(
        profile,
        multiprocessors_used=units,
        blocks_per_multiprocessor=_quartiles(np.bincount(blocks.unit, minlength=most_units)),
        resident_most=int(resident.max()),
        resident_median=float(np.median(resident)),
        waves=len(durations) / int(resident.sum()),
        imbalance=block_times.imbalance(blocks, most_units),
        counters="one" if units == 1 else aligned,
        counter_offset_ticks=offset,
        span_ns=span_ns,
        multiprocessor_span_ticks=int(blocks.end.max()),
    )


def _quartiles(values: Ints) -> record.Quartiles:
    return record.Quartiles(*np.percentile(values, [0, 25, 50, 75, 100]).tolist())


def _histogram(durations: Ints, us_per_tick: float) -> tuple[record.Bin, ...]:
    """Equal bins for most durations, one bin for all shorter ones and one for all longer ones.

    Bounds are whole ticks, so that rounding by a coarse clock leaves no bin empty.
    """
    shortest, longest = int(durations.min()), int(durations.max())
    lower, upper = np.percentile(durations, [25, 75])
    reach = _REACH * (upper - lower)
    low, high = max(shortest, math.floor(lower - reach)), min(longest, math.ceil(upper + reach))
    inner = range(low, high + 1, -(-(high + 1 - low) // _BINS))
    counts, bounds = np.histogram(durations, np.unique([shortest, *inner, high + 1, longest + 1]))
    edges = [bound * us_per_tick for bound in bounds.tolist()]
    return tuple(map(record.Bin, edges, edges[1:], counts.tolist()))


def _most_together(start: Numbers, end: Numbers, unit: Ints) -> Ints:
    """The most blocks that overlap on each multiprocessor; blocks that only touch do not."""
    units, times = np.concatenate([unit, unit]), np.concatenate([end, start])
    change = np.repeat(np.array([-1, 1], np.int64), len(unit))
    order = np.lexsort((change, times, units))
    firsts = np.searchsorted(units[order], np.arange(int(unit.max()) + 1))
    most: Ints = np.maximum.reduceat(np.cumsum(change[order]), firsts)
    return np.maximum(most, 1)  # by a coarse clock, blocks may take no time


def make_timeline(start_ns: Floats, end_ns: Floats, blocks: Blocks) -> record.Timeline | None:
    """A lane per multiprocessor, and in it all its blocks; None if these are too many to show.

    Times are since the first start. If multiprocessors are not known, lanes only keep apart what
    ran at the same time.
    """
    if len(start_ns) > record.MOST_BARS:
        return None
    start, end = (np.rint(ns).astype(np.int64) for ns in (start_ns, end_ns))
    lane, slot = blocks.unit, apart(start, end, blocks.unit)
    if not blocks.known:
        lane, slot = slot, lane
    order = np.lexsort((start, lane))
    columns = (column[order].tolist() for column in (lane, start, end, slot, blocks.row))
    return record.Timeline(
        lanes=int(lane.max()) + 1,
        slots=int(slot.max()) + 1,
        multiprocessors=tuple(blocks.names.tolist()) if blocks.known else None,
        bars=tuple(record.Bar(*bar) for bar in zip(*columns, strict=True)),
    )


def apart(start: Ints, end: Ints, unit: Ints) -> Ints:
    """A slot for each block, numbered from 0, so that no two blocks overlap in a unit's slot."""
    slots = np.zeros(len(start), np.int64)
    ends: list[int] = []  # of each slot's last block in this unit
    here = -1
    for block in np.lexsort((start, unit)):
        if unit[block] != here:
            here, ends = unit[block], []
        slot = next((slot for slot, ended in enumerate(ends) if ended <= start[block]), len(ends))
        ends[slot : slot + 1] = [end[block]]
        slots[block] = slot
    return slots
