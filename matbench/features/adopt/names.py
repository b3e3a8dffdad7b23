"""What the names of a kernel's numbers say: sizes, leading dimensions, strides, and settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

#: Names of sizes and of matrices, and values of constants.
USUAL: dict[str, dict[str, Any]] = msgspec.toml.decode(
    Path(__file__).with_name("names.toml").read_bytes()
)
_BATCH = re.compile(r"(?:n(?:um)?_?)?batch(?:es|_?size|_?count|_?num)?|bs|nbatch", re.IGNORECASE)
_STRIDE = re.compile(
    r"(?:stride|pitch|step|offset)_?([abcmnp])|([abc])_?(?:stride|pitch|step)", re.IGNORECASE
)
_LEADING = re.compile(r"ld_?([abc])|([abc])_?ld", re.IGNORECASE)
#: `wA`, `numARows`, `A_width`, `colsB`.
_SIDE = re.compile(
    r"(?:num|n|no)?_?(?:(?P<first>w|h|width|height|rows?|cols?|columns)_?(?:of_?)?(?P<of>[ABCabc])"
    r"|(?P<whose>[ABCabc])_?(?P<last>w|h|width|height|rows?|cols?|columns))",
    re.IGNORECASE,
)
_SIDE_NAMES = {"A": ("M", "K"), "B": ("K", "N"), "C": ("M", "N")}


def implied(name: str, *, is_batched: bool) -> str | None:
    """The argument that a name alone implies."""
    name = re.sub(r"_?(?:in_?)?bytes$", "", name, flags=re.IGNORECASE)
    if is_batched and _BATCH.fullmatch(name):
        return "batch"
    if leading := _LEADING.fullmatch(name):
        return f"ld{(leading[1] or leading[2]).lower()}"
    if stride := _STRIDE.fullmatch(name):
        letter = (stride[1] or stride[2]).lower()
        letter = {"m": "a", "n": "b", "p": "c"}.get(letter, letter)
        return f"stride_{letter}" if is_batched else f"ld{letter}"
    if side := _SIDE.fullmatch(name):
        rows, columns = _SIDE_NAMES[(side["of"] or side["whose"]).upper()]
        is_row = (side["first"] or side["last"]).lower()[0] in "hr"
        return rows if is_row else columns
    return None


def size_of(name: str) -> str | None:
    """The size that a name stands for."""
    bare = re.sub(r"^(?:n_|num_|size_|dim_?)|(?:_?size|_?dim)$", "", name.lower())
    forms = {name.lower(), bare}
    return next((size for size, known in USUAL["sizes"].items() if forms & {*known}), None)
