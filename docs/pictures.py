"""The pictures of the documentation: a terminal and charts, as SVG, with a hash of what each shows.

A picture is kept while it shows the same: releases of rich and of Vega draw that in other ways.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

import msgspec
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Group, RenderableType
from rich.text import Text
from tables import DOCS, Shows, read

from matbench.features.charts import error_map_chart, picture
from matbench.features.charts.definitions import Chart
from matbench.records.outcome import ErrorCells
from matbench.records.reading import RecordSet
from matbench.show import comparisons, outcomes, terminal

EXAMPLES = DOCS / "examples"
WIDTH = 100
#: An SVG, and what it shows.
Drawn = tuple[str, str]


def kept(old: str, drawn: Drawn) -> str:
    """The old picture if it is whole and shows the same, or a new one: each with a hash of itself
    and of what it shows."""

    def stamp(svg: str) -> str:
        return f"<!-- {hashlib.sha256((svg + drawn[1]).encode()).hexdigest()} -->"

    svg, _, stamped = old.strip().rpartition("\n")
    if stamped != stamp(svg):
        svg = drawn[0].strip()
    return f"{svg}\n{stamp(svg)}"


def screen(*parts: RenderableType) -> Drawn:
    """What a terminal shows."""
    console = terminal.Screen(record=True, file=io.StringIO(), width=WIDTH)
    console.print(Group(*parts))
    # Whoever looks at it has a font; nothing is fetched for it.
    template = re.sub(r"(?s)@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT)
    svg = console.export_svg(title="matbench", code_format=template, unique_id="screen")
    return svg, terminal.text(*parts)


def first_run() -> Drawn:
    """A run with a wrong kernel and a tie, and a comparison on the same device."""
    ran, compared = (read(EXAMPLES / f"first-{of}.json") for of in ("run", "compare"))
    # As a reader would type it, without `--format json`, which these records need.
    run, compare = (shlex.join(["matbench", *of[0].argv[:-2]]) for _, of in (ran, compared))
    [verdict] = comparisons.report(*compared).sections
    return screen(
        Text(f"$ {run}\n", style="bold"),
        *terminal.renderables(outcomes.report(*ran), WIDTH),
        Text(f"\n$ {compare}\n", style="bold"),
        *terminal.section_renderables(replace(verdict, heading=verdict.heading[:1]), WIDTH),
    )


def chart(charts: Sequence[Chart], title: str, lines: Sequence[str] = ()) -> Drawn:
    """A chart, and its specification, with six digits of each number."""
    spec = json.dumps(picture.spec(charts, title, lines))
    shows = json.dumps(json.loads(spec, parse_float=lambda number: f"{float(number):.6g}"))
    return picture.drawn(charts, title, lines).decode(), shows


def report(file: str, shows: Shows = lambda record: True) -> Drawn:
    """What `matbench report --picture` draws of some records of a file."""
    found, environments = read(file)
    return chart(*picture.of(RecordSet([*environments, *filter(shows, found)])))


def error_map() -> Drawn:
    found = msgspec.json.decode((EXAMPLES / "error-map.json").read_bytes(), type=ErrorCells)
    title = "forgot-barrier TILE=16 at 50x40x36"
    return chart([error_map_chart.chart(found, title, 520, "wrong: reference")], "")
