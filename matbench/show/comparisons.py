"""Comparisons as tables: a section per device and pair."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import replace

from matbench.analysis.claims import weakening
from matbench.model import settings_of
from matbench.records import encoding
from matbench.records.comparison import ComparisonRecord
from matbench.records.environment import Environment
from matbench.records.outcome import Sustained
from matbench.show import reasons, units
from matbench.show.heading import device_lines
from matbench.show.outcomes import size_label, sustained_line
from matbench.show.table import Column, Field, Group, Report, Row, Section, grouped, section, under
from matbench.show.units import UNKNOWN

VERDICT_STYLES = {"FASTER": "green", "SLOWER": "red", "SAME": "", "UNDECIDED": "yellow"}
_TURNED = {"FASTER": "SLOWER", "SLOWER": "FASTER"}


def report(records: Iterable[ComparisonRecord], environments: Iterable[Environment] = ()) -> Report:
    """Candidates against baselines, in the order given, grouped by size."""
    shown, about = list(records), list(environments)

    def pair_on_device(record: ComparisonRecord) -> tuple[str, ...]:
        case = record.candidate.case
        return case.backend, case.device, record.baseline_name, record.candidate_name

    return Report(
        sections=tuple(_section(group, about) for group in grouped(shown, pair_on_device).values()),
        footer=counted(shown) or "nothing to compare",
        fields=_FIELDS,
        rows=lambda: shown,
        json=lambda: encoding.array([*about, *shown]),
    )


def counted(records: Sequence[ComparisonRecord]) -> str:
    """How many have each verdict."""
    words = [record.verdict or "without a verdict" for record in records]
    return ", ".join(f"{words.count(verdict):,} {verdict}" for verdict in dict.fromkeys(words))


COLUMNS = (
    Column("size", shared=True),
    Column("kernel", shared=True),
    Column("parameters", shared=True),
    Column("baseline", right=True, drop=3),
    Column("candidate", right=True, drop=2),
    Column("the candidate is", right=True, drop=1),
    Column("interval", right=True),
    Column("SM MHz", right=True, drop=5, shared=True),
    Column("W", right=True, drop=4, shared=True),
    Column("J per launch", right=True, drop=4, shared=True),
    Column("max rel err", right=True, drop=4, shared=True),
    Column("samples", right=True, drop=6, shared=True),
)


def _section(records: Sequence[ComparisonRecord], environments: Sequence[Environment]) -> Section:
    first = records[0]
    never = _never_timed(records)
    apart = {id(record) for group in never for record in group}
    sizes = grouped((record for record in records if id(record) not in apart), _size)
    compared = [set(record.notes) for record in records if record.comparison is not None]
    common = set.intersection(*compared) if compared else set()
    return section(
        heading=(
            f"candidate {first.candidate_name} against baseline {first.baseline_name}",
            *device_lines([record.candidate for record in records], environments),
            *sustained_line([r.baseline for r in records] + [r.candidate for r in records]),
            *(note for note in first.notes if note in common),
        ),
        columns=COLUMNS,
        last_title="verdict",
        groups=[
            *(_group(size, group, common) for size, group in sizes.items()),
            Group("", tuple(map(_row_of_several, never))),
        ],
    )


def _size(record: ComparisonRecord) -> str:
    return size_label(record.candidate.case.problem)


def _never_timed(records: Sequence[ComparisonRecord]) -> list[list[ComparisonRecord]]:
    """Cases not compared at several sizes, for reasons that differ at most in their numbers."""

    def alike(record: ComparisonRecord) -> tuple[Hashable, ...]:
        sides = record.baseline, record.candidate
        return record.candidate.case.kernel, _both_params(record), *map(reasons.kind, sides)

    untimed = grouped((record for record in records if record.comparison is None), alike)
    return [group for group in untimed.values() if len(group) > 1]


def _row_of_several(records: Sequence[ComparisonRecord]) -> Row:
    sizes = ", ".join(dict.fromkeys(map(_size, records)))
    row = _placed(records[0], sizes, units.durations([]))
    return replace(row, reason=reasons.comparison_reason(*records))


def _group(size: str, records: Sequence[ComparisonRecord], above: Collection[str]) -> Group:
    """The rows of one size, without the notes that are above the table."""
    time = times(records)
    notes = (tuple(note for note in record.notes if note not in above) for record in records)
    rows = (replace(_placed(r, size, time), notes=n) for r, n in zip(records, notes, strict=True))
    return Group("", tuple(rows))


def _placed(record: ComparisonRecord, size: str, time: units.Formatter) -> Row:
    """The row, whose kernel has no cell if the heading names it."""
    plain = row(record, time)
    is_named = record.candidate.case.kernel == record.candidate_name
    return replace(plain, cells=(size, UNKNOWN if is_named else plain.cells[1], *plain.cells[2:]))


def times(records: Sequence[ComparisonRecord]) -> units.Formatter:
    """One unit for the times of both sides."""
    sides = (side for record in records for side in (record.baseline, record.candidate))
    return units.durations(side.median_ns for side in sides)


def row(record: ComparisonRecord, time: units.Formatter) -> Row:
    """A comparison below `COLUMNS`, in every format."""
    baseline, candidate, comparison = record.baseline, record.candidate, record.comparison
    return Row(
        cells=(
            _size(record),
            candidate.case.kernel,
            _both_params(record),
            time(baseline.median_ns),
            time(candidate.median_ns),
            units.speedup(record.ratio),
            units.speedups(comparison.interval if comparison else None),
            *_sustained(baseline.sustained, candidate.sustained),
            _both(units.error(baseline.max_rel_err), units.error(candidate.max_rel_err)),
            " + ".join(map(str, comparison.samples)) if comparison else UNKNOWN,
        ),
        status=record.verdict or "no verdict",
        # FASTER and SLOWER need no reason.
        reason="" if record.verdict in _TURNED else reasons.comparison_reason(record),
        claims=claimed(record),
        notes=record.notes,
        style=VERDICT_STYLES.get(record.verdict or "", "yellow"),
    )


def claimed(record: ComparisonRecord) -> str:
    """Each side's claims that weaken its checks."""
    sides = (
        (record.baseline_name, record.baseline.case.claims),
        (record.candidate_name, record.candidate.case.claims),
    )
    texts = {name: "; ".join(weakening(claims)) for name, claims in sides}
    if len(set(texts.values())) == 1 and len(texts) > 1:
        texts = {"both": next(iter(texts.values()))}
    return " · ".join(f"claims of {name}: {text}" for name, text in texts.items() if text)


def _both_params(record: ComparisonRecord) -> str:
    sides = (record.baseline, record.candidate)
    return _both(*(settings_of(side.case.params) or UNKNOWN for side in sides))


def _sustained(baseline: Sustained | None, candidate: Sustained | None) -> tuple[str, str, str]:
    """The cells of sustained launches."""
    if baseline is None or candidate is None:
        return (UNKNOWN,) * 3
    sides = (baseline, candidate)
    return (
        _both(*(units.number(side.sm_mhz, 4) for side in sides)),
        _both(*(units.number(side.power_w, 3) for side in sides)),
        _both(*(units.number(side.energy_j, 3) for side in sides)),
    )


def _both(baseline: str, candidate: str) -> str:
    """One text if both sides agree, else `baseline's / candidate's`."""
    return baseline if baseline == candidate else f"{baseline} / {candidate}"


#: CSV's columns; `ratio` is the candidate's time over the baseline's.
_FIELDS: dict[str, Field] = {
    **under("candidate.case", "backend device device_kind"),
    **under("candidate.case.problem", "workload size inputs"),
    "kernel": "candidate.case.kernel",
    "baseline": "baseline_name",
    "candidate": "candidate_name",
    "baseline_params": "baseline.case.params",
    "candidate_params": "candidate.case.params",
    "baseline_median_ns": "baseline.median_ns",
    "candidate_median_ns": "candidate.median_ns",
    "ratio": "comparison.ratio",
    "ratio_low": "comparison.interval.0",
    "ratio_high": "comparison.interval.1",
    "baseline_sustained_sm_mhz": "baseline.sustained.sm_mhz",
    "candidate_sustained_sm_mhz": "candidate.sustained.sm_mhz",
    "baseline_sustained_power_w": "baseline.sustained.power_w",
    "candidate_sustained_power_w": "candidate.sustained.power_w",
    "baseline_sustained_energy_j": "baseline.sustained.energy_j",
    "candidate_sustained_energy_j": "candidate.sustained.energy_j",
    "baseline_max_rel_err": "baseline.max_rel_err",
    "candidate_max_rel_err": "candidate.max_rel_err",
    "baseline_samples": "comparison.samples.0",
    "candidate_samples": "comparison.samples.1",
    "verdict": "verdict",
    "reason": reasons.comparison_reason,
    "notes": "notes",
}


def cell(ratio: float, verdict: str) -> str:
    """`14.7 × faster`; after the verdict, if that is neither FASTER nor SLOWER."""
    factor = units.speedup(ratio)
    return factor if verdict in _TURNED else f"{verdict}: {factor}"
