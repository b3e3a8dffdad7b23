"""Every chart as a Vega-Lite specification, without its main data: `data` are to be added.

Vega computes axes, legends and the places of all text. The specifications are in `specs.json`,
where `"$name"` stands for a part, and `{"$": "name", …}` for one with other values of some keys. In
an expression, `isolated` holds the names of the kernels that stand out, or is empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from matbench.features.charts import style
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
#: Of the lines at a logarithmic axis only those with a number are drawn.
_LABELLED = {"condition": {"test": "datum.label", "value": 1}, "value": 0}


def specs_of(folder: Path) -> Any:
    """The specifications in a feature's folder."""
    return json.loads((folder / "specs.json").read_text(encoding="utf-8"))


_SPECS = specs_of(Path(__file__).parent)


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


def filled(spec: Any, parts: Mapping[str, Any]) -> Any:
    """A specification with its parts: these, or those that all charts have."""

    def part(name: str) -> Any:
        return parts[name] if name in parts else filled(_SPECS["parts"][name], parts)

    if isinstance(spec, str):
        return part(spec[1:]) if spec.startswith("$") else spec
    if isinstance(spec, list):
        return [filled(one, parts) for one in spec]
    if not isinstance(spec, dict):
        return spec
    base = part(spec["$"]) if "$" in spec else {}
    return base | {key: filled(value, parts) for key, value in spec.items() if key != "$"}


def of(name: str, **parts: Any) -> Spec:
    """A specification of the file with these parts."""
    spec: Spec = filled(_SPECS[name], {"palette": list(PALETTE), "neutral": NEUTRAL, **parts})
    return spec


def config(ink: str = style.INK) -> Spec:
    """Vega-Lite's configuration for text and lines in that ink."""
    return of("config", ink=ink, grid=style.GRID)


def quantity(
    field: str, kind: Literal["log", "linear"] = "log", form: str = PLAIN, *,
    title: str | None = None, close: bool = False, padding: int = 10,
) -> Spec:  # fmt: skip
    """A position by a value; a linear axis begins at 0, unless it is `close` around the values."""
    scale: Spec = {"type": kind, "nice": not close, **({"padding": padding} if close else {})}
    if kind == "linear":
        scale["zero"] = not close
    # With fewer ticks Vega would leave out the numbers of a logarithmic axis over a small range.
    ticks = 12 if kind == "log" else 6
    axis = {"format": form, "labelOverlap": True, "gridOpacity": _LABELLED, "tickCount": ticks}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def _by_name(field: str, values: Mapping[str, str], legend: Spec | None) -> Spec:
    """A channel with its own value for each name."""
    scale = {"domain": list(values), "range": list(values.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def _of_kernels(
    name: str, looks: Mapping[str, Look], legend: Spec | None = None, **parts: Any
) -> Spec:
    """A specification with a colour and a shape for each kernel."""
    values = ({kernel: look[i] for kernel, look in looks.items()} for i in range(2))
    colours, shapes = (_by_name("kernel", each, legend) for each in values)
    return of(name, colours=colours, shapes=shapes, **parts)


def curve(looks: Mapping[str, Look], y: Spec, *, least: float = 1.25, legend: bool = False) -> Spec:
    """One line a kernel over n, with intervals; baselines are dashed.

    The ends of y are at least the factor `least` apart, so that noise does not fill the chart.
    """
    shown = _SPECS["parts"]["legend"] if legend else None
    return _of_kernels("curve", looks, shown, y=y, farthest=f"datum.most / {least}")


def bars(looks: Mapping[str, Look], form: str = PLAIN) -> Spec:
    """One bar a kernel with its interval and figure, and a tick `beside` it if that differs."""
    return _of_kernels("bars", looks, x=quantity("value", "linear", form))


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
    shown = filled({"$": "below", "columns": 1}, {}) if legend else None
    return _of_kernels("roofline", looks, shown, x=x, y=y, roofs=list(roofs))


def forest(colours: Mapping[str, str], rows: Rows) -> Spec:
    """Ratios, one in each row with its interval, around 1; the colour is that of its `kind`."""
    height = 10 + 20 * len({row["label"] for row in rows})
    kinds = _by_name("kind", colours, filled("$below", {}))
    x = quantity("value", "linear", close=True)
    return of("forest", x=x, kinds=kinds, height=height, rows=rows)


def statuses(rows: Rows) -> Spec:
    """A cell for each case, coloured by its status: sizes below each other."""
    return of("statuses", kinds=_by_name("status", STATUSES, filled("$below", {})), rows=rows)


def of_pages(looks: Mapping[str, Look]) -> dict[str, Spec]:
    """The charts that only pages have: of all kernels, then of the samples of one case."""
    value, linear = quantity("value", close=True), partial(quantity, kind="linear", close=True)
    named = partial(quantity, close=True, padding=40)  # room for names
    errors, shares = named("error", form=SCIENTIFIC), quantity("share", "linear", PERCENT)
    return {
        # Speed against error; a line joins the rows `on_front`, which have their names.
        "scatter": _of_kernels("scatter", looks, x=errors, y=value),
        # Sustained speed over the work for a joule, with the name of each kernel.
        "energy": _of_kernels("energy", looks, x=named("work_per_j"), y=value),
        # Every sample of every kernel at one size, as a tick.
        "strip": _of_kernels("strip", looks, x=value),
        # The share of launches that took no longer, for each kind of samples.
        "ecdf": of("ecdf", x=linear("value"), y=shares),
        # The samples in the order they were taken, and clock, power or temperature meanwhile.
        "course": of("course", x=linear("index"), y=linear("value")),
        "condition": of("condition", y=linear("value"), colour=PALETTE[0]),
    }
