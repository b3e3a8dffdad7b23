"""The candidates of a search for the fastest parameters: the best for people, all for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matbench.analysis import claims, leaders, ranking
from matbench.model import settings_of
from matbench.records import encoding
from matbench.records.environment import Environment
from matbench.records.tuning import TuningRecord
from matbench.show import units
from matbench.show.heading import device_lines
from matbench.show.outcomes import size_label
from matbench.show.table import Column, Group, Report, Row, Section, grouped, section, under
from matbench.show.units import UNKNOWN

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
        fields=_FIELDS,
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
        columns=(
            Column("parameters"),
            Column("time", right=True),
            Column("±", right=True, drop=4),
            Column("against default", right=True),
            Column("interval", right=True, drop=3),
            Column("by medians", right=True, drop=1),
            Column("max rel err", right=True, drop=2, shared=True),
            Column("samples", right=True, drop=5),
        ),
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
    time = units.durations(record.outcome.median_ns for record in best)
    equals = _equals(records)
    rows = [
        _row(record, time, _place(record, is_equal=record in equals), best=not number)
        for number, record in enumerate(best)
    ]
    return Group(f"size {size}", tuple(rows), size)


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


def _row(record: TuningRecord, time: units.Formatter, place: str, *, best: bool) -> Row:
    outcome, turns = record.outcome, record.comparison
    timing = outcome.timing
    known = timing is not None and timing.interval_ns is not None
    return Row(
        cells=(
            settings_of(outcome.case.params) or UNKNOWN,
            time(outcome.median_ns),
            units.percent(ranking.spread(timing)) if known else UNKNOWN,
            units.speedup(turns.ratio if turns else None),
            units.speedups(turns.interval if turns else None),
            units.speedup(record.median_ratio),
            units.error(outcome.max_rel_err),
            units.count(len(outcome.samples_ns)),
        ),
        status=place,
        best=best,
    )


def _place(record: TuningRecord, *, is_equal: bool = False) -> str:
    best = "winner" if record.complete else "best so far"
    equal = is_equal and record.complete and not record.is_best
    places = ((best, record.is_best), ("as fast", equal), ("default", record.is_default))
    return ", ".join(place for place, is_its in places if is_its)


#: CSV's columns; ratios are times over that of the fastest default.
_FIELDS = {
    **under("outcome.case", "backend device"),
    **under("outcome.case.problem", "workload size inputs"),
    **under("outcome.case", "kernel params"),
    **under("", "is_best is_default complete round"),
    "median_ns": "outcome.median_ns",
    "ratio": "comparison.ratio",
    "ratio_low": "comparison.interval.0",
    "ratio_high": "comparison.interval.1",
    "verdict": "comparison.verdict",
    "median_ratio": "median_ratio",
    "samples": "outcome.samples_ns.len",
    "max_rel_err": "outcome.max_rel_err",
    "tried": "tried",
    "sha256": "outcome.case.sha256",
}
