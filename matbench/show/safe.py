"""The one place that makes text safe for a terminal.

Records, kernel files, file names and a kernel's output are not trusted: their characters must not
move the cursor, set a title or reverse the direction of text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_HOSTILE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
#: All rows of a table are as wide as the widest.
_LONGEST_LINE = 300


def text(text: str) -> str:
    """The text without control or bidirectional characters, except newlines and tabs."""
    return _HOSTILE.sub("\ufffd", text)


def lines(text: str) -> str:
    """The same without tabs and surrounding space, for a table or its footnotes."""
    return _HOSTILE.sub("\ufffd", text.expandtabs(4).replace("\r\n", "\n")).strip()


def line(text: str) -> str:
    """The text on one line, cut to the longest that a cell may be."""
    joined = " ".join(lines(text).split())
    return joined if len(joined) <= _LONGEST_LINE else joined[: _LONGEST_LINE - 1] + "…"


def agreed(texts: Iterable[str]) -> str:
    """Different texts, each once and on one line, separated by slashes."""
    return " / ".join(dict.fromkeys(shown for shown in map(line, texts) if shown))
