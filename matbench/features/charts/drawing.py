"""Charts as a file, an SVG or PNG with a heading, and what such a file requires."""

from __future__ import annotations

import html
import importlib.util
import textwrap
from collections.abc import Sequence
from pathlib import Path

from matbench.cli.outputs import write_file
from matbench.errors import UsageError, listed
from matbench.features.charts import style
from matbench.features.charts.definitions import Spec
from matbench.show import safe

#: Pixels of a PNG to one of the SVG.
_PNG_SCALE = 2
#: Characters of a line of the title, and of the lines below it.
_TITLE, _LINE = 90, 150


def require(path: Path, *more: str) -> None:
    """`UsageError` if no picture, or file of `more` suffixes, can be written to `path`.

    Call this before measuring.
    """
    suffixes = (".svg", ".png", *more)
    require_file(path, suffixes, wrong_suffix=f"a picture's name must end in {listed(suffixes)}")
    require_libraries(path, "pictures")


def require_libraries(path: Path, what: str) -> None:
    """`UsageError` if what draws is not installed."""
    if importlib.util.find_spec("vl_convert") is None:
        raise UsageError(f"{path}: {what} need vl_convert; pip install 'matbench-cuda[plots]'")


def require_file(path: Path, suffixes: tuple[str, ...], *, wrong_suffix: str) -> None:
    """`UsageError` if `path` has another suffix, or lacks a folder."""
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"{path}: {wrong_suffix}")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: no folder {path.parent}; create it, or name another file")


def suffix(path: Path) -> str:
    """`svg` of `Roof.SVG`."""
    return path.suffix.lower().removeprefix(".")


def draw(path: Path, spec: Spec, title: str, lines: Sequence[str] = ()) -> None:
    """Draw a chart below a heading, which is what a screen reader says of an SVG.

    `UsageError` if the file cannot be written.
    """
    import vl_convert

    kind = suffix(path)
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
        write_file(path, vl_convert.vegalite_to_png(chart, scale=_PNG_SCALE, allowed_base_urls=[]))
        return
    svg: str = vl_convert.vegalite_to_svg(chart, allowed_base_urls=[])
    words = html.escape(safe.text(". ".join(lines)))
    about = f' role="img"><title>{html.escape(safe.text(title))}</title><desc>{words}</desc>'
    write_file(path, svg.replace(">", about, 1).encode())
