"""Reports for a terminal: which columns fit its width, as rich renderables."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from matbench.show import safe
from matbench.show.table import Column, Footnotes, Report, Section, last_cell

#: If the last column would be narrower than this, reasons go below the table. Remarks, in tables
#: without statuses, may wrap more.
_LEAST_REASON_WIDTH = 32
_LEAST_REMARK_WIDTH = 20
#: Where reasons and notes wrap if there is no terminal whose width they must fit.
_REASON_WIDTH = 48
_NOTE_WIDTH = 100
_GAP = 2


class Screen(Console):
    """A console on which text is never markup and cannot control the terminal; only rich can.

    It is no console of Jupyter: what is printed is text, and no output of a cell.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, force_jupyter=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else safe.text(segment.text)
            yield segment._replace(text=text)


def text(*renderables: RenderableType) -> str:
    """What a pipe gets: room for every column, and no blanks that fill the lines of tables."""
    console = Screen(width=10_000, file=io.StringIO(), force_terminal=False, color_system=None)
    with console.capture() as printed:
        for renderable in renderables:
            console.print(renderable)
    return "\n".join(line.rstrip() for line in printed.get().split("\n")[:-1])


def renderables(report: Report, width: int | None = None) -> list[RenderableType]:
    """The report for a rich console of `width` cells; without a width no column is dropped.

    Colour marks only the status, which is also in words.
    """
    parts = [part for section in report.sections for part in section_renderables(section, width)]
    return [*parts, Text(report.footer)]


def section_renderables(section: Section, width: int | None) -> Iterator[RenderableType]:
    section = section.printable()
    title, *others = section.heading
    yield Text(title, style="bold")
    yield from map(Text, (*others, ""))
    section, widths, inline = _fitted(section, width)
    footnotes, across = Footnotes(), sum(widths) + _GAP * (len(widths) - 1)
    yield _table(section, widths, header=True)
    yield Text("─" * across)
    for group in section.groups:
        if group.title:
            yield Text(f"\n{group.title}", style="bold")
        table = _table(section, widths, header=False)
        for row in group.rows:
            last = Text(last_cell(row, footnotes, inline=inline), style=row.style)
            table.add_row(*map(Text, row.cells), last, style="bold" if row.best else "")
        yield table
    if below := [*section.legend, *footnotes.lines()]:
        notes = Table.grid(padding=(0, 1))
        notes.add_column()
        widest = max(across, _NOTE_WIDTH) - 3 if width is None else None
        notes.add_column(overflow="fold", max_width=widest)
        for line in below:
            notes.add_row(*map(Text, line))
        yield Text()
        yield notes
    yield Text()


def plain_table(*columns: Column, header: bool = True) -> Table:
    """A table without lines; numbers are never broken."""
    table = Table(box=None, show_header=header, pad_edge=False, padding=(0, _GAP, 0, 0))
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=column.right,
            overflow="fold",
        )
    return table


def _fitted(section: Section, width: int | None) -> tuple[Section, list[int], bool]:
    """Drop columns, the least important first, until the rest fits with the bare status.

    Returns what is left, all widths, the status column's last, and whether reasons stand in it.
    """
    columns = section.columns
    texts = [[c.title, *(row.cells[i] for row in section.rows)] for i, c in enumerate(columns)]
    widths = [max(map(cell_len, cells)) for cells in texts]
    lasts = [
        [last_cell(row, footnotes, inline=inline) for row in section.rows]
        for inline, footnotes in ((False, Footnotes()), (True, Footnotes()))
    ]
    short, full = (max(map(cell_len, [section.last_title, *cells])) for cells in lasts)
    if width is None:
        return section, [*widths, max(short, min(full, _REASON_WIDTH))], True
    kept = list(range(len(columns)))

    def room() -> int:
        return width - sum(widths[index] + _GAP for index in kept)

    for index in sorted(kept, key=lambda index: -columns[index].drop):
        if room() < short and columns[index].drop:
            kept.remove(index)
    words = [index for index in kept if not columns[index].right]  # they can wrap
    while room() < short and max((widths[index] for index in words), default=1) > 1:
        widest = max(words, key=lambda index: widths[index])
        widths[widest] = min(widths[widest] - 1, width)
    has_words = any(row.status for row in section.rows)
    inline = room() >= min(full, _LEAST_REASON_WIDTH if has_words else _LEAST_REMARK_WIDTH)
    last = min(full, room()) if inline else short
    narrowed = section.with_columns([columns[index].title for index in kept])
    return narrowed, [*(widths[index] for index in kept), last], inline


def _table(section: Section, widths: list[int], *, header: bool) -> Table:
    """A table with the section's column widths, so that the tables of a section line up."""
    table = plain_table(*section.columns, Column(section.last_title), header=header)
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    return table
