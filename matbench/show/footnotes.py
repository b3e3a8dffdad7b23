"""Notes below a table: each text once, with the number that rows cite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from matbench.show import safe
from matbench.show.table import Row
from matbench.show.units import superscript

_NUMBER = re.compile(r"(?<![\w.,])-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")


class Footnotes:
    """Texts in the order of their first mention.

    Notes that differ only in their numbers become one text with ranges.
    """

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._numbers: dict[str, int] = {}

    def marks(self, reasons: Iterable[str], notes: Iterable[str]) -> str:
        """The superscripts of a row, in ascending order; reasons are never merged."""
        numbers = {self._number(text, text) for text in reasons}
        numbers |= {self._number(kind(text), text) for text in notes}
        return " ".join(map(superscript, sorted(numbers)))

    def _number(self, key: str, text: str) -> int:
        self._texts.setdefault(key, []).append(text)
        return self._numbers.setdefault(key, len(self._texts))

    def lines(self) -> list[tuple[str, str]]:
        """Marks and texts."""
        return [(superscript(n), merged(texts)) for n, texts in enumerate(self._texts.values(), 1)]


def last_cell(row: Row, footnotes: Footnotes, *, inline: bool) -> str:
    """The status with its reason or a footnote; a reason of several lines has a footnote, too."""
    first = safe.line(row.reason.partition("\n")[0])
    below = [row.claims] if row.claims else []
    below += [row.reason] if row.reason and (first != row.reason or not inline) else []
    shown = ": ".join(filter(None, (row.status, first if inline else "")))
    return shown + footnotes.marks(below, row.notes)


def kind(text: str) -> str:
    """A text without its numbers: equal for texts that differ only in their numbers."""
    return _NUMBER.sub("\0", text)


def merged(texts: Sequence[str]) -> str:
    """Texts of one `kind` as one: `5 of 40` and `9 of 10` become `5…9 of 10…40`."""
    columns = zip(*(_NUMBER.findall(text) for text in texts), strict=True)

    def value(number: str) -> float:
        return float(number.replace(",", ""))

    ranges = (dict.fromkeys((min(c, key=value), max(c, key=value))) for c in columns)
    return _NUMBER.sub(lambda _: "…".join(next(ranges)), texts[0])
