"""The roofline as lines of text."""

from __future__ import annotations

import math

from matbench.features.explain.roofline import PointKind, Roofline
from matbench.show.units import number

MARKS: dict[PointKind, str] = {
    "least": "◇",
    "modelled": "○",
    "measured at least": "●",
    "measured at modelled": "●",
}
LABELS: dict[PointKind, str] = {
    "least": "attainable rate at the minimum traffic",
    "modelled": "attainable rate at the modelled traffic, without caches",
    "measured at least": "measured rate at the intensity of the minimum traffic",
    "measured at modelled": "measured rate at the intensity of the modelled traffic",
}
_HEIGHT = 13
#: The width of the labels on the left and of text that may extend beyond the right edge.
_BESIDE = 20


def chart(roof: Roofline, width: int = 76) -> list[str]:
    """The roofline as lines of at most that width, both axes logarithmic; then a legend."""
    across = max(10, width - _BESIDE)
    (left, right), (bottom, top) = roof.bounds()

    def column(intensity: float) -> int:
        return round(math.log(intensity / left) / math.log(right / left) * (across - 1))

    def row(rate: float) -> int:
        return round(math.log(top / rate) / math.log(top / bottom) * (_HEIGHT - 1))

    cells = [[" "] * across for _ in range(_HEIGHT)]
    for x in range(across):
        intensity = left * (right / left) ** (x / (across - 1))
        flat = intensity >= roof.ridge
        cells[row(roof.allowed(intensity))][x] = "─" if flat else "╱"
    for point in roof.points:
        cells[row(point.flop_per_s)][column(point.intensity)] = MARKS[point.kind]
    ticks = {row(point.flop_per_s): point.flop_per_s for point in roof.points}
    ticks[row(roof.flop_per_s)] = roof.flop_per_s
    lines = ["GFLOP/s over operations per byte of global memory, both logarithmic"]
    for y, drawn in enumerate(cells):
        label = number(ticks[y] / 1e9) if y in ticks else ""
        lines.append(f"{label:>10} ┤{''.join(drawn)}".rstrip())
    axis, numbers = ["─"] * across, [" "] * (across + 10)
    for intensity in sorted({roof.ridge, *(point.intensity for point in roof.points)}):
        text, x = number(intensity), column(intensity)
        if all(cell == " " for cell in numbers[max(0, x - 1) : x + len(text) + 1]):
            axis[x] = "┬"
            numbers[x : x + len(text)] = text
    lines.append(f"{'':>10} └{''.join(axis)}")
    lines.append(f"{'':>12}{''.join(numbers).rstrip()}")
    return lines + [f"{MARKS[point.kind]} {LABELS[point.kind]}" for point in roof.points]
