"""What else was found out about cases, by kind: tables, as HTML, and charts."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from matbench.cli import registry
from matbench.features.charts.cases import DeviceLimits, RankedView
from matbench.features.charts.definitions import Chart
from matbench.records.outcome import Outcome
from matbench.records.reading import Pair
from matbench.show import formats
from matbench.show.table import Section, grouped


class Findings(NamedTuple):
    """What a section of a page has of findings: HTML and charts."""

    html: str
    charts: list[Chart]


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
            part = made.setdefault(kind.page, Findings("", []))
            text = "".join(map(table, report.sections))
            text += "".join(f"<p>{html.escape(line)}</p>" for line in report.footer.splitlines())
            made[kind.page] = Findings(
                f'{part.html}<div data-views="{shown}">{text}</div>',
                [
                    *part.charts,
                    *(msgspec.structs.replace(c, views=numbers) for c in kind.charts(own)),
                ],
            )
    return made


def _views_of(
    finding: Any, about: Sequence[Outcome], views: Sequence[RankedView]
) -> tuple[int, ...]:
    """The numbers of the views of the finding's device and workload.

    A device's name may have become longer there, to tell it from others.
    """
    cases = [finding.case] if hasattr(finding, "case") else [outcome.case for outcome in about]
    return tuple(
        number
        for number, view in enumerate(views)
        for case in cases[-1:]
        if view.workload == case.problem.workload
        and any(
            outcome.case.device_id == case.device_id and outcome.case.device.startswith(case.device)
            for outcome in view.outcomes
        )
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
