"""Colours, shapes and fonts of every chart."""

from __future__ import annotations

from typing import Any

#: Readable on a light page and on a dark one: about the same contrast with each.
INK = "#797979"
#: Of pictures that bring their own white page.
DARK_INK = "#333333"
#: Lines of the grid: faint on either page.
GRID = "#80808040"
#: Arial's metrics are those of Helvetica and of Liberation Sans: one of them is everywhere.
FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif"
FONT_SIZE = 12
#: Safe for colour-blind readers, on either page.
PALETTE = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7",
)  # fmt: skip
SHAPES = ("circle", "square", "triangle-up", "diamond")
#: Of errors that rounding can explain, and of wrong ones, each from small to large.
BLUES, ORANGES = ("#f2f6fa", "#2a6fb0"), ("#fdb35a", "#7a1c00")
#: Of baselines.
NEUTRAL = "#7d858e"


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
