"""The model of every table: a report has sections, sections have groups, groups have rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from matbench.show.units import UNKNOWN


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
    """Cells in the order of the columns, then what the last column and the footnotes say."""

    cells: tuple[str, ...]
    status: str = ""
    reason: str = ""
    notes: tuple[str, ...] = ()
    style: str = ""
    best: bool = False


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

    def with_columns(self, kept: Sequence[int]) -> Section:
        """The section with these of its columns."""

        def narrowed(row: Row) -> Row:
            return replace(row, cells=tuple(row.cells[i] for i in kept))

        return replace(
            self,
            columns=tuple(self.columns[i] for i in kept),
            groups=tuple(replace(g, rows=tuple(map(narrowed, g.rows))) for g in self.groups),
        )


@dataclass(frozen=True)
class Report:
    """A table in every form: `sections` and `footer` for people, the rest for programs.

    `fields` names CSV's columns, each with the path to an attribute of `rows`.
    """

    sections: tuple[Section, ...]
    footer: str
    fields: dict[str, str]
    rows: Sequence[object]
    json: Callable[[], str]


def section(
    heading: Sequence[str],
    columns: Sequence[Column],
    last_title: str,
    groups: Sequence[Group],
    legend: tuple[tuple[str, str], ...] = (),
) -> Section:
    """A section that says what is the same for all rows above them, and leaves out empty columns.

    Several rows are needed for that; a `right` column is the same when all known numbers are.
    """
    rows = [row for group in groups for row in group.rows]
    kept, shared = [], []
    for index, column in enumerate(columns):
        values = [row.cells[index] for row in rows]
        known = [value for value in values if value != UNKNOWN]
        compared = known if column.right else values
        if not known:
            continue
        if column.shared and len(compared) > 1 and len(set(compared)) == 1:
            shared.append(f"{column.title}: {known[0]}")
        else:
            kept.append(index)
    above = (*heading, *([" · ".join(shared)] if shared else []))
    whole = Section(above, tuple(columns), last_title, tuple(groups), legend)
    return whole.with_columns(kept)
