"""The roofline of a case: the rate that memory and arithmetic allow over intensity.

After S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model
for multicore architectures", Communications of the ACM 52 (2009).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from matbench.features.charts import definitions, style
from matbench.features.charts.definitions import Chart
from matbench.features.explain.record import Explanation
from matbench.show import units


def charts(found: Iterable[tuple[Explanation, object]]) -> Iterator[Chart]:
    """The measured limits and the case below them; none if no floating-point rate was measured."""
    for explanation, _ in found:
        limits, rate = explanation.limits, explanation.operations_per_s
        if limits is None or not rate or explanation.whole_numbers:
            continue
        flat, slope, traffic = limits.fma_flop_per_s, limits.copy_bytes_per_s, explanation.traffic
        least = traffic.least_intensity
        points = {"attainable at the minimum traffic": (least, min(flat, slope * least))}
        here, what = least, "minimum"
        if traffic.intensity is not None:
            here, what = traffic.intensity, "modelled"
            attainable = here, min(flat, slope * here)
            points["attainable at the modelled traffic, without caches"] = attainable
        points[f"measured, at the intensity of the {what} traffic"] = (here, rate)
        peak = {f"float32 {units.rates([flat], 'FLOP/s')(flat)}, measured": flat}
        roofs = definitions.roofs(slope, peak, [least, here], 1e9)
        looks = style.looks((name, False) for name in points)
        values = [{"kernel": name, "intensity": x, "value": y / 1e9, "hollow": y != rate}
                  for name, (x, y) in points.items()]  # fmt: skip
        spec = definitions.roofline(looks, roofs, "GFLOP/s", legend=True)
        title, note = f"Roofline: {explanation.case.label}", "GFLOP/s over operations per byte"
        yield Chart(title, f"{note} of global memory", {**spec, "data": {"values": values}})
