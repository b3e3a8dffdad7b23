"""Every chart as a Vega-Lite specification, without its main data: `data` are to be added.

Vega computes axes, legends and the places of all text. In an expression, `isolated` holds the names
of the kernels that stand out, or is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from matbench.features.charts.style import NEUTRAL, PALETTE, Look
from matbench.show import units

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
#: Of rates and times; of errors; of shares. In the notation of D3.
PLAIN, SCIENTIFIC, PERCENT = ",~r", ".2~e", "~p"
#: Errors that differ by less than this factor must not look far apart.
LEAST_ERRORS = 10
#: Colours of statuses and verdicts.
STATUSES = {"right": "#2c9650", "wrong": "#cf4444", "failed": "#7a1c00", "skipped": "#7d858e40"}
VERDICTS = {"FASTER": "#2c9650", "SLOWER": "#cf4444", "SAME": NEUTRAL, "UNDECIDED": "#c08a1b"}

_STANDS_OUT = "isolated.length == 0 || indexof(isolated, datum.kernel) >= 0"
_LEGEND = {"title": None, "labelLimit": 260, "symbolLimit": 100, "symbolOpacity": 1}
_BELOW = {**_LEGEND, "orient": "bottom"}
_INTERVAL = {"type": "rule", "strokeWidth": 1.4}
#: Kinds of samples.
_KINDS = {"field": "kind", "scale": {"range": list(PALETTE)}, "legend": _BELOW}
_NAMES = {"ticks": False, "domain": False, "labelLimit": 220, "labelPadding": 6}
#: Of the lines at a logarithmic axis only those with a number are drawn.
_LABELLED = {"condition": {"test": "datum.label", "value": 1}, "value": 0}


class Chart(msgspec.Struct, frozen=True):
    """A chart with its data, under a title; a `full` one is as wide as the page.

    `views` are the numbers of the views of a page that it belongs to; of none, it is shown with
    all.
    """

    title: str
    note: str
    spec: Spec
    full: bool = True
    views: tuple[int, ...] = ()


def quantity(
    field: str, kind: Literal["log", "linear"] = "log", form: str = PLAIN, *,
    title: str | None = None, close: bool = False,
) -> Spec:  # fmt: skip
    """A position by a value; a linear axis begins at 0, unless it is `close` around the values."""
    scale = {"type": kind, "nice": False, "padding": 10} if close else {"type": kind, "nice": True}
    if kind == "linear":
        scale["zero"] = not close
    # With fewer ticks Vega would leave out the numbers of a logarithmic axis over a small range.
    ticks = 12 if kind == "log" else 6
    axis = {"format": form, "labelOverlap": True, "gridOpacity": _LABELLED, "tickCount": ticks}
    return {
        "field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis,
    }  # fmt: skip


def _rows(field: str) -> Spec:
    """A row for each name, in the order of the data."""
    return {"field": field, "type": "nominal", "sort": None, "title": None, "axis": _NAMES}


def _stands_out(others: float = 0.12) -> Spec:
    return {"condition": {"test": _STANDS_OUT, "value": 1}, "value": others}


def _by_name(field: str, values: Mapping[str, str], legend: Spec | None) -> Spec:
    """A channel with its own value for each name."""
    scale = {"domain": list(values), "range": list(values.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def _colours(looks: Mapping[str, Look], legend: Spec | None) -> Spec:
    return _by_name("kernel", {name: look.colour for name, look in looks.items()}, legend)


def _points(looks: Mapping[str, Look], legend: Spec | None, y: Spec) -> Spec:
    """A point each, hollow where `hollow` is true; the one pointed at tells all its figures."""
    colours = _colours(looks, legend)
    return {
        "mark": {"type": "point", "size": 42, "strokeWidth": 1.8, "opacity": 1},
        "encoding": {
            "y": y,
            "stroke": colours,
            "fill": colours,
            "fillOpacity": {"condition": {"test": "datum.hollow", "value": 0}, "value": 1},
            "shape": _by_name("kernel", {name: x.shape for name, x in looks.items()}, legend),
            "opacity": _stands_out(),
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip


def curve(looks: Mapping[str, Look], y: Spec, *, least: float = 1.25, legend: bool = False) -> Spec:
    """One line a kernel over n, with intervals; baselines are dashed.

    The ends of y are at least the factor `least` apart, so that noise does not fill the chart.
    """
    shown = _LEGEND if legend else None
    stroke, opacity = _colours(looks, shown), _stands_out()
    dash = {"condition": {"test": "datum.is_baseline", "value": [6, 3]}, "value": [1, 0]}
    x = {
        "field": "n", "type": "quantitative",
        "scale": {"type": "log", "base": 2, "nice": False, "padding": 8},
        "axis": {"format": ",~r", "labelOverlap": True, "grid": False, "tickCount": 4},
    }  # fmt: skip
    look = {"stroke": stroke, "opacity": opacity}
    line = {"y": y, "strokeDash": dash, **look}
    interval = {"y": {**y, "field": "low"}, "y2": {"field": "high"}, **look}
    farthest = [
        {"aggregate": [{"op": "max", "field": "value", "as": "most"}]},
        {"calculate": f"datum.most / {least}", "as": "value"},
    ]
    unseen = {"type": "tick", "opacity": 0}
    return {
        "encoding": {"x": x},
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 1.8}, "encoding": line},
            {"mark": _INTERVAL, "encoding": interval},
            _points(looks, shown, y),
            {"transform": farthest, "mark": unseen, "encoding": {"x": {"value": 0}, "y": y}},
        ],
    }


def bars(looks: Mapping[str, Look], form: str = PLAIN) -> Spec:
    """One bar a kernel with its interval and figure, and a tick `beside` it if that differs."""
    bar = {"type": "bar", "height": 11, "cornerRadiusEnd": 2}
    tick = {"type": "tick", "thickness": 2, "height": 15}
    text = {"type": "text", "align": "left", "dx": 6, "fontSize": 11}
    differs = {"condition": {"test": "datum.beside == datum.value", "value": 0}, "value": 1}
    x = quantity("value", "linear", form)
    low, beside, high = ({**x, "field": field} for field in ("low", "beside", "high"))
    tip = {"tooltip": {"field": "tip"}, "opacity": _stands_out()}
    return {
        "encoding": {"y": _rows("kernel"), **tip},
        "layer": [
            {"mark": bar, "encoding": {"x": x, "color": _colours(looks, None)}},
            {"mark": _INTERVAL, "encoding": {"x": low, "x2": {"field": "high"}}},
            {"mark": tick, "encoding": {"x": beside, "opacity": differs}},
            {"mark": text, "encoding": {"x": high, "text": {"field": "figure"}}},
        ],
    }


def scatter(looks: Mapping[str, Look]) -> Spec:
    """Speed against error; a line joins the rows `on_front`, which have their names."""
    x, y = quantity("error", form=SCIENTIFIC, close=True), quantity("value", close=True)
    x["scale"]["padding"] = 40  # room for names
    front = [{"filter": "datum.on_front"}]
    mark = {
        "type": "line", "interpolate": "step-after", "strokeWidth": 1.2, "strokeDash": [3, 3],
        "color": NEUTRAL,
    }  # fmt: skip
    line = {"transform": front, "mark": mark, "encoding": {"y": y}}
    layers = [line, _points(looks, None, y), {"transform": front, **_names(y)}]
    return {"height": 320, "encoding": {"x": x}, "layer": layers}


def energy(looks: Mapping[str, Look]) -> Spec:
    """Sustained speed over the work for a joule, with the name of each kernel."""
    x, y = quantity("work_per_j", close=True), quantity("value", close=True)
    x["scale"]["padding"] = 40  # room for names
    return {"height": 320, "encoding": {"x": x}, "layer": [_points(looks, None, y), _names(y)]}


def _names(y: Spec) -> Spec:
    encoding = {"y": y, "text": {"field": "kernel"}, "opacity": _stands_out()}
    return {"mark": {"type": "text", "fontSize": 11, "dy": -9}, "encoding": encoding}


def roofs(
    bytes_per_s: float, peaks: Mapping[str, float], intensities: Sequence[float], scale: float
) -> list[dict[str, Any]]:
    """Both ends of each limit, in units of `scale`: the bandwidth, and peaks by name."""
    ridges = [peak / bytes_per_s for peak in peaks.values()]
    left, right = min([*ridges, *intensities]) / 2, max([*ridges, *intensities]) * 4
    top, copy = max(peaks.values()), f"copy {units.bandwidth(bytes_per_s)}"
    ends = [(copy, left, left * bytes_per_s), (copy, top / bytes_per_s, top)]
    for name, peak in sorted(peaks.items(), key=lambda item: item[1]):
        ends += [(name, peak / bytes_per_s, peak), (name, right, peak)]
    return [{"label": name, "intensity": x, "value": y / scale} for name, x, y in ends]


def roofline(looks: Mapping[str, Look], roofs: Rows, unit: str, *, legend: bool = False) -> Spec:
    """The limits that were measured, `roofs`, and a point for each case below them."""
    y = quantity("value", title=unit, close=True)
    x = quantity("intensity", title="operations per byte of global memory", close=True)
    stroke = {"legend": {**_BELOW, "symbolType": "stroke", "symbolSize": 400}}
    dash = {"field": "label", "type": "nominal", "sort": None, **stroke}
    limits = {
        "data": {"values": list(roofs)},
        "mark": {"type": "line", "strokeWidth": 1.2, "color": NEUTRAL},
        "encoding": {"y": y, "strokeDash": dash},
    }
    points = _points(looks, {**_BELOW, "columns": 1} if legend else None, y)
    return {"height": 340, "encoding": {"x": x}, "layer": [limits, points]}


def forest(colours: Mapping[str, str], rows: Rows) -> Spec:
    """Ratios, one in each row with its interval, around 1; the colour is that of its `kind`."""
    x = quantity("value", "linear", close=True)
    color = {"color": _by_name("kind", colours, _BELOW)}
    interval = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, **color}
    at_1 = {"x": {"datum": 1}, "y": {"value": 0}, "y2": {"value": "height"}}
    dashed = {"type": "rule", "strokeDash": [3, 3]}
    point = {"type": "point", "filled": True, "size": 60, "opacity": 1}
    return {
        "height": 10 + 20 * len({row["label"] for row in rows}),
        "data": {"values": rows},
        "encoding": {"y": _rows("label"), "tooltip": {"field": "tip"}},
        "layer": [
            {"data": {"values": [{}]}, "mark": dashed, "encoding": at_1},
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": interval},
            {"mark": point, "encoding": {"x": x, **color}},
        ],
    }


def statuses(rows: Rows) -> Spec:
    """A cell for each case, coloured by its status: sizes below each other."""
    x = {**_rows("label"), "axis": {**_NAMES, "orient": "top", "labelAngle": -60}}
    colours = _by_name("status", STATUSES, _BELOW)
    return {
        "width": {"step": 22},
        "height": {"step": 16},
        "data": {"values": rows},
        "mark": "rect",
        "encoding": {"x": x, "y": _rows("size"), "color": colours},
    }


def strip(looks: Mapping[str, Look]) -> Spec:
    """Every sample of every kernel at one size, as a tick."""
    opacity = {**_stands_out(0.06), "condition": {"test": _STANDS_OUT, "value": 0.4}}
    x, y, color = quantity("value", close=True), _rows("kernel"), _colours(looks, None)
    return {
        "mark": {"type": "tick", "thickness": 1, "height": 12},
        "encoding": {"x": x, "y": y, "color": color, "opacity": opacity},
    }


def ecdf() -> Spec:
    """The share of launches that took no longer, for each kind of samples of one case."""
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8}
    x, y = quantity("value", "linear", close=True), quantity("share", "linear", PERCENT)
    return {"height": 240, "mark": mark, "encoding": {"x": x, "y": y, "color": _KINDS}}


def course() -> Spec:
    """The samples of one case in the order they were taken."""
    mark = {"type": "circle", "size": 14, "opacity": 0.6}
    x, y = (quantity(field, "linear", close=True) for field in ("index", "value"))
    return {"height": 240, "mark": mark, "encoding": {"x": x, "y": y, "color": _KINDS}}


def condition() -> Spec:
    """Clock, power or temperature while samples were taken."""
    mark = {"type": "line", "strokeWidth": 1.4, "point": {"size": 14}, "color": PALETTE[0]}
    x = {"field": "index", "type": "quantitative", "axis": None}
    y = {**quantity("value", "linear", close=True), "axis": {"tickCount": 2}}
    return {"height": 44, "mark": mark, "encoding": {"x": x, "y": y}}
