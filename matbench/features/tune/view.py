"""The candidates of a search for the fastest parameters: the best for people, all for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from matbench.analysis import ranking
from matbench.features.tune.record import TuningRecord
from matbench.records.environment import Environment
from matbench.show import table, units
from matbench.show.outcomes import device_lines, size_label
from matbench.show.table import Column, Group, Report, Row, Section, numeric, under

PAGE = "verdicts"
#: How many candidates of a search are shown, besides the winner and the defaults.
_TOP = 10


def report(records: Iterable[TuningRecord], environments: Iterable[Environment]) -> Report:
    """A section for each kernel on each device, a group for each size, its candidates in the order
    given: the winner first."""
    shown, about = list(records), list(environments)

    place = attrgetter("outcome.case.backend", "outcome.case.device", "outcome.case.kernel")
    return Report(
        sections=tuple(_section(part, about) for part in table.grouped(shown, place).values()),
        footer=f"{len(shown):,} candidate{'s' if len(shown) > 1 else ''} measured"
        if shown
        else "no candidate could be measured",
        columns=_COLUMNS,
        rows=lambda: shown,
        records=lambda: [*about, *shown],
    )


def _section(records: Sequence[TuningRecord], environments: Sequence[Environment]) -> Section:
    sizes = table.grouped(records, lambda record: size_label(record.outcome.case.problem))
    heading = [records[0].outcome.case.kernel]
    heading += device_lines([record.outcome for record in records], environments)
    # All candidates have the claims of the kernel that weaken its checks.
    if weakened := "; ".join(ranking.weakening(records[0].outcome.case.claims)):
        heading.append(f"claims: {weakened}")
    for size, (first, *_) in sizes.items():
        space = first.space
        tried = f"size {size}: {first.tried:,} of {space.candidates:,} candidates tried"
        if space.drawn:
            tried += f"; {space.refused:,} of {space.drawn:,} combinations excluded"
        if space.merged:
            tried += f", {space.merged:,} duplicates of another launch"
        if space.drawn < space.combinations:
            tried += f"; sampled from {space.combinations:,}"
        heading.append(tried)
    heading.append(
        "against default: in turns with the fastest default; by medians: of the samples shown"
    )
    groups = [_group(size, group) for size, group in sizes.items()]
    return table.section(heading, _COLUMNS, "place", groups)


def _group(size: str, records: Sequence[TuningRecord]) -> Group:
    # Finalists that cannot be told apart from the fastest of them, by the rule of `run`.
    timed = [(record, record.outcome.timing) for record in records]
    finals = [(record, t) for record, t in timed if t and t.median_ns and len(t.rounds) > 1]
    kind = records[0].outcome.case.device_kind
    flags = ranking.may_lead([timing for _, timing in finals], kind) if finals else []
    equals = [record for (record, _), leads in zip(finals, flags, strict=True) if leads]

    def place(record: TuningRecord) -> str:
        best = "winner" if record.complete else "best so far"
        equal = record in equals and record.complete and not record.is_best
        places = ((best, record.is_best), ("as fast", equal), ("default", record.is_default))
        return ", ".join(place for place, is_its in places if is_its)

    best = best_of(records)
    rows = Row.each(_COLUMNS, best, lambda r: Row(status=place(r), best=r is best[0]))
    return Group(f"size {size}", rows, size)


def best_of(records: Sequence[TuningRecord]) -> list[TuningRecord]:
    """Those of a search that are shown: the first, the winner and the defaults."""
    return [r for i, r in enumerate(records) if i < _TOP or r.is_best or r.is_default]


def _spread(record: TuningRecord) -> float | None:
    timing = record.outcome.timing
    known = timing is not None and timing.interval_ns is not None
    return ranking.spread(timing) if known else None


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
