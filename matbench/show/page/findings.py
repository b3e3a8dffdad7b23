"""What else was found out about cases: comparisons, tuning searches and clocked launches.

Each has text, as HTML, and charts.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from matbench.model import settings_of
from matbench.records.blocks import BlockProfile
from matbench.records.comparison import ComparisonRecord
from matbench.records.explanation import Explanation, Limits
from matbench.records.grade import Grade
from matbench.records.outcome import Outcome
from matbench.records.reading import Finding
from matbench.records.tuning import TuningRecord
from matbench.show import blocks, comparisons, grade, safe, units
from matbench.show.charts import definitions, timeline
from matbench.show.charts.definitions import Spec
from matbench.show.outcomes import size_label
from matbench.show.table import grouped

#: Up to so many kernels make a matrix of pairs that can be read.
_MOST_NAMES = 16


class Chart(msgspec.Struct, frozen=True):
    """A chart with its data, under a title; a `full` one is as wide as the page."""

    title: str
    note: str
    spec: Spec
    full: bool = False


class Findings(NamedTuple):
    """HTML and charts of three sections, and the limits that were measured, by device."""

    verdicts: str
    verdict_charts: list[Chart]
    blocks: str
    block_charts: list[Chart]
    arithmetic: str
    limits: dict[str, Limits]


def of(found: Iterable[tuple[Finding, Sequence[Outcome]]]) -> Findings:
    compared: list[ComparisonRecord] = []
    tried: list[TuningRecord] = []
    clocked: list[tuple[str, BlockProfile]] = []
    grades: list[Grade] = []
    limits: dict[str, Limits] = {}
    for finding, about in found:
        match finding:
            case ComparisonRecord():
                compared.append(finding)
            case TuningRecord():
                tried.append(finding)
            case BlockProfile():
                title = about[0].case.label if about else finding.device
                clocked.append((safe.line(title), finding))
            case Grade():
                grades.append(finding)
            case Explanation(limits=Limits() as measured):
                limits[finding.case.device] = measured
    return Findings(
        verdicts=_compared(compared) + "".join(_matrices(compared)),
        verdict_charts=[*_forests(compared), *_searches(tried)],
        blocks="".join(_facts(title, profile) for title, profile in clocked),
        block_charts=[chart for found in clocked for chart in _clocked(*found)],
        arithmetic=_graded(grades),
        limits=limits,
    )


# Grades


def _graded(grades: Sequence[Grade]) -> str:
    """The table that compares kernels, and the profile of each."""
    found = []
    for part in grade.report(grades, ()).sections:
        title = part.heading[0]
        rows = [(*row.cells, *([row.reason] if part.last_title else [])) for row in part.rows]
        titles = [column.title for column in part.columns]
        shown = table([*titles, *([part.last_title] if part.last_title else [])], rows, title)
        legend = "".join(f"<p>{html.escape(' '.join(line))}</p>" for line in part.legend)
        found.append(f"<h3>{html.escape(title)}</h3>{shown}{legend}")
    return "".join(found)


# Comparisons


def _compared(records: Sequence[ComparisonRecord]) -> str:
    if not records:
        return ""
    titles = ("size", "candidate", "baseline", "the candidate is", "interval", "verdict")
    rows = [
        (
            size_label(record.candidate.case.problem),
            _side(record.candidate_name, record.candidate),
            _side(record.baseline_name, record.baseline),
            units.speedup(record.ratio),
            units.speedups(record.comparison.interval if record.comparison else None),
            record.verdict or safe.lines(record.reason),
        )
        for record in records
    ]
    return table(titles, rows, "Comparisons")


def _side(name: str, outcome: Outcome) -> str:
    return safe.line(f"{name} {settings_of(outcome.case.params)}".strip())


def _forests(records: Sequence[ComparisonRecord]) -> Iterator[Chart]:
    sizes = grouped(records, lambda record: size_label(record.candidate.case.problem))
    for size, found in sizes.items():
        points = [_ratio(record) for record in found if record.ratio]
        if points:
            spec = definitions.forest(definitions.VERDICTS, points)
            yield Chart(f"Comparisons at {size}", "times as fast as the baseline", spec)


def _ratio(record: ComparisonRecord) -> dict[str, Any]:
    """How many times as fast the candidate is; the record has the ratio of times."""
    assert record.ratio
    low, high = (record.comparison and record.comparison.interval) or (record.ratio, record.ratio)
    names = _side(record.candidate_name, record.candidate), safe.line(record.baseline_name)
    return {
        "label": " / ".join(names),
        "kind": record.verdict or "",
        "value": 1 / record.ratio,
        "low": 1 / high if high else None,
        "high": 1 / low if low else None,
        "tip": {
            "candidate": names[0],
            "baseline": _side(record.baseline_name, record.baseline),
            "the candidate is": units.speedup(record.ratio),
            "interval": units.speedups((low, high)),
            "verdict": record.verdict or "",
            "reason": safe.lines(record.reason),
        },
    }


def _matrices(records: Sequence[ComparisonRecord]) -> Iterator[str]:
    """Every kernel against every other, where there are three or more."""
    for title, square in comparisons.squares(records):
        names = list(dict.fromkeys(name for pair in square for name in pair))
        if 2 < len(names) <= _MOST_NAMES:
            cells = comparisons.cells(square)
            rows = [
                (
                    safe.line(first),
                    *("·" if first == name else cells.get((first, name), "") for name in names),
                )
                for first in names
            ]
            note = "Each cell: the column's kernel compared with the row's."
            yield f"<h3>{html.escape(title)} <small>{note}</small></h3>"
            yield table(("baseline", *map(safe.line, names)), rows, title)


# Tuning


def _searches(records: Sequence[TuningRecord]) -> Iterator[Chart]:
    def search(record: TuningRecord) -> tuple[str, str]:
        case = record.outcome.case
        return safe.line(case.kernel), size_label(case.problem)

    for (kernel, size), found in grouped(records, search).items():
        space = found[0].space
        points = [_candidate(record) for record in found if record.outcome.median_ns]
        yield Chart(
            f"Tuning {kernel} at {size}",
            f"µs by round; {found[0].tried:,} of {space.candidates:,} candidates tried",
            definitions.search(points),
        )


def _candidate(record: TuningRecord) -> dict[str, Any]:
    assert record.outcome.median_ns
    place = "winner" if record.is_best else "default" if record.is_default else "candidate"
    return {
        "kind": place,
        "value": record.outcome.median_ns / 1e3,
        "round": record.round,
        "tip": {
            "parameters": safe.line(settings_of(record.outcome.case.params)),
            "time": units.duration(record.outcome.median_ns),
            "round": str(record.round),
            "place": place,
        },
    }


# Blocks


def _facts(title: str, profile: BlockProfile) -> str:
    rows = [tuple(fact) for fact in blocks.facts(profile)]
    text = html.escape(blocks.explanation(profile))
    return (
        f"<h3>{html.escape(title)}</h3>"
        + table(("", "figure", ""), rows, title)
        + table(blocks.SPAN_TITLES, blocks.spans(profile), f"Length of the launch: {title}")
        + f"<p>{text}</p>"
    )


def _clocked(title: str, profile: BlockProfile) -> Iterator[Chart]:
    found = profile.timeline
    if found is not None:
        note = " · ".join(timeline.notes(found, profile))
        yield Chart(f"Timeline: {title}", note, timeline.spec(found, profile), full=True)
    yield _histogram(title, profile)


def _histogram(title: str, profile: BlockProfile) -> Chart:
    points = [
        {
            "kernel": label,
            **dict.fromkeys(("value", "low", "high"), number),
            "figure": units.count(number),
            "tip": {"duration": f"{label} µs", "blocks": units.count(number)},
        }
        for label, number in blocks.histogram(profile)
    ]
    height = definitions.height(points, "kernel")
    spec = {**definitions.bars(), "height": height, "data": {"values": points}}
    return Chart(f"Durations: {title}", "blocks by duration in µs", spec)


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], label: str) -> str:
    """A table that scrolls sideways where it is too wide; a verdict has its colour."""
    head = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in titles)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{cell}">{cell}</td>'
            if cell in comparisons.VERDICT_STYLES
            else f"<td>{html.escape(cell)}</td>"
            for cell in row
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(label)}">'
        f'<table class="short"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )
