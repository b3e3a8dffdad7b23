"""Terminal screens and charts as SVG, with numbered callouts beside what a page explains."""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, RenderableType
from rich.padding import Padding

CHARACTER_WIDTH = 12.2
LINE_HEIGHT = 24.4
#: Cells left of a screen with callouts.
_MARGIN = 3
#: From the baseline of a line of text up to its middle.
_MIDDLE = 6.5
_BADGE = (
    '<circle cx="{x:g}" cy="{y:g}" r="{r:g}" fill="#f5a623"/>'
    '<text x="{x:g}" y="{base:g}" text-anchor="middle" fill="#1b1b1b" font-weight="bold"'
    ' font-family="arial, sans-serif" font-size="{size:g}">{number}</text>'
)

#: A piece of text in a screen: where it begins, how long it is, and what it says.
TEXT = re.compile(
    r'<text([^>]*?) x="([\d.]+)" y="([\d.]+)" textLength="[\d.]+"([^>]*)>([^<]*)</text>'
)


@dataclass(frozen=True)
class Callout:
    """A number `above`, `before` or `after` some text, in the first line that holds `line`.

    Both are regular expressions.
    """

    text: str
    side: str = "above"
    line: str = ""


@dataclass(frozen=True)
class Spot:
    """A number in a chart, at shares of its width and height."""

    x: float
    y: float


def terminal(
    parts: Iterable[RenderableType], width: int, title: str, callouts: Sequence[Callout] = ()
) -> str:
    """What a terminal of `width` cells shows, as SVG; room for callouts is added on the left."""
    margin = _MARGIN if callouts else 0
    console = Console(
        record=True,
        file=io.StringIO(),
        width=width + margin,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    for part in parts:
        console.print(Padding(part, (0, 0, 0, margin)))
    # Whoever looks at it has a font; nothing is fetched for it.
    template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title=title, code_format=template)
    # The only name in the file that depends on more than what is shown.
    svg = re.sub(r"terminal-\d+-", "screen-", svg)
    lines = TEXT.sub(_without_padding, svg).splitlines()
    svg = "\n".join(line.rstrip() for line in lines if line.strip()) + "\n"
    return _numbered(svg, callouts)


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
    """The words of a screen in their places, and its callouts, however a release of rich draws."""
    badges = re.findall(r'<circle cx="([\d.]+)" cy="([-\d.]+)" r="10"', svg)
    shown = [line.rstrip() for line in lines(svg).values()]
    title = re.findall(r'-title"[^>]*>([^<]*)</text>', svg)
    return "\n".join([*title, *shown, *(f"({x}, {y})" for x, y in badges)])


def _numbered(svg: str, callouts: Sequence[Callout]) -> str:
    """The screen with its callouts; `ValueError` if one has no text, or would hide some."""
    shown = lines(svg)
    badges = []
    for number, callout in enumerate(callouts, 1):
        y, column = _place(shown, callout)
        row = shown.get(next((at for at in shown if abs(at - y) < 1), 0.0), "")
        if row.ljust(column + 2)[max(0, column - 1) : column + 1].strip():
            raise ValueError(f"callout {number} hides text: {row.strip()!r}")
        x = column * CHARACTER_WIDTH - (5 if column < _MARGIN else 0)
        badges.append(_badge(number, x, y - _MIDDLE, 10))
    if not badges:
        return svg
    head, _, tail = svg.rpartition("    </g>\n    </g>\n</svg>")
    return f"{head}    {''.join(badges)}\n    </g>\n    </g>\n</svg>{tail}"


def _place(shown: dict[float, str], callout: Callout) -> tuple[float, int]:
    """The height of a callout's line, and the cell whose left edge is its middle."""
    for y, line in shown.items():
        found = re.search(callout.text, line)
        if found and re.search(callout.line, line):
            start, end = found.span()
            if callout.side == "above":
                return y - LINE_HEIGHT, (start + end) // 2
            return y, start - 1 if callout.side == "before" else end + 1
    raise ValueError(f"no line holds {callout.text!r} and {callout.line!r}")


def _badge(number: int, x: float, y: float, radius: float) -> str:
    size = (1.4 if number < 10 else 1.2) * radius
    return _BADGE.format(x=x, y=y, r=radius, base=y + 0.36 * size, size=size, number=number)


# Charts

_DATA = r"<!-- data \w+ -->"


def spotted(svg: str, spots: Sequence[Spot], data: str) -> str:
    """A chart with its callouts, and a hash of the data that it shows."""
    width, height = (float(side) for side in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0])
    radius = 0.011 * width
    badges = (
        _badge(number, spot.x * width, spot.y * height, radius)
        for number, spot in enumerate(spots, 1)
    )
    head, _, tail = svg.rpartition("</svg>")
    digest = hashlib.sha256(data.encode()).hexdigest()
    return f"{head}{''.join(badges)}<!-- data {digest} --></svg>{tail}"


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
