"""Makes text safe where it leaves matbench; what makes text, such as a view, need not think of it.

Records, kernel files, file names and a kernel's output are not trusted: their characters must not
move the cursor, set a title or reverse the direction of text. All output passes one of these:
`terminal.Screen`, `formats.text`, the summary of the gate, pages, pictures, and `cli.console.say`.
"""

from __future__ import annotations

import re
from typing import Any

_HOSTILE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff\ud800-\udfff]"
)
#: All rows of a table are as wide as the widest.
_LONGEST_LINE = 300


def text(text: str) -> str:
    """The text without control or bidirectional characters, except newlines and tabs."""
    return _HOSTILE.sub("\ufffd", text)


def flat(text: str) -> str:
    """The same on one line, with its spaces."""
    return _HOSTILE.sub("\ufffd", text.expandtabs(4)).replace("\n", " ")


def lines(text: str) -> str:
    """The same as `text` without tabs and surrounding space, for a table or its footnotes."""
    return _HOSTILE.sub("\ufffd", text.expandtabs(4).replace("\r\n", "\n")).strip()


def line(text: str) -> str:
    """The text on one line, cut to the longest that a cell may be."""
    joined = " ".join(lines(text).split())
    return joined if len(joined) <= _LONGEST_LINE else joined[: _LONGEST_LINE - 1] + "…"


def data(value: Any) -> Any:
    """Plain data, as for JSON, with every string in it made safe."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {data(key): data(part) for key, part in value.items()}
    return [data(part) for part in value] if isinstance(value, list | tuple) else value
