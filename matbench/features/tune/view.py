"""The candidates of a search for the fastest parameters: the best for people, all for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matbench.analysis import claims, leaders, ranking
from matbench.features.tune.record import TuningRecord
from matbench.records import encoding
from matbench.records.environment import Environment
from matbench.show import units
from matbench.show.heading import device_lines
from matbench.show.outcomes import size_label
from matbench.show.table import (
    Column,
    Group,
    Report,
    Row,
    Section,
    grouped,
    numeric,
    section,
    under,
)

PAGE = "verdicts"
#: How many candidates of a search are shown, besides the winner and the defaults.
TOP = 10


def report(records: Iterable[TuningRecord], environments: Iterable[Environment]) -> Report:
    """A section for each kernel on each device, a group for each size, its candidates in the order
    given: the winner first."""
    shown, about = list(records), list(environments)

    def place(record: TuningRecord) -> tuple[str, ...]:
        case = record.outcome.case
        return case.backend, case.device, case.kernel

    return Report(
        sections=tuple(_section(part, about) for part in grouped(shown, place).values()),
        footer=f"{len(shown):,} candidate{'s' if len(shown) > 1 else ''} measured"
        if shown
        else "no candidate could be measured",
        columns=_COLUMNS,
        rows=lambda: shown,
        json=lambda: encoding.array([*about, *shown]),
    )


def _section(records: Sequence[TuningRecord], environments: Sequence[Environment]) -> Section:
    sizes = grouped(records, lambda record: size_label(record.outcome.case.problem))
    return section(
        heading=(
            records[0].outcome.case.kernel,
            *device_lines([record.outcome for record in records], environments),
            *_claimed(records[0]),
            *(f"size {size}: {_searched(group[0])}" for size, group in sizes.items()),
            "against default: in turns with the fastest default; by medians: of the samples shown",
        ),
        columns=_COLUMNS,
        last_title="place",
        groups=[_group(size, group) for size, group in sizes.items()],
    )


def _claimed(record: TuningRecord) -> list[str]:
    """The claims of the kernel that weaken its checks: all candidates have them."""
    texts = claims.weakening(record.outcome.case.claims)
    return [f"claims: {'; '.join(texts)}"] if texts else []


def _searched(record: TuningRecord) -> str:
    """How many candidates were tried, and how the candidates were found."""
    space = record.space
    text = f"{record.tried:,} of {space.candidates:,} candidates tried"
    if space.drawn:
        text += f"; {space.refused:,} of {space.drawn:,} combinations excluded"
    if space.merged:
        text += f", {space.merged:,} duplicates of another launch"
    if space.drawn < space.combinations:
        text += f"; sampled from {space.combinations:,}"
    return text


def _group(size: str, records: Sequence[TuningRecord]) -> Group:
    best = [record for number, record in enumerate(records) if number < TOP or _place(record)]
    equals = _equals(records)

    def row(record: TuningRecord) -> Row:
        return Row(status=_place(record, is_equal=record in equals), best=record is best[0])

    return Group(f"size {size}", Row.each(_COLUMNS, best, row), size)


def _equals(records: Sequence[TuningRecord]) -> list[TuningRecord]:
    """The finalists that cannot be told apart from the fastest of them, by the rule of `run`."""
    finalists = [record for record in records if _is_in_rounds(record)]
    timings = [record.outcome.timing for record in finalists if record.outcome.timing is not None]
    if not timings:
        return []
    flags = leaders.may_lead(timings, finalists[0].outcome.case.device_kind)
    return [record for record, leads in zip(finalists, flags, strict=True) if leads]


def _is_in_rounds(record: TuningRecord) -> bool:
    timing = record.outcome.timing
    return timing is not None and timing.median_ns is not None and len(timing.rounds) > 1


def _spread(record: TuningRecord) -> float | None:
    timing = record.outcome.timing
    known = timing is not None and timing.interval_ns is not None
    return ranking.spread(timing) if known else None


def _place(record: TuningRecord, *, is_equal: bool = False) -> str:
    best = "winner" if record.complete else "best so far"
    equal = is_equal and record.complete and not record.is_best
    places = ((best, record.is_best), ("as fast", equal), ("default", record.is_default))
    return ", ".join(place for place, is_its in places if is_its)


#: Ratios are times over that of the fastest default.
_COLUMNS = (
    *under("outcome.case", "backend device"),
    *under("outcome.case.problem", "workload size inputs"),
    *under("outcome.case", "kernel"),
    Column("parameters", "params", "outcome.case.params"),
    *under("", "is_best is_default complete round"),
    numeric("time", "median_ns", "outcome.median_ns", scale=units.durations),
    numeric("±", value=_spread, form=units.percent, drop=4),
    numeric("against default", "ratio", "comparison.ratio", units.speedup),
    numeric("interval", value="comparison.interval", form=units.speedups, drop=3),
    *under("comparison", "ratio_low=interval.0 ratio_high=interval.1 verdict"),
    numeric("by medians", "median_ratio", form=units.speedup, drop=1),
    numeric("samples", "samples", "outcome.samples_ns.len", units.count, drop=5, place=1),
    numeric("max rel err", "max_rel_err", "outcome.max_rel_err", units.error, drop=2, shared=True),
    *under("", "tried"),
    *under("outcome.case", "sha256"),
)
