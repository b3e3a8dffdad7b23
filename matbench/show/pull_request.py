"""Verdicts as Markdown for a pull request: the verdict, what changed, and the rest folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matbench.analysis import comparison
from matbench.model import settings_of
from matbench.records.comparison import ComparisonRecord
from matbench.records.environment import Environment
from matbench.show import formats, safe, units
from matbench.show.heading import device_lines
from matbench.show.outcomes import size_label

#: The longest comment that GitHub accepts, in characters, and room for the lines after a table.
_LONGEST = 65_535
_ROOM = 4_096
#: The most pairs and remarks that are shown before the tables.
_MOST_NAMES = 8
_MOST_REMARKS = 20
_CHANGED = ("SLOWER", "FASTER")
_HEADER = (
    "| size | kernel | parameters | baseline | candidate | the candidate is | interval "
    "| verdict |\n| --- | --- | --- | ---: | ---: | ---: | ---: | --- |"
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
    changed = [
        record for record in records if record.verdict in _CHANGED or record.candidate.is_broken
    ]
    changed.sort(key=lambda record: record.verdict != "SLOWER")
    rest = [
        record
        for record in records
        if not (record.verdict in _CHANGED or record.candidate.is_broken)
    ]
    told = _Text(_LONGEST - _ROOM)
    told.add(f"### {_verdict(records, allowed)}", "")
    pairs = dict.fromkeys((record.candidate_name, record.baseline_name) for record in records)
    names = [f"{_plain(candidate)} against {_plain(baseline)}" for candidate, baseline in pairs]
    if names:
        more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
        told.add(f"{'; '.join(names[:_MOST_NAMES])}{more}: {_counted(records)}", "")
    for remark in remarks[:_MOST_REMARKS]:
        told.add(f"- {_plain(remark)}")
    if len(remarks) > _MOST_REMARKS:
        told.add(f"- … and {len(remarks) - _MOST_REMARKS:,} more")
    if remarks:
        told.add("")
    if changed:
        told.table(changed)
    if rest and told.add("<details>", f"<summary>{_counted(rest)}</summary>", ""):
        told.table(rest)
        told.add("</details>", "", end=True)
    if records:
        told.most = _LONGEST
        for line in device_lines([record.candidate for record in records], environments):
            told.add(f"{_plain(line)}  ")
    return told.text + "\n"


def _verdict(records: Sequence[ComparisonRecord], allowed: float | None) -> str:
    """One sentence that says whether anything is worse."""
    broken = sum(record.candidate.is_broken for record in records)
    slow = sum(comparison.is_too_slow(record, allowed or 0.0) for record in records)
    beyond = f" by more than {allowed * 100:.3g}%" if allowed else ""
    if broken:
        return f"{_cases(broken)} wrong or failed"
    if slow:
        return f"{_cases(slow)} slower{beyond}"
    if not records:
        return "Nothing to compare"
    judged = [record for record in records if record.verdict not in (None, "UNDECIDED")]
    if not judged:
        return "No case could be judged"
    undecided = len(records) - len(judged)
    return f"No case is slower{beyond}" + (f"; {undecided:,} undecided" if undecided else "")


def _cases(count: int) -> str:
    return f"{count:,} case{'s are' if count > 1 else ' is'}"


def _counted(records: Sequence[ComparisonRecord]) -> str:
    found = [record.verdict or "without a verdict" for record in records]
    return ", ".join(f"{found.count(verdict):,} {verdict}" for verdict in dict.fromkeys(found))


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
    found = record.comparison
    sides = record.baseline, record.candidate
    time = units.durations(side.median_ns for side in sides)
    reason = "" if record.verdict in _CHANGED and not record.candidate.is_broken else record.reason
    verdict = ": ".join(filter(None, (record.verdict or record.candidate.status, reason)))
    cells = (
        size_label(record.candidate.case.problem),
        record.candidate.case.kernel,
        _both(settings_of(side.case.params) for side in sides),
        *(time(side.median_ns) for side in sides),
        units.speedup(record.ratio),
        units.speedups(found.interval if found else None),
        verdict,
    )
    return f"| {' | '.join(map(_plain, cells))} |"


def _both(texts: Iterable[str]) -> str:
    return " / ".join(dict.fromkeys(texts))


def _plain(text: str) -> str:
    """Text on one line that Markdown shows as it is."""
    return formats.escape(safe.line(text), "github")
