"""Terminal screens and charts as SVG, and whether two of them show the same."""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, RenderableType

CHARACTER_WIDTH = 12.2

#: A piece of text in a screen: where it begins, how long it is, and what it says.
TEXT = re.compile(
    r'<text([^>]*?) x="([\d.]+)" y="([\d.]+)" textLength="[\d.]+"([^>]*)>([^<]*)</text>'
)


def terminal(parts: Iterable[RenderableType], width: int, title: str) -> str:
    """What a terminal of `width` cells shows, as SVG."""
    console = Console(
        record=True,
        file=io.StringIO(),
        width=width,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    for part in parts:
        console.print(part)
    # Whoever looks at it has a font; nothing is fetched for it.
    template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title=title, code_format=template)
    # The only name in the file that depends on more than what is shown.
    svg = re.sub(r"terminal-\d+-", "screen-", svg)
    lines = TEXT.sub(_without_padding, svg).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip()) + "\n"


def _without_padding(piece: re.Match[str]) -> str:
    """The piece without spaces around it, which some viewers drop and so shift the rest."""
    before, x, y, after, text = piece.groups()
    words = text.replace("&#160;", " ").rstrip()
    shift = len(words) - len(words.lstrip())
    words = words.lstrip().replace(" ", "&#160;")
    if not words:
        return ""
    x, width = (
        f"{CHARACTER_WIDTH * count:g}"
        for count in (float(x) / CHARACTER_WIDTH + shift, len(html.unescape(words)))
    )
    return f'<text{before} x="{x}" y="{y}" textLength="{width}"{after}>{words}</text>'


def lines(svg: str) -> dict[float, str]:
    """The lines of a screen by their heights."""
    found: dict[float, str] = {}
    for _, x, y, _, text in TEXT.findall(svg):
        line = found.get(float(y), "").ljust(round(float(x) / CHARACTER_WIDTH))
        found[float(y)] = line + html.unescape(text).replace("\xa0", " ")
    return dict(sorted(found.items()))


def words(svg: str) -> str:
    """The words of a screen in their places, however a release of rich draws them."""
    title = re.findall(r'-title"[^>]*>([^<]*)</text>', svg)
    return "\n".join([*title, *(line.rstrip() for line in lines(svg).values())])


# Charts

_DATA = r"<!-- data \w+ -->"


def stamped(svg: str, data: str) -> str:
    """A chart with a hash of the data that it shows."""
    head, _, tail = svg.rpartition("</svg>")
    digest = hashlib.sha256(data.encode()).hexdigest()
    return f"{head}<!-- data {digest} --></svg>{tail}"


def drawn(draw: Callable[[Path], None], data: object) -> str:
    """A chart as SVG, with a hash of its data."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "chart.svg"
        draw(path)
        return stamped(path.read_text(encoding="utf-8"), repr(data))


def kept(made: Callable[[], str]) -> Callable[[str], str]:
    """A new chart, or the old one if that shows the same."""

    def written(old: str) -> str:
        new = made()
        return old if same_chart(old, new) else new

    return written


def same_chart(old: str, new: str) -> bool:
    """Whether two charts show the same data and words, and marks in the same places.

    Releases of what draws them may differ in a few points, and the names of gradients are counted
    on; those are no differences.
    """
    if not old or re.findall(_DATA, old) != re.findall(_DATA, new):
        return False
    before, after = (list(_drawn(svg)) for svg in (old, new))
    return len(before) == len(after) and all(
        one[0] == other[0] and abs(one[1] - other[1]) < 12 and abs(one[2] - other[2]) < 12
        for one, other in zip(before, after, strict=True)
    )


_NUMBER = r"(-?[\d.]+)"
_SHIFT = re.compile(rf"translate\({_NUMBER}[ ,]+{_NUMBER}\)")
_START = re.compile(rf"M *{_NUMBER}[ ,]+{_NUMBER}")


def _drawn(svg: str) -> Iterator[tuple[str, float, float]]:
    """Every text, mark, bar and line of a chart: what it is, and where it begins."""
    return _below(ElementTree.fromstring(svg), 0.0, 0.0)  # noqa: S314 - drawn just now


def _below(node: ElementTree.Element, x: float, y: float) -> Iterator[tuple[str, float, float]]:
    for shift in _SHIFT.findall(node.get("transform", "")):
        x, y = x + float(shift[0]), y + float(shift[1])
    kind = node.tag.rpartition("}")[2]
    if kind in ("text", "path", "line", "rect", "circle", "use", "image"):
        start = _START.match(node.get("d", ""))
        at = start.groups() if start else (node.get("x") or "0", node.get("y") or "0")
        if kind == "circle":
            at = node.get("cx", "0"), node.get("cy", "0")
        fill = node.get("fill", "")
        look = ["url" if fill.startswith("url") else fill, node.get("stroke", "")]
        look += re.findall(r"(?:fill|stroke): (#\w+)", node.get("style", ""))
        text = "".join(node.itertext()).strip() if kind == "text" else ""
        yield f"{kind} {text} {look}", x + float(at[0]), y + float(at[1])
    for child in node:
        yield from _below(child, x, y)
