"""Colours, shapes and fonts of every chart."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import NamedTuple

#: Readable on a light page and on a dark one: about the same contrast with each.
INK = "#797979"
#: Of pictures that bring their own white page.
DARK_INK = "#333333"
#: Lines of the grid: faint on either page.
GRID = "#80808040"
#: Far apart for readers with any kind of colour blindness, on a light page and on a dark one.
PALETTE = (
    "#2050e0", "#f09010", "#10b0a0", "#904090", "#b03000", "#90a0f0", "#a04050", "#d0a060",
)  # fmt: skip
SHAPES = ("circle", "square", "triangle-up", "diamond")
#: Of wrong elements, from small errors to large ones.
ORANGES = ("#fdb35a", "#7a1c00")
#: Of baselines.
NEUTRAL = "#7d858e"


class Look(NamedTuple):
    """How the marks of a line look."""

    colour: str
    shape: str


def looks(lines: Iterable[tuple[str, bool]]) -> dict[str, Look]:
    """How each line looks, by its name; of each, whether it is a baseline.

    Up to 32 lines differ in colour or shape. Baselines have a colour of their own.
    """
    many = len(PALETTE)
    own = (Look(PALETTE[i % many], SHAPES[(i + i // many) % len(SHAPES)]) for i in count())
    of_baselines = Look(NEUTRAL, "cross")
    return {name: of_baselines if is_baseline else next(own) for name, is_baseline in lines}
