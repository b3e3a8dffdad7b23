"""How wide text is, so that it can be placed without a browser."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from matbench.show.charts.style import FONT_SIZE

#: Widths of Arial's characters in thousandths of the font size; others are taken to be 600.
_WIDTHS = {
    character: width
    for width, characters in {
        191: "'", 222: "ijl", 260: "|", 278: " !,./:;I[\\]ft·", 333: "()-`r", 334: "{}",
        355: '"', 389: "*", 469: "^", 500: "Jckszvxy", 556: "#$0123456789?L_abdeghnopqu",
        584: "+<=>~×−", 611: "FTZ", 667: "&ABEKPSVXY", 722: "CDHNRUw", 778: "GOQ",
        833: "Mm", 889: "%", 944: "W", 1000: "…—", 1015: "@",
    }.items()
    for character in characters
}  # fmt: skip


def width(text: str, size: float = FONT_SIZE) -> float:
    """The width of a line in pixels."""
    return sum(map(_thousandths, text)) * size / 1000


def _thousandths(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    if unicodedata.east_asian_width(character) in "WF":
        return 1100
    return _WIDTHS.get(character, 600)


def shortened(text: str, room: float, size: float = FONT_SIZE) -> str:
    """The text, or as much of its beginning and its end as fits, with an ellipsis between."""
    if width(text, size) <= room:
        return text
    for kept in range(len(text) - 1, 0, -1):
        tail = kept // 3
        short = f"{text[: kept - tail].rstrip()}…{text[len(text) - tail :].lstrip()}"
        if width(short, size) <= room:
            return short
    return "…"


def distinct(texts: Iterable[str], room: float, size: float = FONT_SIZE) -> list[str]:
    """Each text as much as fits, numbered where they would be the same."""
    found: list[str] = []
    for text in texts:
        short, number = shortened(text, room, size), 1
        while short in found:
            number += 1
            end = f" ({number})"
            short = shortened(text, room - width(end, size), size) + end
        found.append(short)
    return found


def wrapped(text: str, room: float, size: float = FONT_SIZE) -> list[str]:
    """Lines no wider than `room`, broken at spaces where there are any."""
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".lstrip()
        if width(joined, size) > room:
            lines.append("")
            joined = word
        while width(joined, size) > room:
            part = next(
                p
                for n in range(len(joined), 0, -1)
                if width(p := joined[:n], size) <= room or n == 1
            )
            lines[-1], joined = part, joined[len(part) :]
            lines.append("")
        lines[-1] = joined
    return [line for line in lines if line]
