"""The model of every table: a report has sections, sections have groups, groups have rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from matbench.model import settings_of
from matbench.show import safe
from matbench.show.units import UNKNOWN, superscript

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_NUMBER = re.compile(r"(?<![\w.,])-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")
#: The `drop` of a column that only pages show.
ON_PAGES = -1


def flat(value: Any) -> Any:
    """A value as CSV has it: constants as `TILE=16`, several texts as one."""
    if isinstance(value, Mapping):
        return settings_of(value)
    return "; ".join(value) if isinstance(value, tuple) else value


def plain(value: Any) -> str:
    """The text of a value that needs no unit."""
    return UNKNOWN if value is None or value in ({}, ()) else str(flat(value))


@dataclass(frozen=True)
class Column:
    """One column of one kind of records, in every format.

    `value` is a path in a record (`outcome.case.params`, `outcome.timing.interval_ns.0`), or a
    function of it; without one, `key` is the path. CSV calls it by its `key`. People see it below
    its `title`, as `form` writes it, or what `scale` makes of all values in a group, so that they
    share a unit; `cell` may change that text. What has no key is not in CSV, and what has no title
    is only there.

    On a narrow terminal those with the highest `drop` are dropped first. A `shared` column with the
    same value in every row becomes a line above the table. CSV has columns as declared, tables
    those with the lowest `place` first, and pages those with the lowest `page` that is not 0.
    """

    title: str = ""
    key: str = ""
    value: str | Callable[[Any], object] = ""
    form: Callable[[Any], str] = plain
    scale: Callable[[Iterable[Any]], Callable[[Any], str]] | None = None
    cell: Callable[[Any, str], str] | None = None
    right: bool = False
    drop: int = 0
    shared: bool = False
    place: int = 0
    page: int = 0

    @property
    def name(self) -> str:
        """What pages call it: as CSV does, or its path, or its title."""
        return self.key or (self.title if callable(self.value) else self.value)

    def at(self, record: Any) -> Any:
        """The value: an attribute, item or `len`; None if any part of the path is None."""
        if callable(self.value):
            return self.value(record)
        for name in (self.value or self.key).split("."):
            if record is None:
                return None
            if isinstance(record, tuple):
                record = len(record) if name == "len" else record[int(name)]
            else:
                record = getattr(record, name)
        return record

    def texts(self, records: Sequence[Any]) -> list[str]:
        values = [self.at(record) for record in records]
        texts = map(self.form if self.scale is None else self.scale(values), values)
        if self.cell is None:
            return list(texts)
        return [self.cell(record, text) for record, text in zip(records, texts, strict=True)]


numeric = partial(Column, right=True)


def under(path: str, names: str) -> tuple[Column, ...]:
    """Columns that only CSV has, from attributes of an object in the record, or of the record.

    `median_ns`, or `hot_median_ns=median_ns` if CSV has another name.
    """
    pairs = [name.partition("=") for name in names.split()]
    return tuple(Column("", key, f"{path}.{of or key}".lstrip(".")) for key, _, of in pairs)


def of_tables(columns: Iterable[Column]) -> list[Column]:
    """The columns that tables show, in their order."""
    shown = (c for c in columns if c.drop != ON_PAGES and (c.title or not c.key))
    return sorted(shown, key=lambda column: column.place)


@dataclass(frozen=True)
class Row:
    """Cells in the order of the table's columns, then the last column and the footnotes.

    A `mark` follows the first cell shown. `claims` become a footnote, as notes do, but are never
    merged with claims that differ in their numbers.
    """

    cells: tuple[str, ...] = ()
    status: str = ""
    reason: str = ""
    claims: str = ""
    notes: tuple[str, ...] = ()
    style: str = ""
    best: bool = False
    mark: str = ""

    @staticmethod
    def each(
        columns: Iterable[Column], records: Iterable[_Value], row: Callable[[_Value], Row]
    ) -> tuple[Row, ...]:
        """A row for each record of a group, with the cells of these columns."""
        shown = list(records)
        cells = zip(*(column.texts(shown) for column in of_tables(columns)), strict=True)
        return tuple(replace(row(r), cells=own) for r, own in zip(shown, cells, strict=True))


@dataclass(frozen=True)
class Group:
    """Rows under one title; `size` stands for it in tables without group titles."""

    title: str
    rows: tuple[Row, ...]
    size: str = ""


@dataclass(frozen=True)
class Section:
    """What ran on one device; `legend` explains marks in its cells.

    The last column, titled `last_title`, holds statuses, reasons and footnote marks; if the title
    is empty, there is no such column.
    """

    heading: tuple[str, ...]
    columns: tuple[Column, ...]
    last_title: str
    groups: tuple[Group, ...]
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows]

    def with_rows(self, change: Callable[[Row], Row]) -> Section:
        groups = (replace(group, rows=tuple(map(change, group.rows))) for group in self.groups)
        return replace(self, groups=tuple(groups))

    def printable(self) -> Section:
        """The section with safe text: a heading is one line, and so is a cell, which may be cut."""
        return replace(
            self,
            heading=tuple(map(safe.flat, self.heading)),
            columns=tuple(replace(c, title=safe.line(c.title)) for c in self.columns),
            groups=tuple(Group(safe.line(g.title), g.rows, safe.line(g.size)) for g in self.groups),
        ).with_rows(
            lambda row: replace(
                row,
                cells=tuple(map(safe.line, row.cells)),
                reason=safe.lines(row.reason),
                claims=safe.lines(row.claims),
                notes=tuple(map(safe.lines, row.notes)),
            )
        )

    def with_columns(self, titles: Collection[str]) -> Section:
        """The section with only the columns of these titles."""
        kept = [i for i, column in enumerate(self.columns) if column.title in titles]
        seen = "".join(row.cells[i] for row in self.rows for i in kept)
        return replace(
            self,
            columns=tuple(self.columns[i] for i in kept),
            legend=tuple(entry for entry in self.legend if entry[0] in seen),
        ).with_rows(lambda row: replace(row, cells=tuple(row.cells[i] for i in kept)))


class JUnitCase(NamedTuple):
    """A row as CI systems count it: what it is about (`suite`), its name, how it ended, its time in
    seconds, and notes.

    `ended`: `passed`, `skipped`, `failure` (a wrong result, or slower than allowed), or `error` (it
    did not run).
    """

    suite: str
    name: str
    ended: str = "passed"
    reason: str = ""
    time_s: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """A table in every format: `sections` and `footer` for people, the rest for programs.

    CSV has `columns` of `rows`; JSON, pictures and pages are made of `records`. `tests` are the
    cases as CI systems count them, where rows are cases.
    """

    sections: tuple[Section, ...]
    footer: str
    columns: Sequence[Column]
    rows: Callable[[], Iterable[object]]
    records: Callable[[], Iterable[Any]]
    tests: Callable[[], Sequence[JUnitCase]] = tuple


class Fact(NamedTuple):
    """One figure: its name, its value, and its meaning or origin."""

    name: str
    figure: str
    remark: str = ""


def facts_section(heading: Sequence[str], title: str, facts: Iterable[Fact]) -> Section:
    rows = tuple(Row(fact[:2], reason=fact.remark) for fact in facts)
    columns = (Column(title), Column("figure", right=True))
    return Section(tuple(heading), columns, "remark", (Group("", rows),))


def grouped(values: Iterable[_Value], key: Callable[[_Value], _Key]) -> dict[_Key, list[_Value]]:
    """Values by key; both keep their order of first appearance."""
    groups: dict[_Key, list[_Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups


def section(
    heading: Sequence[str],
    columns: Iterable[Column],
    last_title: str,
    groups: Sequence[Group],
    legend: tuple[tuple[str, str], ...] = (),
) -> Section:
    """A section without empty columns, and without shared columns of only one value.

    The latter become a line above the table. If rows have only notes, the last column is "notes".
    """
    columns = of_tables(columns)
    rows = [row for group in groups for row in group.rows]
    kept: list[Column] = []
    shared: dict[Column, str] = {}
    for index, column in enumerate(columns):
        values = [row.cells[index] for row in rows]
        known = [value for value in values if value != UNKNOWN]
        # Unknown numbers are ignored in the comparison.
        compared = known if column.right else values
        if known and column.shared and len(compared) > 1 and len(set(compared)) == 1:
            shared[column] = known[0]
        elif known:
            kept.append(column)
    if not kept and not shared:
        kept = [*columns[:1]]
    if shared and all(column.right for column in kept):  # one column must name the rows
        kept.append(next(iter(shared)))
        del shared[kept[-1]]
    above = " · ".join(f"{column.title}: {value}" for column, value in shared.items())
    if not any(row.status or row.reason for row in rows):
        last_title = "notes" if any(row.notes or row.claims for row in rows) else ""
    lines = (*heading, above) if above else tuple(heading)
    whole = Section(lines, tuple(columns), last_title, tuple(groups), legend)
    return whole.with_columns([column.title for column in kept]).with_rows(
        lambda row: replace(row, cells=(f"{row.cells[0]} {row.mark}".rstrip(), *row.cells[1:]))
    )


class Footnotes:
    """Texts below a table in the order of their first mention, each with the number that rows cite.

    Notes that differ only in their numbers become one text with ranges.
    """

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._numbers: dict[str, int] = {}

    def marks(self, reasons: Iterable[str], notes: Iterable[str]) -> str:
        """The superscripts of a row, in ascending order; reasons are never merged."""
        numbers = {self._number(text, text) for text in reasons}
        numbers |= {self._number(without_numbers(text), text) for text in notes}
        return " ".join(map(superscript, sorted(numbers)))

    def _number(self, key: str, text: str) -> int:
        self._texts.setdefault(key, []).append(text)
        return self._numbers.setdefault(key, len(self._texts))

    def lines(self) -> list[tuple[str, str]]:
        return [(superscript(n), merged(texts)) for n, texts in enumerate(self._texts.values(), 1)]


def last_cell(row: Row, footnotes: Footnotes, *, inline: bool) -> str:
    """The status with its reason or a footnote; a reason of several lines has a footnote, too."""
    first = safe.line(row.reason.partition("\n")[0])
    below = [row.claims] if row.claims else []
    below += [row.reason] if row.reason and (first != row.reason or not inline) else []
    shown = ": ".join(filter(None, (row.status, first if inline else "")))
    return shown + footnotes.marks(below, row.notes)


def without_numbers(text: str) -> str:
    """A text without its numbers: equal for texts that differ only in their numbers."""
    return _NUMBER.sub("\0", text)


def merged(texts: Sequence[str]) -> str:
    """Texts that differ in their numbers as one: `5 of 40` and `9 of 10` become `5…9 of 10…40`."""
    columns = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    ordered = (sorted(column, key=lambda n: float(n.replace(",", ""))) for column in columns)
    ranges = (dict.fromkeys((numbers[0], numbers[-1])) for numbers in ordered)
    return _NUMBER.sub(lambda _: "…".join(next(ranges)), texts[0])
