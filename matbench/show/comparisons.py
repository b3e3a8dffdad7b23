"""Comparisons as tables: a section per device and pair."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from matbench.analysis.ranking import weakening
from matbench.model import settings_of
from matbench.records.comparison import ComparisonRecord
from matbench.records.environment import Environment
from matbench.show import reasons, units
from matbench.show.outcomes import ENDED, device_lines, size_label, sustained_line
from matbench.show.table import (
    Column,
    Group,
    JUnitCase,
    Report,
    Row,
    Section,
    grouped,
    numeric,
    of_tables,
    plain,
    section,
    under,
)
from matbench.show.units import UNKNOWN

#: Verdicts that need no reason.
_CLEAR = ("FASTER", "SLOWER")
#: The section of pages that has comparisons.
PAGE = "verdicts"
VERDICT_STYLES = {"FASTER": "green", "SLOWER": "red", "SAME": "", "UNDECIDED": "yellow"}


def report(
    records: Iterable[ComparisonRecord], environments: Iterable[Environment] = (),
    is_refused: Callable[[ComparisonRecord], bool] = lambda record: False,
) -> Report:  # fmt: skip
    """Candidates against baselines, in the order given, grouped by size; `is_refused` says which
    of them CI systems count as failed."""
    shown, about = list(records), list(environments)
    pairs = grouped(
        shown,
        lambda r: (r.candidate.case.backend, r.candidate.case.device, r.baseline_name,
                   r.candidate_name),
    )  # fmt: skip
    return Report(
        sections=tuple(_section(pair, about) for pair in pairs.values()),
        footer=counted(shown) or "nothing to compare",
        columns=COLUMNS,
        rows=lambda: shown,
        records=lambda: [*about, *shown],
        tests=lambda: [_test(record, is_refused=is_refused(record)) for record in shown],
    )


def _test(record: ComparisonRecord, *, is_refused: bool) -> JUnitCase:
    """A comparison as CI systems count it: it fails if the candidate is wrong, or is refused."""
    case, told = record.candidate.case, reasons.comparison_reason(record)
    if record.ratio is not None and record.interval is not None:
        speeds = units.speedup(record.ratio), f"interval {units.speedups(record.interval)}"
        told = "; ".join(filter(None, (f"{record.verdict}: {', '.join(speeds)}", told)))
    ended = "failure" if is_refused else "passed"
    if record.comparison is None:
        ended = ENDED[record.candidate.status] if record.candidate.is_broken else "skipped"
    settings = f" {settings_of(case.params)}" if case.params else ""
    return JUnitCase(
        suite=f"{case.backend} {case.device}",
        name=f"{record.candidate_name} against {record.baseline_name}{settings} at {_size(record)}",
        ended=ended,
        reason=told,
        notes=(*([told] if ended == "passed" else []), *record.notes),
    )


def counted(records: Sequence[ComparisonRecord]) -> str:
    words = [record.verdict or "without a verdict" for record in records]
    return ", ".join(f"{words.count(verdict):,} {verdict}" for verdict in dict.fromkeys(words))


def _section(records: Sequence[ComparisonRecord], environments: Sequence[Environment]) -> Section:
    first = records[0]
    # The heading names the kernel, unless versions of it are compared.
    is_named = all(record.candidate.case.kernel == record.candidate_name for record in records)
    columns = [c for c in COLUMNS if not (is_named and c.title == "kernel")]
    untimed = grouped((record for record in records if record.comparison is None), _alike)
    never = [group for group in untimed.values() if len(group) > 1]
    apart = {id(record) for group in never for record in group}
    sizes = grouped((record for record in records if id(record) not in apart), _size)
    compared = [set(record.notes) for record in records if record.comparison is not None]
    common = set.intersection(*compared) if compared else set()
    groups = [
        Group(
            "", tuple(replace(r, notes=tuple(n for n in r.notes if n not in common)) for r in shown)
        )
        for shown in (rows(group, columns) for group in sizes.values())
    ]
    several = []
    for group in never:
        [row] = rows(group[:1], columns)
        texts = zip(of_tables(columns), row.cells, strict=True)
        cells = [UNKNOWN if column.key in _TIMES else text for column, text in texts]
        cells[0] = ", ".join(dict.fromkeys(map(_size, group)))
        reason = reasons.comparison_reason(*group)
        several.append(replace(row, cells=tuple(cells), reason=reason))
    return section(
        heading=(
            f"candidate {first.candidate_name} against baseline {first.baseline_name}",
            *device_lines([record.candidate for record in records], environments),
            *sustained_line([r.baseline for r in records] + [r.candidate for r in records]),
            *(note for note in first.notes if note in common),
        ),
        columns=columns,
        last_title="verdict",
        groups=[*groups, Group("", tuple(several))],
    )


def _size(record: ComparisonRecord) -> str:
    return size_label(record.candidate.case.problem)


def _alike(record: ComparisonRecord) -> tuple[Hashable, ...]:
    """The same for cases not compared for reasons that differ at most in their numbers."""
    sides = record.baseline, record.candidate
    params = (tuple(side.case.params.items()) for side in sides)
    return record.candidate.case.kernel, *params, *map(reasons.kind, sides)


def claimed(record: ComparisonRecord) -> str:
    """Each side's claims that weaken its checks."""
    sides = (record.baseline_name, record.baseline), (record.candidate_name, record.candidate)
    texts = {name: "; ".join(weakening(side.case.claims)) for name, side in sides}
    if len(texts) > len({*texts.values()}):
        texts = {"both": texts[record.baseline_name]}
    return " · ".join(f"claims of {name}: {text}" for name, text in texts.items() if text)


def _both(
    title: str, key: str, path: str, form: Callable[[Any], str] = plain, drop: int = 0
) -> tuple[Column, ...]:
    """What both sides have: for people one text if they agree, else `baseline's / candidate's`."""
    sides = [Column("", f"{name}_{key}", f"{name}.{path}") for name in ("baseline", "candidate")]

    def text(record: ComparisonRecord) -> str:
        return " / ".join(dict.fromkeys(form(side.at(record)) for side in sides))

    is_number = form is not plain
    return (Column(title, value=text, right=is_number, drop=drop, shared=True), *sides)


#: `ratio` is the candidate's time over the baseline's.
COLUMNS: tuple[Column, ...] = (
    *under("candidate.case", "backend device device_kind"),
    *under("candidate.case.problem", "workload"),
    Column("size", "size", "candidate.case.problem.size", cell=lambda record, _: _size(record),
           shared=True),
    *under("candidate.case.problem", "inputs"),
    Column("kernel", "kernel", "candidate.case.kernel", shared=True),
    *under("", "baseline=baseline_name candidate=candidate_name"),
    *_both("parameters", "params", "case.params"),
    numeric("baseline", "baseline_median_ns", "baseline.median_ns", drop=3),
    numeric("candidate", "candidate_median_ns", "candidate.median_ns", drop=2),
    numeric("the candidate is", "ratio", form=units.speedup, drop=1),
    numeric("interval", value="interval", form=units.speedups),
    *under("interval", "ratio_low=0 ratio_high=1"),
    *_both("SM MHz", "sustained_sm_mhz", "sustained.sm_mhz", partial(units.number, digits=4), 5),
    *_both("W", "sustained_power_w", "sustained.power_w", units.number, 4),
    *_both("J per launch", "sustained_energy_j", "sustained.energy_j", units.number, 4),
    *_both("max rel err", "max_rel_err", "max_rel_err", units.error, 4),
    numeric("samples", value="comparison.samples", drop=6, shared=True,
            form=lambda both: " + ".join(map(str, both)) if both else UNKNOWN),
    *under("comparison.samples", "baseline_samples=0 candidate_samples=1"),
    *under("", "verdict"),
    Column("", "reason", reasons.comparison_reason),
    *under("", "notes"),
)  # fmt: skip
_TIMES = ("baseline_median_ns", "candidate_median_ns")


def rows(
    records: Sequence[ComparisonRecord], columns: Sequence[Column] = COLUMNS
) -> tuple[Row, ...]:
    """Comparisons below these columns; the times of both sides share a unit."""
    sides = (side for record in records for side in (record.baseline, record.candidate))
    time = units.durations(side.median_ns for side in sides)
    return Row.each(
        [replace(column, form=time) if column.key in _TIMES else column for column in columns],
        records,
        lambda record: Row(
            status=record.verdict or "no verdict",
            reason="" if record.verdict in _CLEAR else reasons.comparison_reason(record),
            claims=claimed(record),
            notes=record.notes,
            style=VERDICT_STYLES.get(record.verdict or "", "yellow"),
        ),
    )
