"""The roofline of a device: the rate allowed by memory and arithmetic over operations per byte.

After S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model
for multicore architectures", Communications of the ACM 52 (2009).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from matbench.records.explanation import Explanation

#: `least`, `modelled`: the attainable rate at that traffic's intensity.
#: `measured at …`: the measured rate at that intensity.
PointKind = Literal["least", "modelled", "measured at least", "measured at modelled"]
_MARGIN = 2**1.3  # beside the outermost points


class Point(NamedTuple):
    """A point at an intensity (operations per byte) and a rate (operations per second)."""

    kind: PointKind
    intensity: float
    flop_per_s: float


class Roofline(NamedTuple):
    """Two measured limits, and points to compare with them."""

    bytes_per_s: float
    flop_per_s: float
    points: tuple[Point, ...] = ()

    @property
    def ridge(self) -> float:
        """The intensity above which arithmetic is the limit."""
        return self.flop_per_s / self.bytes_per_s

    def allowed(self, intensity: float) -> float:
        """The attainable operations per second."""
        return min(self.flop_per_s, self.bytes_per_s * intensity)

    def bounds(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The ranges of intensity and rate to draw, with a margin around the points."""
        across = [self.ridge, *(point.intensity for point in self.points)]
        left, right = min(across) / _MARGIN**2, max(across) * _MARGIN**2
        up = [self.allowed(left), *(point.flop_per_s for point in self.points)]
        return (left, right), (min(up) / 1.2, max(self.flop_per_s, *up) * 1.6)


def roofline(explanation: Explanation) -> Roofline | None:
    """The device's roofline with the case on it; None if no floating-point rate was measured."""
    limits, rate = explanation.limits, explanation.operations_per_s
    if limits is None or not rate or explanation.whole_numbers:
        return None
    roof = Roofline(limits.copy_bytes_per_s, limits.fma_flop_per_s)
    least, modelled = explanation.traffic.least_intensity, explanation.traffic.intensity
    points = [Point("least", least, roof.allowed(least))]
    if modelled is None:
        points.append(Point("measured at least", least, rate))
    else:
        points.append(Point("modelled", modelled, roof.allowed(modelled)))
        points.append(Point("measured at modelled", modelled, rate))
    return roof._replace(points=tuple(points))
