"""Colours, shapes and fonts of every chart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

#: Readable on a light page and on a dark one: about the same contrast with each.
INK = "#797979"
#: Of pictures that bring their own white page.
DARK_INK = "#333333"
#: Lines of the grid: faint on either page.
GRID = "#80808040"
#: Arial's metrics are those of Helvetica and of Liberation Sans: one of them is everywhere.
FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif"
FONT_SIZE = 12
#: Far apart for readers with any kind of colour blindness, on a light page and on a dark one.
PALETTE = (
    "#2050e0", "#f09010", "#10b0a0", "#904090", "#b03000", "#90a0f0", "#a04050", "#d0a060",
)  # fmt: skip
SHAPES = ("circle", "square", "triangle-up", "diamond")
#: Of errors that rounding can explain, and of wrong ones, each from small to large.
BLUES, ORANGES = ("#f2f6fa", "#2a6fb0"), ("#fdb35a", "#7a1c00")
#: Of baselines, and of lines beyond those that colours can tell apart.
NEUTRAL, CONTEXT = "#7d858e", "#80808090"


class Look(NamedTuple):
    """How the marks of a line look."""

    colour: str
    shape: str


def looks(are_baselines: Iterable[bool]) -> list[Look]:
    """One for each line, the most important first: colours, then the colour of context.

    Baselines have a colour of their own.
    """
    found, used = [], 0
    for is_baseline in are_baselines:
        if is_baseline:
            found.append(Look(NEUTRAL, "cross"))
        elif used < len(PALETTE):
            found.append(Look(PALETTE[used], SHAPES[used % len(SHAPES)]))
            used += 1
        else:
            found.append(Look(CONTEXT, "circle"))
    return found


def config(ink: str = INK) -> dict[str, Any]:
    """Vega-Lite's configuration for text and lines in that ink."""
    return {
        "aria": False,
        "background": None,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelFontSize": FONT_SIZE - 1, "titleFontSize": FONT_SIZE, "titleFontWeight": "normal",
            "labelColor": ink, "titleColor": ink, "tickColor": ink, "domainColor": ink,
            "gridColor": GRID,
        },
        "legend": {"labelColor": ink, "titleColor": ink},
        "text": {"color": ink},
        "mark": {"tooltip": None},
    }  # fmt: skip
