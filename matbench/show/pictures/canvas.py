"""A picture of charts as the bytes of an SVG or PNG: the same charts give the same bytes."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matbench.show import safe
from matbench.show.charts import style
from matbench.show.charts.text import wrapped

#: Pixels of a PNG to one of the SVG.
_PNG_SCALE = 2
_MARGIN = 8
_TITLE_SIZE = 15
#: Bold text is this much wider.
_BOLD = 1.1
_LINE = 17


@dataclass(frozen=True)
class Panel:
    """A chart as Vega-Lite with its data, size and padding, and its upper left corner in pixels.

    `title` and `note` stand in the padding above it.
    """

    spec: dict[str, Any]
    x: float = 0
    y: float = 0
    title: str = ""
    note: str = ""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height with padding."""
        padding = self.spec["padding"]
        return (
            padding["left"] + self.spec["width"] + padding["right"],
            padding["top"] + self.spec["height"] + padding["bottom"],
        )


def encoded(
    kind: str,
    panels: Sequence[Panel],
    title: str,
    lines: Sequence[str] = (),
    *,
    description: str = "",
    metadata: str = "",
) -> bytes:
    """The picture, `kind` being svg or png: a heading, and below it the panels.

    `description` is what a screen reader says beside the title; `metadata` is kept in an SVG.
    """
    import vl_convert

    ink = style.INK if kind == "svg" else style.DARK_INK
    drawn = _svg(panels, title, lines, description or ". ".join(lines), metadata, ink)
    if kind == "svg":
        return drawn.encode()
    paper = drawn.replace("</desc>", '</desc>\n<rect width="100%" height="100%" fill="#fff"/>', 1)
    png: bytes = vl_convert.svg_to_png(paper, scale=_PNG_SCALE)
    return png


def _svg(
    panels: Sequence[Panel],
    title: str,
    lines: Iterable[str],
    description: str,
    metadata: str,
    ink: str,
) -> str:
    width = max(panel.x + panel.size[0] for panel in panels)
    heading, top = _heading(title, lines, width)
    height = top + max(panel.y + panel.size[1] for panel in panels)
    body = "\n".join(_panel(panel, number, top, ink) for number, panel in enumerate(panels))
    about = f"<metadata>{_escaped(metadata)}</metadata>\n" if metadata else ""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'font-family="{style.FONT}" font-size="{style.FONT_SIZE}" fill="{ink}" color="{ink}">\n'
        f"<title>{_escaped(title)}</title>\n<desc>{_escaped(description)}</desc>\n"
        f"{about}{heading}{body}\n</svg>\n"
    )


def _heading(title: str, lines: Iterable[str], width: float) -> tuple[str, float]:
    """Title and lines as SVG, wrapped to the width, and the height they take."""
    room = width - 2 * _MARGIN
    bold = _BOLD * _TITLE_SIZE
    texts = [(part, _TITLE_SIZE) for part in wrapped(safe.line(title), room, bold)]
    for line in lines:
        texts += [(part, style.FONT_SIZE) for part in wrapped(safe.line(line), room)]
    made, y = [], _MARGIN + 3.0
    for text, size in texts:
        y += _LINE if size == style.FONT_SIZE else _TITLE_SIZE + 4
        look = f' font-size="{size}" font-weight="bold"' if size == _TITLE_SIZE else ""
        made.append(f'<text x="{_MARGIN}" y="{y:g}"{look}>{_escaped(text)}</text>\n')
    return "".join(made), y + _MARGIN


def _panel(panel: Panel, number: int, top: float, ink: str) -> str:
    import vl_convert

    config = {**style.config(ink), **panel.spec.get("config", {})}
    chart = _safe({**panel.spec, "config": config})
    drawn: str = vl_convert.vegalite_to_svg(chart, allowed_base_urls=[])
    inner = drawn[drawn.index(">") + 1 : drawn.rindex("</svg>")]
    label = ""
    if panel.title or panel.note:
        note = f'<tspan dx="7" font-weight="normal">{_escaped(panel.note)}</tspan>'
        label = (
            f'<text x="{_MARGIN}" y="14" font-weight="bold">{_escaped(panel.title)}'
            f"{note if panel.note else ''}</text>\n"
        )
    place = f"translate({panel.x:g},{top + panel.y:g})"
    return f'<g transform="{place}">\n{label}{_plain(inner, number)}\n</g>'


def _plain(svg: str, number: int) -> str:
    """Vega's SVG with one element a line, short numbers, and ids that depend on nothing else."""
    ids = {name: f"p{number}-{i}" for i, name in enumerate(re.findall(r'\bid="([^"]+)"', svg))}
    for name, own in ids.items():
        svg = svg.replace(f'id="{name}"', f'id="{own}"').replace(f"url(#{name})", f"url(#{own})")
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"-?\d+\.\d{3,}", _short, tag[0]), svg)
    return re.sub(r"><(?!/?tspan|/text)", ">\n<", svg)


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _escaped(text: str) -> str:
    return html.escape(" ".join(_safe(text).split()))


def _safe(value: Any) -> Any:
    """The same without characters that no XML may hold, and on which vl-convert would abort."""
    if isinstance(value, str):
        return re.sub("[\ufffe\uffff]", "\ufffd", safe.text(value))
    if isinstance(value, dict):
        return {key: _safe(one) for key, one in value.items()}
    return [_safe(one) for one in value] if isinstance(value, list | tuple) else value
