"""The roofline of a device in text: the rate that memory and arithmetic allow over intensity.

After S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model
for multicore architectures", Communications of the ACM 52 (2009).
"""

from __future__ import annotations

import math

from matbench.features.explain.record import Explanation
from matbench.show.units import number

_HEIGHT = 13
#: The width of the labels on the left and of text that may extend beyond the right edge.
_BESIDE = 20
_MARGIN = 2**1.3  # beside the outermost points


def chart(explanation: Explanation, width: int = 76) -> list[str]:
    """The measured limits and the case below them, in lines of at most that width; then a legend.

    Both axes are logarithmic. No lines if no floating-point rate was measured.
    """
    limits, rate, traffic = explanation.limits, explanation.operations_per_s, explanation.traffic
    if limits is None or not rate or explanation.whole_numbers:
        return []
    flat, slope, least = limits.fma_flop_per_s, limits.copy_bytes_per_s, traffic.least_intensity
    points = [("◇", "attainable rate at the minimum traffic", least, min(flat, slope * least))]
    here, what = least, "minimum"
    if traffic.intensity is not None:
        here, what = traffic.intensity, "modelled"
        attainable = "attainable rate at the modelled traffic, without caches"
        points.append(("○", attainable, here, min(flat, slope * here)))
    points.append(("●", f"measured rate at the intensity of the {what} traffic", here, rate))

    ridge = flat / slope
    left = min(ridge, here, least) / _MARGIN**2
    right = max(ridge, here, least) * _MARGIN**2
    bottom = min(flat, slope * left, rate) / 1.2
    top = max(flat, rate) * 1.6
    across = max(10, width - _BESIDE)

    def column(intensity: float) -> int:
        return round(math.log(intensity / left) / math.log(right / left) * (across - 1))

    def row(flop_per_s: float) -> int:
        return round(math.log(top / flop_per_s) / math.log(top / bottom) * (_HEIGHT - 1))

    cells = [[" "] * across for _ in range(_HEIGHT)]
    for x in range(across):
        intensity = left * (right / left) ** (x / (across - 1))
        cells[row(min(flat, slope * intensity))][x] = "─" if intensity >= ridge else "╱"
    ticks = {}
    for mark, _, intensity, flop_per_s in points:
        cells[row(flop_per_s)][column(intensity)] = mark
        ticks[row(flop_per_s)] = number(flop_per_s / 1e9)
    ticks[row(flat)] = number(flat / 1e9)
    lines = ["GFLOP/s over operations per byte of global memory, both logarithmic"]
    lines += [f"{ticks.get(y, ''):>10} ┤{''.join(drawn)}".rstrip() for y, drawn in enumerate(cells)]
    axis, numbers = ["─"] * across, [" "] * (across + 10)
    for intensity in sorted({ridge, here, least}):
        text, x = number(intensity), column(intensity)
        if all(cell == " " for cell in numbers[max(0, x - 1) : x + len(text) + 1]):
            axis[x] = "┬"
            numbers[x : x + len(text)] = text
    lines.append(f"{'':>10} └{''.join(axis)}")
    lines.append(f"{'':>12}{''.join(numbers).rstrip()}")
    return lines + [f"{mark} {label}" for mark, label, _, _ in points]
