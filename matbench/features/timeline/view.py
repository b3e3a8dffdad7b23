"""The blocks of one launch: their durations, their occupancy, and the length of the launch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from matbench.analysis.block_times import BlockSample
from matbench.features.charts.definitions import Spec
from matbench.features.timeline import chart
from matbench.features.timeline.record import BlockProfile
from matbench.records import encoding
from matbench.records.environment import Environment
from matbench.records.outcome import PERTURBATION_LIMIT, Outcome
from matbench.show.heading import CPU_TIMINGS
from matbench.show.table import (
    Column,
    Fact,
    Group,
    Report,
    Row,
    Section,
    facts_section,
    section,
    under,
)
from matbench.show.units import UNKNOWN, count, number, percent, share

_SPAN_TITLES = ("measured by", "ticks", "µs", "ratio to events")
_BAR_WIDTH = 40
PAGE = "blocks"
#: Of a launch in a record file.
_COLUMNS = (
    *under("0", "backend device blocks unstamped_blocks"),
    *under("0.duration_us", "shortest_us=minimum median_us=median longest_us=maximum"),
    *under("0", "multiprocessors multiprocessors_used resident_most running_most waves tail_share"),
    *under("0", "imbalance counters naive_span_ns span_ns launch_ns perturbation"),
)


def report(
    profile: BlockProfile,
    sample: BlockSample,
    title: str,
    outcome: Outcome,
    environments: Sequence[Environment],
) -> Report:
    """One launch in every format; CSV has the stamps of each block, JSON the records.

    `outcome` is that of the launch's case, `title` its label.
    """
    heading = [title, f"{profile.backend} · {profile.device}"]
    if profile.device_kind == "cpu":
        heading.append(CPU_TIMINGS)
    return Report(
        sections=_sections(heading, profile),
        footer=explanation(profile),
        columns=under("", " ".join(Stamp.__struct_fields__)),
        rows=lambda: _stamps(sample, profile),
        json=lambda: encoding.array([*environments, outcome, profile]),
    )


def recorded(
    found: Sequence[tuple[BlockProfile, Sequence[Outcome]]], environments: Sequence[Environment]
) -> Report:
    """Launches of record files, without their stamps, which are not recorded."""
    return Report(
        sections=tuple(part for pair in found for part in _sections([_title(*pair)], pair[0])),
        footer="\n".join(explanation(profile) for profile, _ in found),
        columns=_COLUMNS,
        rows=lambda: found,
        json=lambda: encoding.array(
            [*environments, *(part for profile, about in found for part in (*about, profile))]
        ),
    )


def _title(profile: BlockProfile, about: Sequence[Outcome]) -> str:
    return about[0].case.label if about else profile.device


def charts(
    found: Iterable[tuple[BlockProfile, Sequence[Outcome]]],
) -> Iterator[tuple[str, str, Spec]]:
    """Title, note and chart of each launch whose blocks have a timeline."""
    for profile, about in found:
        if profile.timeline is not None:
            note = " · ".join(chart.notes(profile.timeline, profile))
            spec = chart.spec(profile.timeline, profile)
            yield f"Timeline: {_title(profile, about)}", note, spec


def _sections(heading: Sequence[str], profile: BlockProfile) -> tuple[Section, ...]:
    """The figures of a launch, its length by each clock, and a histogram of its blocks."""
    return (
        facts_section(heading, "of the launch", facts(profile)),
        _section(["Length of the launch"], _SPAN_TITLES, spans(profile)),
        _section(["Block durations"], ("duration (µs)", "blocks", "share", ""), _bars(profile)),
    )


def _section(
    heading: Sequence[str], titles: Sequence[str], rows: Iterable[tuple[str, ...]]
) -> Section:
    columns = [Column(title, right=bool(i and title)) for i, title in enumerate(titles)]
    return section(heading, columns, "", [Group("", tuple(map(Row, rows)))])


class Stamp(msgspec.Struct, frozen=True):
    """The stamps of one block as a row of CSV; None if the device does not report it."""

    block_x: int
    block_y: int
    block_z: int
    multiprocessor: int | None
    start_ticks: int
    end_ticks: int | None
    start_ns: int | None
    end_ns: int | None


def _stamps(sample: BlockSample, profile: BlockProfile) -> Iterator[Stamp]:
    width, height, _ = profile.launch.grid
    for index, row in enumerate(sample.stamps):
        start, end, start_ns, end_ns, unit = row.tolist()
        y, x = divmod(index, width)
        z, y = divmod(y, height)
        shared = (start_ns, end_ns or None) if start_ns else (None, None)
        yield Stamp(x, y, z, unit if start_ns else None, start, end or None, *shared)


def facts(profile: BlockProfile) -> Iterator[Fact]:
    """The figures of the blocks and multiprocessors, and which of them are not known."""
    yield from _durations(profile)
    yield from _multiprocessors(profile)
    yield from _shape(profile)
    cost = "slowdown of the instrumented launch, in turns with the plain one"
    if profile.perturbed:
        cost = f"≈ more than {PERTURBATION_LIMIT:.0%}: these times are not those of a plain launch"
    elif profile.perturbation < -PERTURBATION_LIMIT:
        cost = "noise: plain launches were slower than instrumented ones"
    yield Fact("cost of reading the clock", f"{profile.perturbation:+.1%}", cost)


def _durations(p: BlockProfile) -> Iterator[Fact]:
    ticks, us = p.duration_ticks, p.duration_us
    yield Fact("blocks", count(p.blocks), f"{_times(p.launch.block)} threads each")
    if p.unstamped_blocks:
        left_out = "excluded from the figures below"
        yield Fact("blocks without an end stamp", count(p.unstamped_blocks), left_out)
    quarters = ", ".join(number(value, 4) for value in (us.lower, us.median, us.upper))
    yield Fact("duration, shortest", f"{number(us.minimum, 4)} µs", f"{count(ticks.minimum)} ticks")
    yield Fact("duration, quartiles", f"{quarters} µs", f"median {count(ticks.median)} ticks")
    yield Fact("duration, longest", f"{number(us.maximum, 4)} µs", f"{count(ticks.maximum)} ticks")


def _multiprocessors(p: BlockProfile) -> Iterator[Fact]:
    """How the blocks were spread over the multiprocessors."""
    spread, used = p.blocks_per_multiprocessor, p.multiprocessors_used
    if spread is None or used is None:
        yield Fact("multiprocessor of a block", "not known", "on this device")
        return
    blocks = f"{count(spread.minimum)} to {count(spread.maximum)}, median {spread.median:,g}"
    idle = p.multiprocessors - used
    ran = f"{idle:,} of {p.multiprocessors:,} ran none" if idle else "all ran some"
    yield Fact("blocks per multiprocessor", blocks, ran)
    typical = f"on one multiprocessor; the median multiprocessor had {p.resident_median:,g}"
    yield Fact("resident together", f"{count(p.resident_most)} at most", typical)


def _shape(p: BlockProfile) -> Iterator[Fact]:
    """How well the launch filled the device."""
    if p.running_most is not None:
        units = "compute units" if p.device_kind == "cpu" else "multiprocessors"
        where = f"on {p.multiprocessors:,} {units}"
        yield Fact("running together", f"{count(p.running_most)} at most", where)
    if p.waves is not None:
        yield Fact("waves", number(p.waves, 4), "blocks ÷ blocks that the device held at once")
    if p.tail_share is not None:
        since = "after the first multiprocessor ran out of blocks"
        if p.multiprocessors_used is None:
            since = f"once fewer than {count(p.running_most)} blocks ran together"
            if p.running_most == 1:
                since = "blocks ran one at a time"
        yield Fact("tail", share(p.tail_share), f"of the launch: {since}")
    if p.imbalance is not None:
        busiest = "busiest multiprocessor's time above the mean"
        yield Fact("imbalance", percent(p.imbalance), busiest)
    else:
        yield Fact("imbalance", "not known", "the blocks' multiprocessors are not known")


def spans(profile: BlockProfile) -> list[tuple[str, ...]]:
    """The length of the launch by each available clock: cells below `_SPAN_TITLES`."""
    p = profile
    lengths = [
        ("latest end − earliest start", p.naive_span_ticks, p.naive_span_ns, p.naive_span_ratio),
        (
            "longest on one multiprocessor",
            p.multiprocessor_span_ticks,
            p.multiprocessor_span_ns,
            p.multiprocessor_span_ratio,
        ),
        ("global timer", None, p.span_ns, p.span_ratio),
        ("events − an empty launch's", None, p.launch_ns, 1.0 if p.launch_ns > 0 else None),
    ]
    if p.multiprocessor_span_ns is None:
        del lengths[1:3]
    return [
        (clock, count(ticks), number(ns / 1e3, 4), UNKNOWN if ratio is None else f"{ratio:,.3f}")
        for clock, ticks, ns, ratio in lengths
        if ns is not None
    ]


def _bars(profile: BlockProfile) -> Iterator[tuple[str, ...]]:
    """The histogram: from, to in µs, blocks, share and a bar; the outermost may be wider."""
    bins = profile.histogram
    narrowest = min(bar.high_us - bar.low_us for bar in bins)
    decimals = min(6, max(0, 1 - math.floor(math.log10(narrowest))))
    most = max(bar.blocks for bar in bins) or 1  # a record may say that there were none
    for interval in bins:
        yield (
            f"{interval.low_us:,.{decimals}f} to {interval.high_us:,.{decimals}f}",
            count(interval.blocks),
            percent(interval.blocks / profile.blocks),
            "█" * math.ceil(_BAR_WIDTH * interval.blocks / most),
        )


def explanation(profile: BlockProfile) -> str:
    """Whether "latest end minus earliest start" is the launch's length here, and why."""
    p = profile
    figure = f"{count(p.naive_span_ticks)} ticks from the earliest start to the latest end"
    if p.counters == "not known":
        return (
            "This device reports neither a block's multiprocessor nor a clock that all "
            "multiprocessors share. It is not known whether their counters are aligned, so the "
            f"{figure} may not be the length of this launch."
        )
    if p.counters == "one":
        cause = (
            "All compute units of a CPU read one clock"
            if p.device_kind == "cpu"
            else "All blocks ran on one multiprocessor and read one counter"
        )
        return (
            f"{cause}, so the {figure} are the length of this launch. On a GPU each multiprocessor "
            "has its own counter, and these need not be aligned."
        )
    assert p.counter_offset_ticks is not None
    apart = (
        f"up to {count(p.counter_offset_ticks)} ticks "
        f"({number(p.counter_offset_ticks / p.ticks_per_ns / 1e3, 4)} µs)"
    )
    if p.counters == "aligned":
        return (
            f"Read at the same moment of the global timer, the multiprocessors' counters differ by "
            f"{apart}, which is small compared with the launch: the {figure} can be trusted here, "
            "but perhaps not on other devices."
        )
    length = "" if p.naive_span_ratio is None else f", {p.naive_span_ratio:,.1f} times its length"
    return (
        "Latest end minus earliest start is not the length of this launch: each multiprocessor "
        "counts from its own start, and read at the same moment of the global timer the counters "
        f"differ by {apart}. So the {figure} ({number(p.naive_span_ns / 1e3, 4)} µs{length}) "
        "mostly show how far apart the counters are. Compare ticks only within one "
        "multiprocessor; between multiprocessors use the global timer."
    )


def _times(sizes: tuple[int, ...]) -> str:
    """`16 × 16` for the block or grid (16, 16, 1)."""
    kept = [size for i, size in enumerate(sizes) if i == 0 or any(s > 1 for s in sizes[i:])]
    return " × ".join(f"{size:,}" for size in kept)
