"""Charts as a file: an SVG or PNG with a heading."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from pathlib import Path

from matbench.show import safe
from matbench.show.charts import style
from matbench.show.charts.definitions import Spec
from matbench.show.pictures import files

#: Pixels of a PNG to one of the SVG.
_PNG_SCALE = 2
#: Characters of a line of the title, and of the lines below it.
_TITLE, _LINE = 90, 150


def draw(path: Path, spec: Spec, title: str, lines: Sequence[str] = ()) -> None:
    """Draw a chart below a heading, which is what a screen reader says of an SVG.

    `UsageError` if the file cannot be written.
    """
    import vl_convert

    kind = files.suffix(path)
    chart = safe.data({
        "padding": 8,
        **spec,
        "params": [{"name": "isolated", "value": []}],
        "title": {
            "text": textwrap.wrap(title, _TITLE),
            "subtitle": [part for line in lines for part in textwrap.wrap(line, _LINE)],
        },
        "config": style.config(style.INK if kind == "svg" else style.DARK_INK),
    })  # fmt: skip
    if kind == "png":
        chart["background"] = "#fff"
        files.write(path, vl_convert.vegalite_to_png(chart, scale=_PNG_SCALE, allowed_base_urls=[]))
        return
    svg: str = vl_convert.vegalite_to_svg(chart, allowed_base_urls=[])
    words = html.escape(safe.text(". ".join(lines)))
    about = f' role="img"><title>{html.escape(safe.text(title))}</title><desc>{words}</desc>'
    files.write(path, svg.replace(">", about, 1).encode())
