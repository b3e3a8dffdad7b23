"""The picture of speed and largest error over n: a row per precision, a line per kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from matbench.analysis import ranking
from matbench.errors import UsageError
from matbench.features.charts import definitions, drawing, style
from matbench.features.charts.definitions import Spec
from matbench.features.charts.speed_and_error import At, Line, SpeedAndError, make_chart
from matbench.features.charts.style import Look
from matbench.records.outcome import Outcome
from matbench.show import units
from matbench.show.table import grouped
from matbench.workloads import Workload

if TYPE_CHECKING:
    from matbench.model import Precision

_WIDTH = 330
#: Height of a panel, by the number of precisions.
_HEIGHTS = {1: 300, 2: 220}
_LOW = 160
#: A kernel is near cuBLAS if its speed is, as a share of cuBLAS's; what is drawn of the shares.
_NEAR = (0.75, 1.35)
_SHARES = (0.5, 1.6)
#: Values beyond these are drawn there: an axis can be too long.
_LEAST, _MOST = 1e-100, 1e100
#: Each precision has its own kernels, so its own legend.
_OWN_LOOKS = {"scale": dict.fromkeys(("stroke", "fill", "shape", "color"), "independent")}


def draw(outcomes: Sequence[Outcome], path: Path, title: str) -> None:
    """Draw the measured cases into an SVG or PNG, without errors if none is above 0.

    `UsageError` if they cannot be drawn, or if the file cannot be written.
    """
    drawing.require(path)
    try:
        shown = make_chart(outcomes)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    sizes = shown.sizes
    if len(sizes) == 1:
        raise UsageError(
            f"{path}: a chart over n needs two or more sizes; these records have only {sizes[0]:,}"
        )
    rates = [point.work_per_s for line in shown.lines for point in line.points]
    unit, _ = units.rate_column(rates, shown.workload.rate)
    scale = 1e12 if unit.startswith("T") else 1e9
    groups = grouped(shown.lines, lambda line: line.precision)
    rows = sorted(groups.items(), key=lambda group: -len(group[1]))
    height = _HEIGHTS.get(len(rows), _LOW)
    panels: list[Spec] = []
    for precision, lines in rows:
        panels.append(_row(precision, lines, unit, scale, height))
        panels += _near_cublas(precision, lines, shown.workload)
    if any(point.beside for line in shown.lines for point in line.points):
        panels.append(_awkward(shown.lines))
    spec = {"vconcat": panels, "align": "none", "resolve": _OWN_LOOKS}
    drawing.draw(path, spec, title, _heading(shown))


def _heading(shown: SpeedAndError) -> list[str]:
    """What all lines share, and what the chart does not show."""
    notes = ["each kernel at its fastest parameters"]
    if any(line.is_baseline for line in shown.lines):
        notes.append("dashed: a baseline")
    if any(line.has_claims for line in shown.lines):
        notes.append("hollow: with claims, so by weaker checks")
    if any(point.low < point.high for line in shown.lines for point in line.points):
        notes.append("bars: intervals of the median")
    if not any(shown.errors):
        is_exact = 0.0 in shown.errors or shown.workload.element == "int32"
        notes.append("every result is exact" if is_exact else "errors are not known")
    else:
        notes.append("of lines with the same errors the fastest kernel's is on top")
    left_out = []
    if 0.0 in shown.errors and any(shown.errors):
        left_out.append("errors of 0 are not shown")
    if shown.left_out:
        cases = "1 case of another shape is"
        more = f"{shown.left_out} cases of other shapes are"
        left_out.append(f"{cases if shown.left_out == 1 else more} not shown")
    rows = [[shown.workload.title, *shown.shared], notes, left_out]
    return [" · ".join(row) for row in rows if row]


def _row(precision: str, lines: Sequence[Line], unit: str, scale: float, height: int) -> Spec:
    """Speed and, if there are any, errors; what is fastest is drawn last, so above the rest."""
    looks = style.looks((line.label, line.is_baseline) for line in lines)
    points = [(line, point) for line in reversed(lines) for point in line.regular]
    speed = [
        {
            **_about(line, point),
            "value": _drawable(point.work_per_s / scale),
            "low": _drawable(point.low / scale),
            "high": _drawable(point.high / scale),
        }
        for line, point in points
    ]
    errors = [
        {**_about(line, point), **dict.fromkeys(("value", "low", "high"), _drawable(point.error))}
        for line, point in points
        if point.error
    ]
    panels = [_panel(f"{precision}: {unit} over n", looks, speed, definitions.PLAIN, 1.25)]
    if errors:
        title = f"{precision}: largest relative error over n"
        panels.append(
            _panel(title, looks, errors, definitions.SCIENTIFIC, definitions.LEAST_ERRORS)
        )
    height = max(height, 16 * len(lines))  # that of the legend
    return {"hconcat": [{**panel, "width": _WIDTH, "height": height} for panel in panels]}


def _near_cublas(precision: str, lines: Sequence[Line], workload: Workload) -> list[Spec]:
    """The speed of kernels that are near cuBLAS at their largest size, as a share of it.

    On the logarithmic axis of all kernels, these would lie on top of each other.
    """
    product = ranking.CUBLAS.get((workload.name, cast("Precision", precision)))
    own = [line for line in lines if line.is_baseline and line.label == product]
    cublas = {p.n: p for line in own for p in line.regular}
    shares = {
        line: [(point, cublas[point.n]) for point in line.regular if point.n in cublas]
        for line in lines
    }
    near = [
        line
        for line, pairs in shares.items()
        if len(pairs) > 1
        and _NEAR[0] <= pairs[-1][0].work_per_s / pairs[-1][1].work_per_s <= _NEAR[1]
    ]
    if len(near) < 2:  # cuBLAS is one
        return []
    every = style.looks((line.label, line.is_baseline) for line in lines)
    points = [
        {
            **_about(line, point),
            "value": point.work_per_s / other.work_per_s,
            "low": point.low / other.high,
            "high": point.high / other.low,
        }
        for line in reversed(near)
        for point, other in shares[line]
    ]
    y = definitions.quantity("value", "linear", definitions.PERCENT, close=True)
    values = [point["value"] for point in points]
    y["scale"]["domain"] = [
        max(_SHARES[0], min(0.9, *values)), min(_SHARES[1], max(1.1, *values))
    ]  # fmt: skip
    curve = definitions.curve({n.label: every[n.label] for n in near}, y, legend=True)
    for layer in curve["layer"]:
        layer["mark"]["clip"] = True
    low, high = (f"{share:.0%}" for share in _NEAR)
    title = f"{precision}: share of {product} over n"
    title += f", of kernels that reach {low} to {high} of it at the largest"
    return [
        {
            **curve,
            "title": {"text": title, "fontSize": 12},
            "data": {"values": points},
            "width": 2 * _WIDTH,
            "height": max(_HEIGHTS[2], 16 * len(near)),
        }
    ]


def _panel(
    title: str,
    looks: Mapping[str, Look],
    points: Sequence[Mapping[str, Any]],
    form: str,
    least: float,
) -> Spec:
    y = definitions.quantity("value", form=form, close=True)
    curve = definitions.curve(looks, y, least=least, legend=True)
    return {**curve, "title": {"text": title, "fontSize": 12}, "data": {"values": points}}


def _about(line: Line, point: At) -> dict[str, Any]:
    return {
        "kernel": line.label,
        "n": point.n,
        "is_baseline": line.is_baseline,
        "hollow": line.has_claims,
    }


def _drawable(value: float) -> float:
    return min(max(value, _LEAST), _MOST)


def _awkward(lines: Sequence[Line]) -> Spec:
    """The speed at each awkward size relative to the size beside it: a row for each kernel."""
    rows: list[dict[str, Any]] = [
        {
            "label": line.label,
            "n": point.n,
            "kind": f"n = {point.n:,} relative to {beside.n:,}",
            "value": point.work_per_s / beside.work_per_s,
            "low": point.low / beside.high,
            "high": point.high / beside.low,
        }
        for line in lines
        for point in line.points
        for beside in line.points
        if beside.n == point.beside
    ]
    kinds = dict.fromkeys(row["kind"] for row in sorted(rows, key=lambda row: row["n"]))
    forest = definitions.forest(dict(zip(kinds, cycle(style.PALETTE), strict=False)), rows)
    title = {"text": "speed at awkward sizes", "fontSize": 12}
    return {**forest, "title": title, "width": 2 * _WIDTH}
