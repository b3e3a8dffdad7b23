"""A watched kernel file: the latest version in detail, each earlier one on one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import RenderableType
from rich.text import Text

from matbench.features.watch.version import SavedVersion
from matbench.model import DeviceInfo, settings_of
from matbench.records.comparison import ComparisonRecord
from matbench.show import comparisons, safe, units
from matbench.show.heading import CPU_TIMINGS
from matbench.show.outcomes import size_label
from matbench.show.reasons import comparison_reason
from matbench.show.table import Column, Group, Row, Section, section
from matbench.show.terminal import section_renderables
from matbench.show.units import UNKNOWN

#: How many lines of a compiler's message are shown, and how many earlier versions.
_SHOWN_LINES = 12
_SHOWN_VERSIONS = 8
_SAME = "the same code as"
_VERDICT = [c for c in comparisons.COLUMNS if c.title in ("the candidate is", "interval")]


def screen(
    file_name: str, device: DeviceInfo, versions: Sequence[SavedVersion], width: int | None = None
) -> Iterator[RenderableType]:
    """The whole screen for a file's versions, given oldest first; there is at least one."""
    version = versions[-1]
    heading = [f"{file_name} · {version.label} · {version.saved}", device.label]
    heading += [CPU_TIMINGS] if device.kind == "cpu" else []
    if version.standings and not version.wrong:
        yield from section_renderables(_section(heading, version), width)
        yield Text("timed in turns with the previous version")
    else:
        yield Text(heading[0], style="bold")
        yield from map(Text, (*heading[1:], ""))
    if version.wrong:
        first, *others = version.wrong.splitlines()
        yield Text(first, style="bold red")
        yield from map(Text, others[:_SHOWN_LINES])
        if others[_SHOWN_LINES:]:
            yield Text(f"… and {len(others) - _SHOWN_LINES} more lines")
        yield from (Text(f"    {pasted}") for pasted in version.paste)
        yield Text("Not timed. Fix the file and save again.")
    if version.same_as:
        yield Text(f"{_SAME} {version.same_as}: not timed again.")
    earlier = [v for v in versions[-_SHOWN_VERSIONS - 1 : -1] if v.wrong or v.standings]
    if earlier:
        yield Text()
    for old in reversed(earlier):
        yield Text(line(old), style="dim", overflow="ellipsis", no_wrap=True)


def line(version: SavedVersion) -> str:
    """The result of a version, on one line."""
    head = f"{version.label}, {version.saved}"
    if version.wrong:
        return f"{head}: not timed: {safe.line(version.wrong)}"
    if version.same_as:
        return f"{head}: {_SAME} {version.same_as}: not timed again"
    sizes = []
    for problem, standing in version.standings.items():
        settings = settings_of(standing.params)
        time = f"{units.duration(standing.median_ns)} at {size_label(problem)}"
        timing = time + (f" ({settings})" if settings else "")
        sizes.append("; ".join([timing, *map(_in_words, standing.comparisons)]))
    if not sizes:
        return f"{head}: superseded before it was timed"
    return f"{head}: right; {'; '.join(sizes)}"


def _in_words(record: ComparisonRecord) -> str:
    if record.comparison is None or record.ratio is None:
        return f"not compared with {record.baseline_name}: {comparison_reason(record)}"
    factor = comparisons.cell(record.ratio, record.comparison.verdict)
    return f"{factor} than {record.baseline_name}"


def _section(heading: Sequence[str], version: SavedVersion) -> Section:
    rows = []
    for problem, standing in version.standings.items():
        settings = settings_of(standing.params) or UNKNOWN
        leading = (size_label(problem), units.duration(standing.median_ns), settings)
        opponents: list[ComparisonRecord | None] = [*standing.comparisons]
        for number, record in enumerate(opponents or [None]):
            rows.append(_row(leading if number == 0 else ("", "", ""), record))
    return section(
        heading,
        (
            Column("size"),
            Column("time", right=True),
            Column("parameters"),
            Column("against"),
            Column("this version is", right=True),
            Column("interval", right=True, drop=1),
        ),
        "verdict",
        [Group("", tuple(rows))],
    )


def _row(leading: tuple[str, str, str], record: ComparisonRecord | None) -> Row:
    """A version at one size, and how it compares with one opponent."""
    if record is None:
        return Row((*leading, UNKNOWN, UNKNOWN, UNKNOWN))
    [compared] = comparisons.rows([record], _VERDICT)
    against = f"{record.baseline_name} {settings_of(record.baseline.case.params)}".strip()
    return replace(
        compared,
        cells=(*leading, against, *compared.cells),
        status=record.verdict or "",
        reason="" if record.comparison else comparison_reason(record),
    )
