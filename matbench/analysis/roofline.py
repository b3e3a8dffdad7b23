"""The roofline of a device: what its memory and its arithmetic allow, over operations per byte.

After S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model
for multicore architectures", Communications of the ACM 52 (2009).
"""

from __future__ import annotations

import math
from typing import NamedTuple

_HEIGHT = 13
#: What stands left of a chart, and what of its axis' numbers may stand out to the right.
_BESIDE = 20
_FRACTION = 1.3  # room beside and above the outermost points, in powers of two


class Point(NamedTuple):
    """Something at an intensity (operations per byte) and a rate (operations per second)."""

    mark: str
    label: str
    intensity: float
    flop_per_s: float


class Roofline(NamedTuple):
    """Two measured limits, and points to hold against them."""

    bytes_per_s: float
    flop_per_s: float
    points: tuple[Point, ...]

    @property
    def ridge(self) -> float:
        """The intensity from which on arithmetic is the lower roof."""
        return self.flop_per_s / self.bytes_per_s

    def allowed(self, intensity: float) -> float:
        """Operations per second under the roof."""
        return min(self.flop_per_s, self.bytes_per_s * intensity)

    def bounds(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The least and the largest intensity and rate to draw, with some room around."""
        room = 2**_FRACTION
        across = [self.ridge, *(point.intensity for point in self.points)]
        left, right = min(across) / room**2, max(across) * room**2
        up = [self.allowed(left), *(point.flop_per_s for point in self.points)]
        return (left, right), (min(up) / 1.2, max(self.flop_per_s, *up) * 1.6)

    def chart(self, width: int = 76) -> list[str]:
        """The roofline as lines of text of that width, both axes logarithmic; then its marks."""
        across = max(10, width - _BESIDE)
        (left, right), (bottom, top) = self.bounds()

        def column(intensity: float) -> int:
            return round(math.log(intensity / left) / math.log(right / left) * (across - 1))

        def row(rate: float) -> int:
            return round(math.log(top / rate) / math.log(top / bottom) * (_HEIGHT - 1))

        cells = [[" "] * across for _ in range(_HEIGHT)]
        for x in range(across):
            intensity = left * (right / left) ** (x / (across - 1))
            flat = intensity >= self.ridge
            cells[row(self.allowed(intensity))][x] = "─" if flat else "╱"
        for point in self.points:
            cells[row(point.flop_per_s)][column(point.intensity)] = point.mark
        ticks = {row(point.flop_per_s): point.flop_per_s for point in self.points}
        ticks[row(self.flop_per_s)] = self.flop_per_s
        lines = ["GFLOP/s over operations per byte of global memory, both logarithmic"]
        for y, drawn in enumerate(cells):
            label = _number(ticks[y] / 1e9) if y in ticks else ""
            lines.append(f"{label:>10} ┤{''.join(drawn)}".rstrip())
        axis, numbers = ["─"] * across, [" "] * (across + 10)
        for intensity in sorted({self.ridge, *(point.intensity for point in self.points)}):
            text, x = _number(intensity), column(intensity)
            if all(cell == " " for cell in numbers[max(0, x - 1) : x + len(text) + 1]):
                axis[x] = "┬"
                numbers[x : x + len(text)] = text
        lines.append(f"{'':>10} └{''.join(axis)}")
        lines.append(f"{'':>12}{''.join(numbers).rstrip()}")
        return lines + [f"{point.mark} {point.label}" for point in self.points]


def _number(value: float) -> str:
    """Three significant digits, without an exponent where it is easily read."""
    if 1e-3 <= value < 1e6:
        digits = max(0, 2 - math.floor(math.log10(value)))
        return f"{value:,.{digits}f}"
    return f"{value:.1e}"
