"""The history of a kernel as a table and as a chart, and the commits that are to blame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from matbench.analysis.ranking import LEAST
from matbench.analysis.statistics import verdict_on
from matbench.features.history.commits import CommittedVersion
from matbench.features.history.search import HistorySearch
from matbench.records.environment import Environment
from matbench.show import comparisons, reasons, units
from matbench.show.outcomes import device_lines, size_label
from matbench.show.table import Column, Group, Report, Row, numeric, section, under
from matbench.show.units import UNKNOWN

#: Characters of a subject that a table shows.
_SUBJECT = 32


def report(search: HistorySearch, environments: Sequence[Environment], versions: int) -> Report:
    """The versions that were measured, of so many; the last lines are the answer."""
    steps = [step for step in search.steps if step.outcome is not None]
    outcomes = [step.outcome for step in steps if step.outcome is not None]
    heading = [f"{of.case.kernel} at {size_label(of.case.problem)}" for of in outcomes[:1]]
    heading += device_lines(outcomes, environments) if outcomes else []
    heading += [f"{versions} versions, of which {len(search.steps)} differ in code"]
    columns = _columns(search)
    rows = Group("", Row.each(columns, steps, partial(_row, search)))
    return Report(
        sections=(section(heading, columns, "verdict", [rows]),),
        footer="\n".join(answer(search)),
        columns=columns,
        rows=lambda: steps,
        records=lambda: [*environments, *outcomes, *(step.record for step in steps if step.record)],
    )


def answer(search: HistorySearch) -> list[str]:
    """Which commits are to blame, and what stays open."""
    lines = []
    for step in filter(search.is_blamed, search.steps):
        first = search.steps.index(step.before) if step.before else 0
        untimed = [other.commit for other in search.steps[first + 1 : search.steps.index(step)]]
        others = f" (or {', '.join(untimed)}, not timed)" if untimed else ""
        figures = units.speedups(step.record.interval if step.record else None)
        lines.append(f"{step.commit}{others}: {figures} · {step.subject}")
    who = "These commits" if lines[1:] else "This commit" if lines else "No commit is shown to have"
    head = f"{who} made it slower by more than {(search.edge - 1) * 100:.3g}%"
    return [f"{head}:" if lines else head, *lines, *search.remarks]


def _verdict(search: HistorySearch, step: CommittedVersion) -> str:
    """In the words of `compare`; or the status of a version that is not right."""
    if step.outcome is not None and step.outcome.status != "measured":
        return step.outcome.status
    if step.record is None or step.record.interval is None:
        return "no verdict" if step.record else ""
    low, high = map(math.log, step.record.interval)
    return verdict_on(low, high, search.edge - 1, LEAST[step.record.candidate.case.device_kind])[0]


def _columns(search: HistorySearch) -> tuple[Column, ...]:
    def against(step: CommittedVersion, commit: str) -> str:
        is_next = step.before is search.steps[search.steps.index(step) - 1]
        return UNKNOWN if is_next else commit

    def median_ns(step: CommittedVersion) -> float | None:
        side = step.record.candidate if step.record else step.outcome
        return side.median_ns if side is not None else None

    return (
        Column("commit", "commit"),
        Column("date", "date", form=lambda date: date or UNKNOWN, drop=3),
        Column("subject", "subject", form=_short),
        Column("against", "against", "before.commit", cell=against, place=1),
        numeric("time", "median_ns", median_ns, scale=units.durations, drop=2),
        numeric("the version is", "ratio", "record.ratio", units.speedup, place=1),
        numeric("interval", value="record.interval", form=units.speedups, drop=4, place=1),
        *under("record.interval", "ratio_low=0 ratio_high=1"),
        Column("", "verdict", partial(_verdict, search)),
        Column("", "blamed", search.is_blamed),
    )


def _short(subject: str) -> str:
    return subject if len(subject) <= _SUBJECT else f"{subject[: _SUBJECT - 1]}…"


def _row(search: HistorySearch, step: CommittedVersion) -> Row:
    record, verdict = step.record, _verdict(search, step)
    reason = reasons.outcome_reason(step.outcome) if step.outcome else ""
    if verdict == "no verdict" and record is not None:
        reason = reasons.comparison_reason(record)
    notes = [*(record.notes if record is not None else ())]
    if step.second is not None and not search.is_blamed(step):
        notes.append(f"not confirmed: {units.speedups((step.second.low, step.second.high))}")
    return Row(
        status=verdict,
        reason=reason,
        notes=tuple(notes),
        style=comparisons.VERDICT_STYLES.get(verdict, "yellow"),
        best=search.is_blamed(step),
    )
