"""What else was found out about cases, by kind: tables, as HTML, and charts."""

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
from matbench.features.page.cases import DeviceLimits, RankedView
from matbench.model import settings_of
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import CaseRecord, Outcome
from matbench.records.reading import Pair
from matbench.show import comparisons, formats
from matbench.show.outcomes import size_label
from matbench.show.table import Section, grouped, of_tables


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
    """What a section of a page has of findings: HTML and charts."""

    html: str
    charts: list[PageChart]


def limits(findings: Iterable[Pair]) -> dict[str, DeviceLimits]:
    """The limits that were measured, by device."""
    known: Iterable[Any] = (finding for finding, _ in findings if getattr(finding, "limits", None))
    return {finding.case.device: finding.limits for finding in known}


def make_findings(findings: Iterable[Pair], views: Sequence[RankedView]) -> dict[str, Findings]:
    """What each section shows of findings, those of each device and workload with its views."""
    made = {name: Findings("", []) for name in ("verdicts", "blocks")}  # these two come first
    for numbers, pairs in grouped(findings, lambda pair: _views_of(*pair, views)).items():
        shown = " ".join(map(str, numbers))
        for kind, own, report in registry.reports(pairs, ()):
            view = registry.load(kind.view)
            part = made.setdefault(view.PAGE, Findings("", []))
            text = "".join(map(table, report.sections))
            text += "".join(f"<p>{html.escape(line)}</p>" for line in report.footer.splitlines())
            charts = _forests(own) if kind.plural == "comparisons" else _charts(view, own)
            made[view.PAGE] = Findings(
                f'{part.html}<div data-views="{shown}">{text}</div>',
                [*part.charts, *(msgspec.structs.replace(c, views=numbers) for c in charts)],
            )
    return made


def _views_of(
    finding: Any, about: Sequence[Outcome], views: Sequence[RankedView]
) -> tuple[int, ...]:
    """The numbers of the views of the finding's device and workload."""
    cases = [finding.case] if hasattr(finding, "case") else [outcome.case for outcome in about]
    return tuple(
        number
        for number, view in enumerate(views)
        for case in cases[-1:]
        if view.workload == case.problem.workload
        and any(_is_device(outcome.case, case) for outcome in view.outcomes)
    )


def _is_device(shown: CaseRecord, case: CaseRecord) -> bool:
    """Whether both ran on one device; its name may have become longer, to tell it from others."""
    return shown.device_id == case.device_id and shown.device.startswith(case.device)


def _charts(view: ModuleType, found: Sequence[Pair]) -> Iterator[PageChart]:
    for title, note, spec in view.charts(found) if hasattr(view, "charts") else ():
        yield PageChart(title, note, spec, full=True)


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


def _forests(found: Sequence[Pair]) -> Iterator[PageChart]:
    records = [record for record, _ in found if isinstance(record, ComparisonRecord)]
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
    [row] = comparisons.rows([record])
    titles = (column.title for column in of_tables(comparisons.COLUMNS))
    settings = settings_of(record.candidate.case.params)
    return {
        "label": f"{record.candidate_name} {settings}".strip() + f" / {record.baseline_name}",
        "kind": record.verdict or "",
        "value": 1 / record.ratio,
        "low": 1 / high if high else None,
        "high": 1 / low if low else None,
        "tip": dict(zip(titles, row.cells, strict=True)) | {"verdict": row.status},
    }
