"""The picture of a roofline: measured limits, and the points below them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matbench.analysis.roofline import Point, Roofline
from matbench.show.charts import kept, layout, style, text
from matbench.show.charts.filling import Box, filled
from matbench.show.pictures import canvas, files
from matbench.show.pictures.canvas import Panel
from matbench.show.roofline import LABELS

SUFFIXES = (".svg", ".png")
#: Shape and colour of each kind of point; filled if it was measured.
_LOOKS = {
    "least": ("diamond", style.PALETTE[0]),
    "modelled": ("square", style.PALETTE[1]),
    "measured at least": ("circle", style.PALETTE[2]),
    "measured at modelled": ("circle", style.PALETTE[2]),
}
_BOX = Box(580, 320, left=64, right=316, top=32, bottom=28)


def draw(roof: Roofline, path: Path, title: str) -> None:
    """Draw the roofline with both axes logarithmic; `UsageError` if the file cannot be written."""
    files.require(path, SUFFIXES)
    (left, right), (bottom, top) = roof.bounds()
    copy, flops = f"{roof.bytes_per_s / 1e9:,.0f} GB/s", f"{roof.flop_per_s / 1e9:,.0f} GFLOP/s"
    up = (bottom / 1e9, top / 1e9)
    ridge = min(max(roof.ridge, left), right)
    near_ridge = ridge * (left / ridge) ** 0.15
    beyond = layout.position(ridge, (left, right), _BOX.width) + text.width(flops) + 4
    beyond_ridge = min(right, layout.value_at(beyond, (left, right), _BOX.width))

    def at(label: str, intensity: float) -> dict[str, Any]:
        return {"label": label, "intensity": intensity, "value": roof.allowed(intensity) / 1e9}

    spec = filled(
        kept.specs()["roofline"],
        {
            "roofs": [at("copy", left), at("copy", ridge), at("sums", ridge), at("sums", right)],
            "names": [at(copy, near_ridge), at(flops, beyond_ridge)],
            "slope": [],
            "points": [_mark(point) for point in roof.points],
            "labels": _labels(roof, up),
        },
        _BOX,
        across=(left, right),
        up=up,
        ticks_across=layout.ticks((left, right), 14),
        ticks_up=layout.ticks(up, 12),
    )
    panel = Panel(
        spec, title="GFLOP/s", note="over operations per byte of global memory, both logarithmic"
    )
    limits = f"measured limits: {copy} copied, {flops} of multiply-adds"
    rates = [f"{LABELS[p.kind]}: {p.flop_per_s / 1e9:,.0f} GFLOP/s." for p in roof.points]
    said = " ".join([f"{limits}.", *rates])
    files.write(
        path, canvas.encoded(files.suffix(path), [panel], title, [limits], description=said)
    )


def _mark(point: Point) -> dict[str, Any]:
    shape, colour = _LOOKS[point.kind]
    return {
        "kernel": point.kind,
        "intensity": point.intensity,
        "value": point.flop_per_s / 1e9,
        "shape": shape,
        "colour": colour,
        "fill": colour if point.kind.startswith("measured") else "transparent",
    }


def _labels(roof: Roofline, up: layout.Domain) -> list[dict[str, Any]]:
    """What each point is, at the right edge; higher points of the same height come first."""
    values = [point.flop_per_s / 1e9 for point in roof.points]
    return [
        {**_mark(point), "label": LABELS[point.kind], "label_value": value}
        for point, value in zip(roof.points, layout.labelled(values, up, _BOX.height), strict=True)
    ]
