"""Verdicts as Markdown for a pull request: the verdict, what changed, and the rest folded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, islice

from matbench.features.gate import recorded
from matbench.records.comparison import ComparisonRecord
from matbench.records.environment import Environment
from matbench.show import comparisons, formats, safe
from matbench.show.outcomes import device_lines
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
    records: Sequence[ComparisonRecord], environments: Sequence[Environment], allowed: float | None,
    remarks: Sequence[str] = (),
) -> str:  # fmt: skip
    """The summary of a comparison, under 65,536 characters; `allowed` is that of the gate.

    Nothing in a record can act as Markdown or HTML.
    """
    by_change = grouped(records, lambda r: r.verdict in _CHANGED or r.candidate.is_broken)
    changed, rest = by_change.get(True, []), by_change.get(False, [])
    changed.sort(key=lambda record: record.verdict != "SLOWER")
    most = _LONGEST - _ROOM
    lines = [f"### {_verdict(records, allowed)}", ""]
    pairs = dict.fromkeys((record.candidate_name, record.baseline_name) for record in records)
    names = [f"{_plain(candidate)} against {_plain(baseline)}" for candidate, baseline in pairs]
    if names:
        more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
        lines += [f"{'; '.join(names[:_MOST_NAMES])}{more}: {comparisons.counted(records)}", ""]
    told = [f"- {_plain(remark)}" for remark in remarks]
    if len(told) > _MOST_REMARKS:
        told[_MOST_REMARKS:] = [f"- … and {len(told) - _MOST_REMARKS:,} more"]
    lines = _fitting([*lines, *told, *([""] if told else [])], (), most)
    for part, is_folded in ((changed, False), (rest, True)):
        if not part:
            continue
        rows = _fitting(list(map(_row, part)), [*lines, _HEADER], most)
        table = [_HEADER, *rows] if rows else []
        if len(rows) < len(part):
            table += ["", f"… and {len(part) - len(rows):,} more"]
        fold = ["<details>", f"<summary>{comparisons.counted(part)}</summary>", ""]
        lines += [*fold, *table, "", "</details>", ""] if is_folded else [*table, ""]
    if records:
        devices = device_lines([record.candidate for record in records], environments)
        lines += _fitting([f"{_plain(line)}  " for line in devices], lines, _LONGEST)
    return "\n".join(lines) + "\n"


def _fitting(lines: Sequence[str], before: Sequence[str], most: int) -> list[str]:
    """The first of some lines that, with the lines before, are no more than so many characters."""
    ends = accumulate((len(line) + 1 for line in lines), initial=sum(len(b) + 1 for b in before))
    return [line for line, end in zip(lines, islice(ends, 1, None), strict=True) if end <= most]


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


def _row(record: ComparisonRecord) -> str:
    [row] = comparisons.rows([record], _SHOWN)
    verdict = ": ".join(filter(None, (row.status, row.reason)))
    return f"| {' | '.join(map(_plain, (*row.cells, verdict)))} |"


def _plain(text: str) -> str:
    """Text on one line that Markdown shows as it is."""
    return formats.escape(safe.line(text), "github")
