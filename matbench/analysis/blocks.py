"""What the stamps of one instrumented launch tell: durations, occupancy, waves, tail, imbalance.

Pure arithmetic over the stamps. A multiprocessor's ticks are compared with each other alone; what
spans several goes by a clock that they share, or is not known and None.

On a GPU each multiprocessor counts ticks from a start of its own, and `%globaltimer` is the clock
that all share. On a CPU every compute unit reads one clock, and no block tells which unit ran it.
"""

from __future__ import annotations

import heapq
import math
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from matbench.errors import CaseError
from matbench.model import DeviceInfo, Launch
from matbench.records.blocks import (
    PERTURBATION_LIMIT,
    Bin,
    BlockProfile,
    Counters,
    Quartiles,
    Spread,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Numbers = TypeVar("Numbers", Ints, Floats)

#: Counters count as aligned up to this share of the span apart, and two steps more of the clock
#: that they are compared by, but never up to more than the second share.
_ALIGNED_SHARE, _LITTLE_SHARE = 0.01, 0.05
#: Bins of the histogram, and how many interquartile ranges they reach beyond the quartiles.
_BINS = 12
_REACH = 3


class BlockSample(NamedTuple):
    """The stamps of one instrumented launch, one row a block: start and end in ticks, start and
    end in nanoseconds (zero where the device has no clock that all multiprocessors share), and the
    multiprocessor. Beside them the event times of that launch and of an empty one."""

    stamps: npt.NDArray[np.uint64]
    ticks_per_ns: float
    event_ns: float
    empty_ns: float
    perturbation: float


class _Blocks(NamedTuple):
    """The blocks that have both stamps. Ticks count from the first start on the same
    multiprocessor (`base`, one each), nanoseconds from the first start of all; `unit` numbers the
    multiprocessors that ran any, and `names` gives theirs. Where the device does not tell them, all
    blocks are on one."""

    start: Ints
    end: Ints
    start_ns: Ints
    end_ns: Ints
    unit: Ints
    names: npt.NDArray[np.uint64]
    base: npt.NDArray[np.uint64]
    told: bool
    row: Ints
    unstamped: int


class Placed(NamedTuple):
    """When blocks ran, in ns since the first start, on a clock that the whole device shares.

    `row` is each one's row among the stamps, `unit` its multiprocessor, numbered from 0 among those
    that ran any, and `names` are theirs; None where the device does not tell.
    """

    row: Ints
    start_ns: Floats
    end_ns: Floats
    unit: Ints | None
    names: npt.NDArray[np.uint64] | None


def _read(stamps: npt.NDArray[np.uint64]) -> _Blocks:
    whole = (stamps[:, 1] > 0) & (stamps[:, 1] >= stamps[:, 0])
    kept = stamps[whole]
    if not len(kept):
        raise CaseError(f"none of the {len(stamps):,} blocks stamped its end: nothing to tell")
    told = bool((kept[:, 2] > 0).all())
    names, unit = np.unique(kept[:, 4] if told else np.zeros_like(kept[:, 4]), return_inverse=True)
    base = np.full(len(names), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(base, unit, kept[:, 0])
    zero_ns = kept[:, 2].min()
    # Subtracted as whole numbers: nanoseconds since 1970 do not fit a float.
    return _Blocks(
        start=(kept[:, 0] - base[unit]).astype(np.int64),
        end=(kept[:, 1] - base[unit]).astype(np.int64),
        start_ns=(kept[:, 2] - zero_ns).astype(np.int64),
        end_ns=(np.maximum(kept[:, 3], kept[:, 2]) - zero_ns).astype(np.int64),
        unit=unit.astype(np.int64),
        names=names,
        base=base,
        told=told,
        row=np.flatnonzero(whole),
        unstamped=len(stamps) - len(kept),
    )


def brief(sample: BlockSample, device: DeviceInfo) -> tuple[float, float | None]:
    """The median block duration in nanoseconds and the imbalance: what a sweep shows of each case.

    As `analyse` finds them, without the rest; `CaseError` when no block has both stamps.
    """
    blocks = _read(sample.stamps)
    median_ns = float(np.median(blocks.end - blocks.start)) / sample.ticks_per_ns
    if not blocks.told:
        return median_ns, None
    return median_ns, _imbalance(blocks, max(device.limits["multiprocessors"], len(blocks.names)))


def analyse(sample: BlockSample, launch: Launch, device: DeviceInfo) -> BlockProfile:
    """Everything that the stamps of one launch tell; `CaseError` when no block has both."""
    blocks, rate = _read(sample.stamps), sample.ticks_per_ns
    durations = blocks.end - blocks.start
    ticks = _quartiles(durations)
    naive_ticks = _naive_span(blocks)
    placed = _place(blocks, rate, device.kind)
    running = None if placed is None else int(_most_together(placed.start_ns, placed.end_ns)[0])
    span_ns = None if placed is None else float(placed.end_ns.max())
    told: dict[str, Any] = {}
    at_once = running
    if blocks.told:
        multiprocessors = max(device.limits["multiprocessors"], len(blocks.names))
        resident = _most_together(blocks.start, blocks.end, blocks.unit)
        at_once = int(resident.sum())
        span_ns = float(blocks.end_ns.max())
        unit_ticks = int(blocks.end.max())
        told = {
            "multiprocessors_used": len(blocks.names),
            "blocks_per_multiprocessor": _blocks_each(blocks, multiprocessors),
            "resident_most": int(resident.max()),
            "resident_median": float(np.median(resident)),
            "imbalance": _imbalance(blocks, multiprocessors),
            "counter_offset_ticks": float(np.ptp(_offsets(blocks, rate))),
            "timer_step_ns": _timer_step_ns(blocks),
            "multiprocessor_span_ticks": unit_ticks,
            "multiprocessor_span_ns": unit_ticks / rate,
        }
    launch_ns = sample.event_ns - sample.empty_ns

    def ratio(span_ns: float | None) -> float | None:
        return span_ns / launch_ns if span_ns is not None and launch_ns > 0 else None

    return BlockProfile(
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
        running_most=running,
        waves=None if at_once is None else len(durations) / at_once,
        tail_share=None if placed is None else _tail_share(placed),
        counters=_counters(blocks, rate, device),
        naive_span_ticks=naive_ticks,
        naive_span_ns=naive_ticks / rate,
        naive_span_ratio=ratio(naive_ticks / rate),
        span_ns=span_ns,
        span_ratio=ratio(span_ns),
        multiprocessor_span_ratio=ratio(told.get("multiprocessor_span_ns")),
        event_ns=sample.event_ns,
        empty_ns=sample.empty_ns,
        launch_ns=launch_ns,
        perturbation=sample.perturbation,
        **told,
    )


def place(sample: BlockSample, device_kind: Literal["gpu", "cpu"]) -> Placed | None:
    """When the blocks that have both stamps ran; None where no clock is known to be shared."""
    return _place(_read(sample.stamps), sample.ticks_per_ns, device_kind)


def apart(start: Numbers, end: Numbers, unit: Ints) -> Ints:
    """A slot for each block, counted from 0, so that no two overlap in a slot of one unit."""
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


def busy(start: Floats, end: Floats) -> list[tuple[float, float]]:
    """The times in which at least one block ran, as starts and ends in order."""
    order = np.argsort(start)
    start, reached = start[order], np.maximum.accumulate(end[order])
    gaps = np.flatnonzero(start[1:] > reached[:-1])
    firsts, lasts = start[np.r_[0, gaps + 1]], reached[np.r_[gaps, -1]]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


# Durations


def _quartiles(values: Ints) -> Quartiles:
    return Quartiles(*(float(value) for value in np.percentile(values, [0, 25, 50, 75, 100])))


def _histogram(durations: Ints, us_per_tick: float) -> tuple[Bin, ...]:
    """Even bins where most durations lie, one for all shorter ones and one for all longer ones.

    Bounds are whole ticks, so that a coarse clock leaves no bin empty by rounding.
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


def _blocks_each(blocks: _Blocks, multiprocessors: int) -> Spread:
    counts = np.zeros(multiprocessors, np.int64)
    counts[: len(blocks.names)] = np.bincount(blocks.unit)
    return Spread(float(counts.min()), float(np.median(counts)), float(counts.max()))


def _last(ends: Numbers, unit: Ints) -> Numbers:
    """The last end on each multiprocessor."""
    order = np.argsort(unit, kind="stable")
    firsts = np.searchsorted(unit[order], np.arange(int(unit.max()) + 1))
    last: Numbers = np.maximum.reduceat(ends[order], firsts)
    return last


def _most_together(start: Numbers, end: Numbers, unit: Ints | None = None) -> Ints:
    """How many blocks overlap at most, on each multiprocessor; those that touch do not."""
    if unit is None:
        unit = np.zeros(len(start), np.int64)
    units, times = np.concatenate([unit, unit]), np.concatenate([end, start])
    change = np.repeat(np.array([-1, 1], np.int64), len(unit))
    order = np.lexsort((change, times, units))
    firsts = np.searchsorted(units[order], np.arange(int(unit.max()) + 1))
    most: Ints = np.maximum.reduceat(np.cumsum(change[order]), firsts)
    return np.maximum(most, 1)  # a coarse clock may see blocks that take no time


def _imbalance(blocks: _Blocks, multiprocessors: int) -> float | None:
    """The longest busy time over the mean of all multiprocessors, less 1."""
    order = np.lexsort((blocks.start, blocks.unit))
    unit = blocks.unit[order]
    # Each multiprocessor's times behind those of the one before: one axis for all of them.
    room = np.cumsum(_last(blocks.end, blocks.unit) + 1)
    shift = np.concatenate([[0], room[:-1]])[unit]
    start, end = blocks.start[order] + shift, blocks.end[order] + shift
    reached = np.concatenate([[0], np.maximum.accumulate(end)[:-1]])
    busy = np.bincount(unit, weights=np.maximum(0, end - np.maximum(start, reached)))
    return float(busy.max() * multiprocessors / busy.sum() - 1) if busy.any() else None


# All multiprocessors, by a clock that they share


def _naive_span(blocks: _Blocks) -> int:
    ends = blocks.base[blocks.unit] + blocks.end.astype(np.uint64)
    return int(ends.max()) - int(blocks.base.min())


def _moments(blocks: _Blocks, rate: float) -> Floats:
    """When each multiprocessor's first block started, in ns by the clock that all share.

    The median over its blocks, for a single stamp may be a step of that clock late.
    """
    seen = blocks.start_ns - blocks.start / rate
    order = np.lexsort((seen, blocks.unit))
    bounds = np.searchsorted(blocks.unit[order], np.arange(len(blocks.names) + 1))
    low, high = (bounds[:-1] + bounds[1:] - 1) // 2, (bounds[:-1] + bounds[1:]) // 2
    moments: Floats = (seen[order][low] + seen[order][high]) / 2
    return moments


def _offsets(blocks: _Blocks, rate: float) -> Floats:
    """How far each counter is ahead of the first one at one moment, in ticks."""
    moments = _moments(blocks, rate)
    # Unsigned differences wrap around; as signed numbers they are right again.
    ahead = (blocks.base - blocks.base[0]).astype(np.int64)
    offsets: Floats = ahead - (moments - moments[0]) * rate
    return offsets


def _timer_step_ns(blocks: _Blocks) -> float | None:
    """The smallest step that the shared clock was seen to take."""
    seen = np.unique(np.concatenate([blocks.start_ns, blocks.end_ns]))
    return float(np.diff(seen).min()) if len(seen) > 1 else None


def _counters(blocks: _Blocks, rate: float, device: DeviceInfo) -> Counters:
    if not blocks.told:
        return "one" if device.kind == "cpu" else "not known"
    if len(blocks.names) == 1:
        return "one"
    span_ns = float(blocks.end_ns.max())
    step_ns = _timer_step_ns(blocks) or 0.0
    allowed_ns = min(_ALIGNED_SHARE * span_ns + 2 * step_ns, _LITTLE_SHARE * span_ns)
    apart = float(np.ptp(_offsets(blocks, rate)))
    return "aligned" if apart <= allowed_ns * rate else "not aligned"


def _place(blocks: _Blocks, rate: float, device_kind: str) -> Placed | None:
    """Within a multiprocessor by its ticks, which are finer than the clock that all share."""
    if not blocks.told and device_kind != "cpu":
        return None
    shift: Floats | float = _moments(blocks, rate)[blocks.unit] if blocks.told else 0.0
    start, end = blocks.start / rate + shift, blocks.end / rate + shift
    first = start.min()
    unit, names = (blocks.unit, blocks.names) if blocks.told else (None, None)
    return Placed(blocks.row, start - first, end - first, unit, names)


def _tail_share(placed: Placed) -> float:
    _, start, end, unit, _ = placed
    span = float(end.max())
    if unit is not None:
        full_until = float(_last(end, unit).min())
    else:
        ends = np.sort(end)
        # Until the i-th end comes, those run that have started, less the i that have ended.
        running = np.searchsorted(np.sort(start), ends) - np.arange(len(ends))
        full_until = float(ends[running == running.max()].max())
    return (span - full_until) / span if span > 0 else 0.0


# In words


class Fact(NamedTuple):
    """One line about a launch: what it is, how much, and what that means."""

    name: str
    value: str
    meaning: str = ""


def facts(profile: BlockProfile) -> list[Fact]:
    """What is known of the blocks and multiprocessors, and in words what is not."""
    p = profile
    ticks, us = p.duration_ticks, p.duration_us
    quarters = f"{_number(us.lower)}, {_number(us.median)}, {_number(us.upper)} µs"
    found = [
        Fact("blocks", f"{p.blocks:,}", f"{_times(p.launch.block)} threads each"),
        Fact("duration, shortest", f"{_number(us.minimum)} µs", f"{ticks.minimum:,.0f} ticks"),
        Fact("duration, quartiles", quarters, f"median {ticks.median:,.0f} ticks"),
        Fact("duration, longest", f"{_number(us.maximum)} µs", f"{ticks.maximum:,.0f} ticks"),
    ]
    if p.unstamped_blocks:
        ended = f"{p.unstamped_blocks:,}"
        found.insert(1, Fact("blocks without an end stamp", ended, "left out of all that follows"))
    each = p.blocks_per_multiprocessor
    if each is not None and p.multiprocessors_used is not None:
        idle = p.multiprocessors - p.multiprocessors_used
        found += [
            Fact(
                "blocks per multiprocessor",
                f"{each.minimum:,.0f} to {each.maximum:,.0f}, median {each.median:,g}",
                f"{idle:,} of {p.multiprocessors:,} ran none" if idle else "all ran some",
            ),
            Fact(
                "resident together",
                f"{p.resident_most:,} at most",
                f"on one multiprocessor; median of each one's most {p.resident_median:,g}",
            ),
        ]
    else:
        found.append(Fact("multiprocessor of a block", "not told", "by this device"))
    if p.running_most is not None:
        units = f"on {p.multiprocessors:,} {_UNITS[p.device_kind]}"
        found.append(Fact("running together", f"{p.running_most:,} at most", units))
    if p.waves is not None:
        found.append(Fact("waves", _number(p.waves), "blocks / what the device held at once"))
    if p.tail_share is not None:
        until = (
            "of the span: from the first idle multiprocessor to the end"
            if p.multiprocessors_used is not None
            else f"of the span: after the last moment with {p.running_most:,} running"
        )
        found.append(Fact("tail", _share(p.tail_share), until))
    imbalance = _share(p.imbalance) if p.imbalance is not None else "not known"
    meaning = (
        "the busiest multiprocessor's time above the mean of all"
        if p.imbalance is not None
        else "without each block's multiprocessor"
    )
    found.append(Fact("imbalance", imbalance, meaning))
    cost = "instrumented against plain launches, in turns"
    if p.perturbed:
        cost = f"≈ more than {PERTURBATION_LIMIT:.0%}: read these times with that in mind"
    elif p.perturbation < -PERTURBATION_LIMIT:
        cost = "noise: plain launches were slower than clocked ones"
    found.append(Fact("cost of the clock", f"{p.perturbation:+.1%}", cost))
    return found


_UNITS = {"gpu": "multiprocessors", "cpu": "compute units"}


class Span(NamedTuple):
    """The length of the launch by one clock; `ratio` to its event time. Empty: not known."""

    clock: str
    ticks: str
    us: str
    ratio: str


def spans(profile: BlockProfile) -> list[Span]:
    """How long the launch took by each clock there is."""
    p = profile
    rows: list[tuple[str, int | None, float | None, float | None]] = [
        ("latest end − earliest start", p.naive_span_ticks, p.naive_span_ns, p.naive_span_ratio)
    ]
    if p.multiprocessor_span_ns is not None:
        rows.append(
            (
                "longest on one multiprocessor",
                p.multiprocessor_span_ticks,
                p.multiprocessor_span_ns,
                p.multiprocessor_span_ratio,
            )
        )
        rows.append(("global timer", None, p.span_ns, p.span_ratio))
    rows.append(("events − an empty launch's", None, p.launch_ns, 1.0 if p.launch_ns > 0 else None))
    return [
        Span(
            clock,
            "" if ticks is None else f"{ticks:,}",
            "" if span_ns is None else _number(span_ns / 1e3),
            "" if ratio is None else f"{ratio:,.3f}",
        )
        for clock, ticks, span_ns, ratio in rows
    ]


def histogram(profile: BlockProfile) -> list[tuple[str, int]]:
    """The bins as `from to` in µs, and their blocks; the outermost may be wider than the rest."""
    widths = [found.high_us - found.low_us for found in profile.histogram]
    decimals = min(6, max(0, 1 - math.floor(math.log10(min(widths)))))
    return [
        (f"{found.low_us:,.{decimals}f} to {found.high_us:,.{decimals}f}", found.blocks)
        for found in profile.histogram
    ]


def explanation(profile: BlockProfile) -> str:
    """Whether "latest end minus earliest start" is the launch's length here, and why or why not."""
    p = profile
    figure = f"{p.naive_span_ticks:,} ticks"
    if p.counters == "not known":
        return (
            "This device tells neither a block's multiprocessor nor a time that all of them share: "
            f"whether their counters are aligned is not known, nor then what {figure} from the "
            "earliest start to the latest end mean."
        )
    if p.counters == "one":
        one = (
            "All compute units of a CPU read one clock"
            if p.device_kind == "cpu"
            else "All blocks ran on one multiprocessor, so by one counter"
        )
        return (
            f"{one}: the {figure} from the earliest start to the latest end are the launch's "
            "length here. Each multiprocessor of a GPU has a counter of its own, and there they "
            "need not be."
        )
    assert p.counter_offset_ticks is not None
    apart = (
        f"up to {p.counter_offset_ticks:,.0f} ticks "
        f"({_number(p.counter_offset_ticks / p.ticks_per_ns / 1e3)} µs)"
    )
    if p.counters == "aligned":
        return (
            f"At one moment by the global timer the multiprocessors' counters are {apart} apart, "
            f"which is little against the launch: the {figure} from the earliest start to the "
            "latest end can be trusted here. Nothing promises that of another device."
        )
    length = "" if p.naive_span_ratio is None else f", {p.naive_span_ratio:,.1f} times its length"
    return (
        "Latest end minus earliest start is not the length of this launch: each multiprocessor "
        f"counts from a start of its own, and at one moment by the global timer their counters are "
        f"{apart} apart. So the {figure} ({_number(p.naive_span_ns / 1e3)} µs{length}) mostly tell "
        "how far apart the counters are. Within one multiprocessor ticks can be compared, and "
        "between them the global timer can."
    )


def _number(value: float) -> str:
    """Four significant digits, none of the whole ones left out."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"


def _share(value: float) -> str:
    return f"{value:.1%}" if value < 10 else f"{value:,.0f} times"


def _times(sizes: tuple[int, ...]) -> str:
    """16 × 16, without the trailing ones of a launch."""
    kept = [size for i, size in enumerate(sizes) if i == 0 or any(s > 1 for s in sizes[i:])]
    return " × ".join(f"{size:,}" for size in kept)
