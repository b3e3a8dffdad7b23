"""Verdicts as Markdown for a pull request: the verdict, what changed, and the rest folded."""

from __future__ import annotations

from collections.abc import Sequence

from matbench.features.gate import recorded
from matbench.records.comparison import ComparisonRecord
from matbench.records.environment import Environment
from matbench.show import comparisons, formats, safe
from matbench.show.heading import device_lines
from matbench.show.table import Column, grouped, of_tables

#: The longest comment that GitHub accepts, in characters, and room for the lines after a table.
_LONGEST = 65_535
_ROOM = 4_096
#: The most pairs and remarks that are shown before the tables.
_MOST_NAMES = 8
_MOST_REMARKS = 20
_CHANGED = ("SLOWER", "FASTER")
#: The columns that a narrow terminal keeps longest.
_SHOWN = [column for column in of_tables(comparisons.COLUMNS) if column.drop < 4]
_COLUMNS = [*_SHOWN, Column("verdict")]
_HEADER = (
    f"| {' | '.join(column.title for column in _COLUMNS)} |\n"
    f"| {' | '.join('---:' if column.right else '---' for column in _COLUMNS)} |"
)


def summary(
    records: Sequence[ComparisonRecord],
    environments: Sequence[Environment],
    allowed: float | None,
    remarks: Sequence[str] = (),
) -> str:
    """The summary of a comparison, under 65,536 characters; `allowed` is that of the gate.

    Nothing in a record can act as Markdown or HTML.
    """
    by_change = grouped(records, lambda r: r.verdict in _CHANGED or r.candidate.is_broken)
    changed, rest = by_change.get(True, []), by_change.get(False, [])
    changed.sort(key=lambda record: record.verdict != "SLOWER")
    markdown = _Text(_LONGEST - _ROOM)
    markdown.add(f"### {_verdict(records, allowed)}", "")
    pairs = dict.fromkeys((record.candidate_name, record.baseline_name) for record in records)
    names = [f"{_plain(candidate)} against {_plain(baseline)}" for candidate, baseline in pairs]
    if names:
        more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
        markdown.add(f"{'; '.join(names[:_MOST_NAMES])}{more}: {comparisons.counted(records)}", "")
    for remark in remarks[:_MOST_REMARKS]:
        markdown.add(f"- {_plain(remark)}")
    if len(remarks) > _MOST_REMARKS:
        markdown.add(f"- … and {len(remarks) - _MOST_REMARKS:,} more")
    if remarks:
        markdown.add("")
    if changed:
        markdown.table(changed)
    if rest and markdown.add("<details>", f"<summary>{comparisons.counted(rest)}</summary>", ""):
        markdown.table(rest)
        markdown.add("</details>", "", end=True)
    if records:
        markdown.most = _LONGEST
        for line in device_lines([record.candidate for record in records], environments):
            markdown.add(f"{_plain(line)}  ")
    return markdown.text + "\n"


def _verdict(records: Sequence[ComparisonRecord], allowed: float | None) -> str:
    """One sentence that says whether anything is worse."""
    broken = sum(record.candidate.is_broken for record in records)
    slow = sum(recorded.is_too_slow(record, allowed or 0.0) for record in records)
    beyond = f" by more than {allowed * 100:.3g}%" if allowed else ""
    if broken:
        return f"{_cases(broken)} wrong or failed"
    if slow:
        return f"{_cases(slow)} slower{beyond}"
    if not records:
        return "Nothing to compare"
    judged = sum(recorded.is_judged(record, allowed) for record in records)
    if not judged:
        return "No case could be judged"
    undecided = len(records) - judged
    return f"No case is slower{beyond}" + (f"; {undecided:,} undecided" if undecided else "")


def _cases(count: int) -> str:
    return f"{count:,} case{'s are' if count > 1 else ' is'}"


class _Text:
    """Lines up to a number of characters; those that must come last are always added."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.lines: list[str] = []
        self.size = 0

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def add(self, *lines: str, end: bool = False) -> bool:
        """Whether the lines fitted."""
        size = sum(len(line) + 1 for line in lines)
        if not end and self.size + size > self.most:
            return False
        self.lines += lines
        self.size += size
        return True

    def table(self, records: Sequence[ComparisonRecord]) -> None:
        if not self.add(_HEADER):
            return
        for number, record in enumerate(records):
            if not self.add(_row(record)):
                self.add("", f"… and {len(records) - number:,} more", end=True)
                break
        self.add("", end=True)


def _row(record: ComparisonRecord) -> str:
    [row] = comparisons.rows([record], _SHOWN)
    verdict = ": ".join(filter(None, (row.status, row.reason)))
    return f"| {' | '.join(map(_plain, (*row.cells, verdict)))} |"


def _plain(text: str) -> str:
    """Text on one line that Markdown shows as it is."""
    return formats.escape(safe.line(text), "github")
