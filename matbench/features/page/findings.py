"""What else was found out about cases: comparisons, tuning searches and clocked launches.

Each has tables, as HTML, and charts.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, NamedTuple

import msgspec

from matbench.cli import registry
from matbench.features.charts import definitions
from matbench.features.charts.definitions import Spec
from matbench.features.page.cases import RankedView
from matbench.model import settings_of
from matbench.records.blocks import BlockProfile
from matbench.records.comparison import ComparisonRecord
from matbench.records.explanation import Explanation, Limits
from matbench.records.grade import Grade
from matbench.records.outcome import CaseRecord, Outcome
from matbench.records.reading import Finding
from matbench.records.tuning import TuningRecord
from matbench.show import comparisons, formats
from matbench.show.outcomes import size_label
from matbench.show.table import Section, grouped

#: Up to so many kernels make a matrix of pairs that can be read.


class PageChart(msgspec.Struct, frozen=True):
    """A chart with its data, under a title; a `full` one is as wide as the page.

    `views` are the numbers of the views that it belongs to; of none, it is shown with all.
    """

    title: str
    note: str
    spec: Spec
    full: bool = False
    views: tuple[int, ...] = ()


class Findings(NamedTuple):
    """HTML and charts of three sections."""

    verdicts: str
    verdict_charts: list[PageChart]
    blocks: str
    block_charts: list[PageChart]
    arithmetic: str


#: A finding with the outcomes that it is about.
Pair = tuple[Finding, Sequence[Outcome]]


def limits(findings: Iterable[Pair]) -> dict[str, Limits]:
    """The limits that were measured, by device."""
    explained = [finding for finding, _ in findings if isinstance(finding, Explanation)]
    return {e.case.device: e.limits for e in explained if e.limits is not None}


def make_findings(findings: Iterable[Pair], views: Sequence[RankedView]) -> Findings:
    """What a page shows of findings, those of each device and workload with its views."""
    belonging: dict[tuple[int, ...], list[Pair]] = {}
    for pair in findings:
        belonging.setdefault(_views_of(*pair, views), []).append(pair)
    parts = [_in_views(numbers, _found(pairs)) for numbers, pairs in belonging.items()]
    return Findings(
        verdicts="".join(part.verdicts for part in parts),
        verdict_charts=[chart for part in parts for chart in part.verdict_charts],
        blocks="".join(part.blocks for part in parts),
        block_charts=[chart for part in parts for chart in part.block_charts],
        arithmetic="".join(part.arithmetic for part in parts),
    )


def _views_of(
    finding: Finding, about: Sequence[Outcome], views: Sequence[RankedView]
) -> tuple[int, ...]:
    """The numbers of the views of the finding's device and workload."""
    match finding:
        case TuningRecord(outcome=outcome) | ComparisonRecord(candidate=outcome):
            case = outcome.case
        case BlockProfile():
            if not about:
                return ()
            case = about[0].case
        case _:
            case = finding.case
    return tuple(
        number
        for number, view in enumerate(views)
        if view.workload == case.problem.workload
        and any(_is_device(outcome.case, case) for outcome in view.outcomes)
    )


def _is_device(shown: CaseRecord, case: CaseRecord) -> bool:
    """Whether both ran on one device; its name may have become longer, to tell it from others."""
    return shown.device_id == case.device_id and shown.device.startswith(case.device)


def _in_views(numbers: tuple[int, ...], part: Findings) -> Findings:
    def shown(text: str) -> str:
        return f'<div data-views="{" ".join(map(str, numbers))}">{text}</div>' if text else ""

    def drawn(charts: list[PageChart]) -> list[PageChart]:
        return [msgspec.structs.replace(chart, views=numbers) for chart in charts]

    return Findings(
        shown(part.verdicts), drawn(part.verdict_charts),
        shown(part.blocks), drawn(part.block_charts), shown(part.arithmetic),
    )  # fmt: skip


def _found(pairs: Sequence[Pair]) -> Findings:
    compared = [finding for finding, _ in pairs if isinstance(finding, ComparisonRecord)]
    tried = [finding for finding, _ in pairs if isinstance(finding, TuningRecord)]
    grades = [finding for finding, _ in pairs if isinstance(finding, Grade)]
    clocked = [
        (about[0].case.label if about else finding.device, finding)
        for finding, about in pairs
        if isinstance(finding, BlockProfile)
    ]
    tuning, grade = registry.view("TuningRecord"), registry.view("Grade")
    blocks = registry.view("BlockProfile")
    searches = tuning.report(tried, ()).sections if tuning else ()
    return Findings(
        verdicts="".join(map(table, [*comparisons.report(compared).sections, *searches])),
        verdict_charts=list(_forests(compared)),
        blocks="".join(_launch(blocks, *launch) for launch in clocked if blocks),
        block_charts=[chart for launch in clocked if blocks for chart in _charts(blocks, *launch)],
        arithmetic="".join(map(table, grade.report(grades, ()).sections if grade else ())),
    )


def table(section: Section) -> str:
    """A section as HTML; what is too wide scrolls sideways."""
    first, *others = section.printable().heading
    title = html.escape(first)
    parts = formats.section(replace(section, heading=tuple(others)), "html")
    return (
        f'<h3>{title}</h3><div class="wide" tabindex="0" role="region" aria-label="{title}">'
        f"{''.join(parts)}</div>"
    )


# Comparisons


def _forests(records: Sequence[ComparisonRecord]) -> Iterator[PageChart]:
    sizes = grouped(records, lambda record: size_label(record.candidate.case.problem))
    for size, group in sizes.items():
        points = [_ratio(record) for record in group if record.ratio]
        if points:
            spec = definitions.forest(definitions.VERDICTS, points)
            yield PageChart(f"Comparisons at {size}", "times as fast as the baseline", spec)


def _ratio(record: ComparisonRecord) -> dict[str, Any]:
    """How many times as fast the candidate is; the record has the ratio of times."""
    assert record.ratio
    low, high = (record.comparison and record.comparison.interval) or (record.ratio, record.ratio)
    row = comparisons.row(record, comparisons.times([record]))
    titles = (column.title for column in comparisons.COLUMNS)
    settings = settings_of(record.candidate.case.params)
    return {
        "label": f"{record.candidate_name} {settings}".strip() + f" / {record.baseline_name}",
        "kind": record.verdict or "",
        "value": 1 / record.ratio,
        "low": 1 / high if high else None,
        "high": 1 / low if low else None,
        "tip": dict(zip(titles, row.cells, strict=True)) | {"verdict": row.status},
    }


# Blocks


def _launch(blocks: ModuleType, title: str, profile: BlockProfile) -> str:
    sections = map(table, blocks.sections([title], profile))
    return f"{''.join(sections)}<p>{html.escape(blocks.explanation(profile))}</p>"


def _charts(blocks: ModuleType, title: str, profile: BlockProfile) -> Iterator[PageChart]:
    if profile.timeline is not None:
        note, spec = blocks.timeline(profile)
        yield PageChart(f"Timeline: {title}", note, spec, full=True)
