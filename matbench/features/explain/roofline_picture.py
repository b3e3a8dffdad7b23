"""The picture of a roofline: measured limits, and the points below them."""

from __future__ import annotations

from pathlib import Path

from matbench.features.charts import definitions, drawing, style
from matbench.features.charts.style import Look
from matbench.features.explain.roofline import Roofline
from matbench.features.explain.roofline_view import LABELS

#: How each kind of point looks; filled if it was measured.
_LOOKS = {
    "least": Look(style.PALETTE[0], "diamond"),
    "modelled": Look(style.PALETTE[1], "square"),
    "measured at least": Look(style.PALETTE[2], "circle"),
    "measured at modelled": Look(style.PALETTE[2], "circle"),
}


def draw(roof: Roofline, path: Path, title: str) -> None:
    """Draw the roofline with both axes logarithmic; `UsageError` if the file cannot be written."""
    (left, right), _ = roof.bounds()
    copy, flops = f"{roof.bytes_per_s / 1e9:,.0f} GB/s", f"{roof.flop_per_s / 1e9:,.0f} GFLOP/s"
    roofs = [
        {"label": label, "intensity": intensity, "value": roof.allowed(intensity) / 1e9}
        for label, ends in (
            (f"{copy} copied", (left, roof.ridge)),
            (f"{flops} of multiply-adds", (roof.ridge, right)),
        )
        for intensity in ends
    ]
    points = [
        {
            "kernel": LABELS[point.kind],
            "intensity": point.intensity,
            "value": point.flop_per_s / 1e9,
            "hollow": not point.kind.startswith("measured"),
        }
        for point in roof.points
    ]
    looks = {LABELS[point.kind]: _LOOKS[point.kind] for point in roof.points}
    chart = definitions.roofline(looks, roofs, "GFLOP/s", legend=True)
    limits = f"measured limits: {copy} copied, {flops} of multiply-adds"
    drawing.draw(path, {**chart, "width": 560, "data": {"values": points}}, title, [limits])
