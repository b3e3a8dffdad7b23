"""The pictures of the documentation: a terminal and charts, as SVG, with a hash of what each shows.

A picture is kept while it shows the same: releases of rich and of Vega draw that in other ways.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import judged
import msgspec
import published
from measured import DOCS, RECORDS, compared_in, read
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import RenderableType
from rich.text import Text

from matbench.features.charts import error_map_chart, picture
from matbench.records import reading
from matbench.records.environment import Environment
from matbench.records.outcome import ErrorCells
from matbench.show import comparisons, outcomes, terminal

EXAMPLES = DOCS / "examples"
WIDTH, CHARACTER_WIDTH = 100, 12.2
#: A piece of text in a screen: where it begins, how long it is, and what it says.
TEXT = re.compile(
    r'(<text[^>]* x=")([\d.]+)(" y="[\d.]+" textLength=")[\d.]+("[^>]*>)([^<]*)</text>'
)
#: An SVG, and what it shows.
Drawn = tuple[str, str]


def stamped(svg: str, shows: str) -> str:
    """A picture with a hash of itself and of what it shows."""
    return f"{svg}<!-- {hashlib.sha256((svg + shows).encode()).hexdigest()} -->\n"


def kept(draw: Callable[[], Drawn], old: str) -> str:
    """The old picture if it is whole and shows the same, or a new one."""
    svg, shows = draw()
    return old if old == stamped(old.rpartition("<!-- ")[0], shows) else stamped(svg, shows)


def screen(parts: Sequence[RenderableType]) -> Drawn:
    """What a terminal shows."""
    console = terminal.Screen(
        record=True, file=io.StringIO(), width=WIDTH, force_terminal=True,
        color_system="truecolor", _environ={},
    )  # fmt: skip
    for part in parts:
        console.print(part)
    text = "\n".join(map(str.rstrip, console.export_text(clear=False).strip().splitlines()))
    # Whoever looks at it has a font; nothing is fetched for it.
    template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title="matbench", code_format=template, unique_id="screen")
    lines = TEXT.sub(_without_padding, svg).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip()) + "\n", text


def _without_padding(piece: re.Match[str]) -> str:
    """The piece without spaces around it, which some viewers drop and so shift the rest."""
    before, x, between, after, text = piece.groups()
    words = html.unescape(text).replace("\xa0", " ").rstrip()
    shift = len(words) - len(words.lstrip())
    at, width = float(x) + CHARACTER_WIDTH * shift, CHARACTER_WIDTH * (len(words) - shift)
    shown = html.escape(words.lstrip()).replace(" ", "&#160;")
    return f"{before}{at:g}{between}{width:g}{after}{shown}</text>" if shown else ""


def first_run() -> Drawn:
    """A run with a wrong kernel and a tie, and a comparison on the same device."""
    run, pair = (reading.Contents(EXAMPLES / f"first-{of}.json") for of in ("run", "compare"))
    compared = compared_in(EXAMPLES / "first-compare.json")
    verdict = comparisons.report(compared, pair.environments)
    sections = tuple(replace(s, heading=s.heading[:1]) for s in verdict.sections)
    verdict = replace(verdict, sections=sections, footer="")
    return screen([
        Text(f"$ {_typed(run.environments)}\n", style="bold"),
        *terminal.renderables(outcomes.report(run.outcomes, run.environments), WIDTH),
        Text(f"\n$ {_typed(pair.environments)}\n", style="bold"),
        *terminal.renderables(verdict, WIDTH),
    ])  # fmt: skip


def _typed(environments: Sequence[Environment]) -> str:
    """The command as a reader would type it, without the format that these records need."""
    words = [*environments[0].argv]
    at = words.index("--format")
    return shlex.join(["matbench", *words[:at], *words[at + 2 :]])


def chart(draw: Callable[[Path], None]) -> Drawn:
    """A chart, and its specification, with six digits of each number."""
    import vl_convert

    convert = mock.patch.object(
        vl_convert, "vegalite_to_svg", side_effect=vl_convert.vegalite_to_svg
    )
    with TemporaryDirectory() as folder, convert as converted:
        path = Path(folder) / "chart.svg"
        draw(path)
        asked = json.loads(converted.call_args.args[0], parse_float=lambda x: f"{float(x):.6g}")
        return path.read_text(encoding="utf-8") + "\n", json.dumps(asked)


def ladder(path: Path) -> None:
    """The rungs, and cuBLAS in their precisions, on the device that measured most, at powers of 2
    as `report --picture` draws them."""
    about, found = read(RECORDS / "h200-ladder.jsonl")
    [(device, _)] = Counter(outcome.case.device_id for outcome in found).most_common(1)
    sizes = {str(2**power) for power in range(8, 13)}
    found = [o for o in found if o.case.claims.precision in ("float32", "tf32", "bfloat16")
             and o.case.device_id == device and o.case.problem.size in sizes]  # fmt: skip
    picture.write(path, reading.RecordSet([*about, *found]))


def error_map(path: Path) -> None:
    found = msgspec.json.decode((EXAMPLES / "error-map.json").read_bytes(), type=ErrorCells)
    title = "forgot-barrier TILE=16 at 50x40x36"
    picture.draw(path, [error_map_chart.chart(found, title, 520, "wrong: reference")], "")


PICTURES: dict[Path, Callable[[], Drawn]] = {
    DOCS / "terminal.svg": first_run,
    DOCS / "ladder.svg": lambda: chart(ladder),
    DOCS / "judges.svg": lambda: chart(judged.draw),
    DOCS / "published.svg": lambda: chart(published.draw),
    DOCS / "reading" / "timeline.svg": lambda: chart(
        lambda path: picture.write(path, reading.Contents(EXAMPLES / "blocks.json"))
    ),
    DOCS / "reading" / "error-map.svg": lambda: chart(error_map),
}
