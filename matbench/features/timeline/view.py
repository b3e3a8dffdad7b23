"""The blocks of one launch: their durations, their occupancy, and the length of the launch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from matbench.analysis.block_times import BlockSample
from matbench.features.timeline.record import BlockProfile
from matbench.records.environment import Environment
from matbench.records.outcome import PERTURBATION_LIMIT, Outcome
from matbench.show import table
from matbench.show.outcomes import CPU_TIMINGS
from matbench.show.table import Column, Fact, Group, Report, Row, Section, numeric, under
from matbench.show.units import count, number, percent, share

_BAR_WIDTH = 40
PAGE = "blocks"
#: What the counters of a device make of its launches.
_WORDS: dict[str, str] = msgspec.toml.decode(Path(__file__).with_name("words.toml").read_bytes())
#: Of the stamps of a block, and of a launch.
_STAMPS = under(
    "",
    "block_x=0 block_y=1 block_z=2 multiprocessor=3 start_ticks=4 end_ticks=5 start_ns=6 end_ns=7",
)
_COLUMNS = (
    *under("0", "backend device blocks unstamped_blocks"),
    *under("0.duration_us", "shortest_us=minimum median_us=median longest_us=maximum"),
    *under("0", "multiprocessors multiprocessors_used resident_most running_most waves tail_share"),
    *under("0", "imbalance counters naive_span_ns span_ns launch_ns perturbation"),
)


def recorded(
    found: Sequence[tuple[BlockProfile, Sequence[Outcome]]],
    environments: Sequence[Environment],
    sample: BlockSample | None = None,
) -> Report:
    """Launches, each with the outcome of its case, in every format.

    CSV has the stamps of each block of a `sample`, which record files do not have.
    """
    records = [part for profile, about in found for part in (*about, profile)]
    return Report(
        sections=tuple(part for pair in found for part in _sections(*pair)),
        footer="\n".join(explanation(profile) for profile, _ in found),
        columns=_COLUMNS if sample is None else _STAMPS,
        rows=lambda: found if sample is None else _stamps(sample, found[0][0]),
        records=lambda: [*environments, *records],
    )


def _sections(profile: BlockProfile, about: Sequence[Outcome]) -> tuple[Section, Section]:
    """The figures of a launch, and a histogram of its blocks."""
    title = about[0].case.label if about else profile.device
    cpu = [CPU_TIMINGS] if profile.device_kind == "cpu" else []
    heading = [title, f"{profile.backend} · {profile.device}", *cpu]
    bins = profile.histogram
    most = max(bar.blocks for bar in bins) or 1  # a record may say that there were none
    narrowest = min(bar.high_us - bar.low_us for bar in bins)
    form = f",.{min(6, max(0, 1 - math.floor(math.log10(narrowest))))}f"
    columns = (
        Column("duration (µs)", value=lambda bar: f"{bar.low_us:{form}} to {bar.high_us:{form}}"),
        numeric("blocks", value="blocks", form=count),
        numeric("share", value=lambda bar: bar.blocks / profile.blocks, form=percent),
        Column(" ", value=lambda bar: "█" * math.ceil(_BAR_WIDTH * bar.blocks / most)),
    )
    rows = Row.each(columns, bins, lambda _: Row())
    return (
        table.facts_section(heading, "of the launch", facts(profile)),
        Section(("Block durations",), columns, "", (Group("", rows),)),
    )


def _stamps(sample: BlockSample, profile: BlockProfile) -> Iterator[tuple[int | None, ...]]:
    """The place and the stamps of each block; None for what the device does not report."""
    width, height, _ = profile.launch.grid
    for index, row in enumerate(sample.stamps):
        start, end, start_ns, end_ns, unit = row.tolist()
        y, x = divmod(index, width)
        z, y = divmod(y, height)
        shared = (start_ns, end_ns or None) if start_ns else (None, None)
        yield x, y, z, unit if start_ns else None, start, end or None, *shared


def facts(p: BlockProfile) -> Iterator[Fact]:
    """The figures of the blocks and multiprocessors, and which of them are not known."""
    ticks, us = p.duration_ticks, p.duration_us
    threads = " × ".join(f"{side:,}" for side in p.launch.block).removesuffix(" × 1")
    threads = threads.removesuffix(" × 1")
    yield Fact("blocks", count(p.blocks), f"{threads} threads each")
    if p.unstamped_blocks:
        left_out = "excluded from the figures below"
        yield Fact("blocks without an end stamp", count(p.unstamped_blocks), left_out)
    quarters = ", ".join(number(value, 4) for value in (us.lower, us.median, us.upper))
    yield Fact("duration, shortest", f"{number(us.minimum, 4)} µs", f"{count(ticks.minimum)} ticks")
    yield Fact("duration, quartiles", f"{quarters} µs", f"median {count(ticks.median)} ticks")
    yield Fact("duration, longest", f"{number(us.maximum, 4)} µs", f"{count(ticks.maximum)} ticks")
    yield from _filled(p)
    # The length of the launch by each available clock, compared with that by events.
    own, launch = p.multiprocessor_span_ticks, number(p.launch_ns / 1e3, 4)
    for clock, counted, ns in (
        ("latest end − earliest start", p.naive_span_ticks, p.naive_span_ns),
        ("longest on one multiprocessor", own, own / p.ticks_per_ns if own is not None else None),
        ("length by the global timer", None, p.span_ns if own is not None else None),
    ):
        if ns is not None:
            remarks = [f"{count(counted)} ticks"] if counted is not None else []
            remarks += [f"{ns / p.launch_ns:,.3f} × by events"] if p.launch_ns > 0 else []
            yield Fact(clock, f"{number(ns / 1e3, 4)} µs", ", ".join(remarks))
    yield Fact("length by events", f"{launch} µs", "less that of an empty launch")
    cost = "slowdown of the instrumented launch, in turns with the plain one"
    if p.perturbed:
        cost = f"≈ more than {PERTURBATION_LIMIT:.0%}: these times are not those of a plain launch"
    elif p.perturbation < -PERTURBATION_LIMIT:
        cost = "noise: plain launches were slower than instrumented ones"
    yield Fact("cost of reading the clock", f"{p.perturbation:+.1%}", cost)


def _filled(p: BlockProfile) -> Iterator[Fact]:
    """How the blocks were spread over the multiprocessors, and how well they filled the device."""
    spread, used = p.blocks_per_multiprocessor, p.multiprocessors_used
    if spread is None or used is None:
        yield Fact("multiprocessor of a block", "not known", "on this device")
    else:
        blocks = f"{count(spread.minimum)} to {count(spread.maximum)}, median {spread.median:,g}"
        idle = p.multiprocessors - used
        ran = f"{idle:,} of {p.multiprocessors:,} ran none" if idle else "all ran some"
        yield Fact("blocks per multiprocessor", blocks, ran)
        typical = f"on one multiprocessor; the median multiprocessor had {p.resident_median:,g}"
        yield Fact("resident together", f"{count(p.resident_most)} at most", typical)
    if p.running_most is not None:
        units = "compute units" if p.device_kind == "cpu" else "multiprocessors"
        where = f"on {p.multiprocessors:,} {units}"
        yield Fact("running together", f"{count(p.running_most)} at most", where)
    if p.waves is not None:
        yield Fact("waves", number(p.waves, 4), "blocks ÷ blocks that the device held at once")
    if p.tail_share is not None:
        since = "after the first multiprocessor ran out of blocks"
        if used is None:
            since = f"once fewer than {count(p.running_most)} blocks ran together"
            since = since if p.running_most != 1 else "blocks ran one at a time"
        yield Fact("tail", share(p.tail_share), f"of the launch: {since}")
    if p.imbalance is None:
        yield Fact("imbalance", "not known", "the blocks' multiprocessors are not known")
    else:
        busiest = "busiest multiprocessor's time above the mean"
        yield Fact("imbalance", percent(p.imbalance), busiest)


def explanation(p: BlockProfile) -> str:
    """Whether "latest end minus earliest start" is the launch's length here, and why."""
    kind: str = "CPU" if p.counters == "one" and p.device_kind == "cpu" else p.counters
    ticks = p.counter_offset_ticks or 0.0
    us = number(ticks / p.ticks_per_ns / 1e3, 4)
    length = f", {p.naive_span_ns / p.launch_ns:,.1f} times its length" if p.launch_ns > 0 else ""
    return _WORDS[kind].format(
        figure=f"{count(p.naive_span_ticks)} ticks from the earliest start to the latest end",
        apart=f"up to {count(ticks)} ticks ({us} µs)",
        us=number(p.naive_span_ns / 1e3, 4),
        length=length,
    )
