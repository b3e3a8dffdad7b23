"""How much the times of unchanged kernels differed between processes, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matbench.analysis.statistics import ENOUGH
from matbench.model import settings_of
from matbench.records import encoding
from matbench.records.environment import Environment
from matbench.records.variation import CaseVariation
from matbench.show import safe, units
from matbench.show.heading import device_lines
from matbench.show.outcomes import size_label
from matbench.show.table import Column, Group, Report, Row, Section, section, under
from matbench.show.units import UNKNOWN


def report(found: Iterable[CaseVariation], environments: Iterable[Environment]) -> Report:
    """A row for each case: its fastest and slowest process, and by how much they differ."""
    shown, about = list(found), list(environments)
    return Report(
        sections=(_section(shown, about),),
        footer="",
        fields=_FIELDS,
        rows=lambda: shown,
        json=lambda: encoding.array([*about, *shown]),
    )


def _section(found: Sequence[CaseVariation], environments: Sequence[Environment]) -> Section:
    return section(
        heading=device_lines([each.outcome for each in found], environments),
        columns=(
            Column("size"),
            Column("kernel"),
            Column("parameters", shared=True),
            Column("fastest process", right=True),
            Column("slowest process", right=True),
            Column("processes differ by", right=True),
            Column(f"groups of {ENOUGH} differ by", right=True),
        ),
        last_title="",
        groups=[Group("", tuple(map(_row, found)))],
    )


def _row(found: CaseVariation) -> Row:
    case = found.outcome.case
    time = units.durations(found.medians_ns)
    return Row(
        (
            size_label(case.problem),
            safe.line(case.kernel),
            safe.line(settings_of(case.params)) or UNKNOWN,
            time(min(found.medians_ns)),
            time(max(found.medians_ns)),
            units.percent(found.variation.processes),
            units.percent(found.variation.recordings),
        )
    )


#: CSV's columns.
_FIELDS = {
    **under("outcome.case", "backend device device_kind"),
    **under("outcome.case.problem", "workload size inputs"),
    "kernel": "outcome.case.kernel",
    "params": "outcome.case.params",
    **under("variation", "processes recordings runs"),
}
