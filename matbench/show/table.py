"""The model of every table: a report has sections, sections have groups, groups have rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from matbench.show.units import UNKNOWN

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Column:
    """One column; on a narrow terminal those with the highest `drop` go first.

    A `shared` column that says the same in every row becomes a line above the table.
    """

    title: str
    right: bool = False
    drop: int = 0
    shared: bool = False


@dataclass(frozen=True)
class Row:
    """Cells in the order of the columns, then what the last column and the footnotes say.

    A `mark` goes beside the first of the cells that are shown. `claims` are a footnote as notes
    are, but never merged with one that differs in its numbers.
    """

    cells: tuple[str, ...]
    status: str = ""
    reason: str = ""
    claims: str = ""
    notes: tuple[str, ...] = ()
    style: str = ""
    best: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Group:
    """Rows under one title; `size` is what a table without group titles says of them."""

    title: str
    rows: tuple[Row, ...]
    size: str = ""


@dataclass(frozen=True)
class Section:
    """What ran on one device; `legend` explains marks in its cells.

    The last column, titled `last_title`, holds statuses, reasons and marks of footnotes; without a
    title there is none.
    """

    heading: tuple[str, ...]
    columns: tuple[Column, ...]
    last_title: str
    groups: tuple[Group, ...]
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows]

    def with_columns(self, titles: Collection[str]) -> Section:
        """The section with those of its columns that have one of these titles."""
        kept = [i for i, column in enumerate(self.columns) if column.title in titles]
        seen = "".join(row.cells[i] for row in self.rows for i in kept)

        def narrowed(row: Row) -> Row:
            return replace(row, cells=tuple(row.cells[i] for i in kept))

        return replace(
            self,
            columns=tuple(self.columns[i] for i in kept),
            groups=tuple(replace(g, rows=tuple(map(narrowed, g.rows))) for g in self.groups),
            legend=tuple(entry for entry in self.legend if entry[0] in seen),
        )


@dataclass(frozen=True)
class Report:
    """A table in every form: `sections` and `footer` for people, the rest for programs.

    `fields` names CSV's columns, each with its path in one of `rows`: `outcome.case.params`, or
    `outcome.timing.interval_ns.0`.
    """

    sections: tuple[Section, ...]
    footer: str
    fields: dict[str, str]
    rows: Callable[[], Iterable[object]]
    json: Callable[[], str]


class Fact(NamedTuple):
    """One figure: its name, how much, and what it means or how it came about."""

    name: str
    figure: str
    remark: str = ""


def facts_section(heading: Sequence[str], title: str, facts: Iterable[Fact]) -> Section:
    """A line for each fact."""
    rows = tuple(Row(fact[:2], reason=fact.remark) for fact in facts)
    columns = (Column(title), Column("figure", right=True))
    return Section(tuple(heading), columns, "remark", (Group("", rows),))


def under(path: str, names: str) -> dict[str, str]:
    """Fields of CSV that are named as the attributes of one object in a row, or of the row."""
    return {name: f"{path}.{name}".removeprefix(".") for name in names.split()}


def grouped(values: Iterable[_Value], key: Callable[[_Value], _Key]) -> dict[_Key, list[_Value]]:
    """Values that share a key, in the order in which they and their keys come."""
    groups: dict[_Key, list[_Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups


def section(
    heading: Sequence[str],
    columns: Sequence[Column],
    last_title: str,
    groups: Sequence[Group],
    legend: tuple[tuple[str, str], ...] = (),
) -> Section:
    """A section without what says nothing: empty columns, and those that are the same throughout.

    The latter become a line above the table. Where rows only have notes, the last column says so.
    """
    rows = [row for group in groups for row in group.rows]
    kept: list[int] = []
    shared: dict[int, str] = {}
    for index, column in enumerate(columns):
        values = [row.cells[index] for row in rows]
        known = [value for value in values if value != UNKNOWN]
        # Numbers are the same when all that are known are.
        compared = known if column.right else values
        if known and column.shared and len(compared) > 1 and len(set(compared)) == 1:
            shared[index] = known[0]
        elif known:
            kept.append(index)
    if shared and all(columns[index].right for index in kept):  # numbers of what?
        first_shared = next(iter(shared))
        del shared[first_shared]
        kept = sorted([*kept, first_shared])
    above = [f"{columns[index].title}: {value}" for index, value in shared.items()]
    if not any(row.status or row.reason for row in rows):
        last_title = "notes" if any(row.notes or row.claims for row in rows) else ""

    def shown(row: Row) -> Row:
        first, *others = (row.cells[index] for index in kept)
        return replace(row, cells=(f"{first} {row.mark}".rstrip(), *others))

    return Section(
        (*heading, *([" · ".join(above)] if above else [])),
        tuple(columns[index] for index in kept),
        last_title,
        tuple(replace(group, rows=tuple(map(shown, group.rows))) for group in groups),
        legend,
    )
