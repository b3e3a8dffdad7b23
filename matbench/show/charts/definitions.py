"""Every chart, as Vega-Lite without data: a page's script or `filling` supplies it.

What depends on the data is a parameter: `across` and `up` are the domains of the axes, `ticks_…`
the marks on them, and `isolated` names the kernels that stand out (all of them, if it is empty).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from matbench.show.charts import style

Scale = Literal["log", "linear"]
Spec = dict[str, Any]

_STANDS_OUT = "isolated.length == 0 || indexof(isolated, datum.kernel) >= 0"
#: Powers of two from 2¹⁷ on are written as such.
_POWER = "round(log(datum.value) / LN2)"
_DIGITS = "'⁰¹²³⁴⁵⁶⁷⁸⁹'"
_SIZE = (
    f"datum.value >= 131072 && datum.value == pow(2, {_POWER}) ? '2'"
    f" + slice({_DIGITS}, floor({_POWER} / 10), floor({_POWER} / 10) + 1)"
    f" + slice({_DIGITS}, {_POWER} % 10, {_POWER} % 10 + 1) : datum.label"
)
_SHARE = "format(datum.value, '.0%')"
_SHORT = "format(datum.value, datum.value == 0 || abs(datum.value) >= 1e-3 ? ',~r' : '~e')"


def specs() -> dict[str, Spec]:
    """Every chart by its name."""
    return {
        "curve-log": curve("log"),
        "curve-linear": curve("linear"),
        "bars": bars(),
        "scatter": scatter(),
        "roofline": roofline(),
        "strip": strip(),
        "ecdf-log": ecdf("log"),
        "ecdf-linear": ecdf("linear"),
        "course": course(),
        "conditions": conditions(),
        "forest": forest(),
        "search": search(),
        "timeline": timeline(),
        "error-map": error_map(style.ORANGES),
        "error-map-shaded": error_map((*style.BLUES, *style.ORANGES)),
    }


def curve(scale: Scale) -> Spec:
    """One line a kernel over n, with intervals; its mark and name stand at the right edge.

    Values on a linear scale are shares.
    """
    import altair as alt

    axis = _values("ticks_up", _SHARE if scale == "linear" else _SHORT)
    y = alt.Y("value:Q", title=None, scale=_domain("up", scale), axis=axis)
    base = alt.Chart(_named("points")).encode(
        x=alt.X("n:Q", title=None, scale=_domain("across", "log", 2), axis=_sizes()),
        color=_as_is(alt.Color, "colour:N"),
        opacity=_opacity(alt),
        detail="kernel:N",
    )
    lines = base.mark_line(strokeWidth=1.8).encode(
        y=y, strokeDash=alt.condition("datum.is_baseline", alt.value([6, 3]), alt.value([1, 0]))
    )
    intervals = base.mark_rule(strokeWidth=1.4).encode(
        y=alt.Y("low:Q", title=None), y2=alt.Y2("high:Q")
    )
    points = _points(base, y)
    return _spec(
        alt.layer(lines, intervals, *_labels("n:Q"), points),
        "across",
        "up",
        "sizes",
        "ticks_up",
    )


def bars() -> Spec:
    """One bar a kernel at one size, its interval, and a tick for the size that it is beside.

    Where `share` is true, values are shares.
    """
    import altair as alt

    label = f"share ? {_SHARE} : {_SHORT}"

    base = alt.Chart(_named("points")).encode(
        y=alt.Y("kernel:N", sort=None, title=None, axis=_names()),
        opacity=_opacity(alt),
        tooltip=alt.Tooltip("tip:N"),
    )
    x = alt.X("value:Q", title=None, scale=_domain("across", "linear"), axis=_values("", label))
    drawn = base.mark_bar(height=11, cornerRadiusEnd=2).encode(
        x=x, color=_as_is(alt.Color, "colour:N")
    )
    interval = base.mark_rule(strokeWidth=1.4, color="currentColor").encode(x="low:Q", x2="high:Q")
    beside = base.mark_tick(thickness=2, height=15, color="currentColor").encode(x="beside:Q")
    figures = base.mark_text(align="left", fontSize=11).encode(
        x=alt.value(alt.expr("width + 8")), text="figure:N"
    )
    return _spec(alt.layer(drawn, interval, beside, figures), "across", "share")


def scatter() -> Spec:
    """Speed against error, and the front that no kernel is both faster and more accurate than."""
    import altair as alt

    x = alt.X("error:Q", title=None, scale=_domain("across", "log"), axis=_values("ticks_across"))
    y = alt.Y("value:Q", title=None, scale=_domain("up", "log"), axis=_values("ticks_up"))
    base = alt.Chart(_named("points")).encode(
        x=x, color=_as_is(alt.Color, "colour:N"), opacity=_opacity(alt), detail="kernel:N"
    )
    front = (
        alt.Chart(_named("front"))
        .mark_line(
            interpolate="step-after", strokeWidth=1.2, strokeDash=[3, 3], color="currentColor"
        )
        .encode(x=x, y=y, order="error:Q")
    )
    names = base.mark_text(fontSize=11, dy=-9).encode(
        y=y, text="label:N", color=alt.value("currentColor")
    )
    return _spec(
        alt.layer(front, _points(base, y), names), "across", "up", "ticks_across", "ticks_up"
    )


def roofline() -> Spec:
    """The limits that were measured, and a point for each case."""
    import altair as alt

    x = alt.X(
        "intensity:Q", title=None, scale=_domain("across", "log"), axis=_values("ticks_across")
    )
    y = alt.Y("value:Q", title=None, scale=_domain("up", "log"), axis=_values("ticks_up"))
    roofs = (
        alt.Chart(_named("roofs"))
        .mark_line(strokeWidth=1.2, color="currentColor")
        .encode(x=x, y=y, detail="label:N")
    )
    names = (
        alt.Chart(_named("names"))
        .mark_text(align="right", dy=-7, fontSize=11)
        .encode(x=x, y=y, text="label:N")
    )
    slope = (
        alt.Chart(_named("slope"))
        .mark_text(align="left", dx=8, dy=12, fontSize=11)
        .encode(x=x, y=y, text="label:N")
    )
    base = alt.Chart(_named("points")).encode(
        x=x, color=_as_is(alt.Color, "colour:N"), opacity=_opacity(alt), detail="kernel:N"
    )
    return _spec(
        alt.layer(roofs, names, slope, *_labels("intensity:Q"), _points(base, y)),
        "across",
        "up",
        "ticks_across",
        "ticks_up",
    )


def strip() -> Spec:
    """Every sample of every kernel at one size, as a tick."""
    import altair as alt

    base = alt.Chart(_named("points"))
    ticks = base.mark_tick(thickness=1, height=12).encode(
        opacity=alt.condition(_STANDS_OUT, alt.value(0.4), alt.value(0.06)),
        x=alt.X(
            "value:Q", title=None, scale=_domain("across", "log"), axis=_values("ticks_across")
        ),
        y=alt.Y("kernel:N", sort=None, title=None, axis=_names()),
        color=_as_is(alt.Color, "colour:N"),
    )
    return _spec(ticks, "across", "ticks_across")


def ecdf(scale: Scale) -> Spec:
    """The share of launches that took no longer, for each kind of samples of one case."""
    import altair as alt

    ticks = "ticks_across" if scale == "log" else ""
    lines = (
        alt.Chart(_named("points"))
        .mark_line(interpolate="step-after", strokeWidth=1.8, clip=True)
        .encode(
            x=alt.X("value:Q", title=None, scale=_domain("across", scale), axis=_values(ticks)),
            y=alt.Y(
                "share:Q",
                title=None,
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(tickCount=5, format=".0%"),
            ),
            color=_as_is(alt.Color, "colour:N"),
            detail="kind:N",
        )
    )
    return _spec(lines, "across", "ticks_across")


def course() -> Spec:
    """The samples of one case in the order they were taken."""
    import altair as alt

    points = (
        alt.Chart(_named("points"))
        .mark_circle(size=14, opacity=0.6)
        .encode(
            x=alt.X("index:Q", title=None, axis=_values()),
            y=alt.Y("value:Q", title=None, scale=_domain("up", "linear"), axis=_values()),
            color=_as_is(alt.Color, "colour:N"),
        )
    )
    return _spec(points, "up")


def conditions() -> Spec:
    """Clock, power or temperature while samples were taken."""
    import altair as alt

    lines = (
        alt.Chart(_named("points"))
        .mark_line(strokeWidth=1.4, interpolate="linear", point=alt.OverlayMarkDef(size=14))
        .encode(
            x=alt.X("index:Q", title=None, axis=None),
            y=alt.Y("value:Q", title=None, scale=_domain("up", "linear"), axis=_few()),
            color=_as_is(alt.Color, "colour:N"),
        )
    )
    return _spec(lines, "up")


def forest() -> Spec:
    """One comparison a row: the ratio of times and its interval, around 1."""
    import altair as alt

    y = alt.Y("label:N", sort=None, title=None, axis=_names())
    base = alt.Chart(_named("points")).encode(y=y, color=_as_is(alt.Color, "colour:N"))
    x = alt.X("value:Q", title=None, scale=_domain("across", "log"), axis=_values("ticks_across"))
    same = (
        alt.Chart(_named("same"))
        .mark_rule(strokeDash=[3, 3], color="currentColor")
        .encode(x=alt.X("value:Q"))
    )
    interval = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    ratio = base.mark_point(size=45, strokeWidth=1.8, opacity=1).encode(
        x=x,
        shape=_as_is(alt.Shape, "shape:N"),
        fill=_as_is(alt.Fill, "fill:N"),
        tooltip=alt.Tooltip("tip:N"),
    )
    return _spec(alt.layer(same, interval, ratio), "across", "ticks_across")


def search() -> Spec:
    """The candidates of a tuning search: how many rounds each survived, and its time."""
    import altair as alt

    points = (
        alt.Chart(_named("points"))
        .mark_point(size=45, filled=True)
        .encode(
            x=alt.X(
                "value:Q", title=None, scale=_domain("across", "log"), axis=_values("ticks_across")
            ),
            y=alt.Y("round:O", title=None, sort="ascending"),
            color=_as_is(alt.Color, "colour:N"),
            shape=_as_is(alt.Shape, "shape:N"),
            tooltip=alt.Tooltip("tip:N"),
        )
    )
    return _spec(points, "across", "ticks_across")


def timeline() -> Spec:
    """Lanes from top to bottom, and in them a bar for each block, over time in µs.

    `bars` and `busy` are rows of a record's `Timeline`, of whose ns the `shades` are µs; `names`
    are those of the lanes, and `grid` is the launch's. `gaps` keeps bars apart.
    """
    import altair as alt

    x = alt.X(
        "start:Q",
        title="µs since the first block started",
        scale=_domain("across", "linear"),
        axis=_values(),
    )
    y = alt.Y(
        "top:Q",
        title=None,
        scale=_domain("up", "linear"),
        axis=alt.Axis(
            values=alt.ExprRef("ticks_up"), labelExpr="names[floor(datum.value)]", grid=False,
            labelOverlap=True,
        ),
    )  # fmt: skip
    busy = (
        alt.Chart(_named("busy"))
        .transform_calculate(
            start="datum[1] / 1000",
            end="datum[2] / 1000",
            top="datum[0] + 0.05",
            low="datum[0] + 0.95",
        )
        .mark_rect(color="#888", opacity=0.45)
        .encode(x=x, x2="end:Q", y=y, y2="low:Q")
    )
    bars = (
        alt.Chart(_named("bars"))
        .transform_calculate(
            start="datum[1] / 1000",
            end="datum[2] / 1000",
            took="(datum[2] - datum[1]) / 1000",
            top="datum[0] + 0.05 + 0.9 * datum[3] / slots",
            low="datum[0] + 0.05 + 0.9 * (datum[3] + 1) / slots",
            block="'(' + datum[4] % grid[0] + ', ' + floor(datum[4] / grid[0]) % grid[1] + ', ' "
            "+ floor(datum[4] / grid[0] / grid[1]) + ')'",
            lane="names[datum[0]]",
        )
        .mark_rect(stroke="#fff", strokeOpacity=0.7)
        .encode(
            x=x,
            x2="end:Q",
            y=y,
            y2="low:Q",
            color=alt.Color(
                "took:Q",
                scale=alt.Scale(
                    domain=alt.ExprRef("shades"),
                    scheme=alt.SchemeParams(name="viridis", extent=[0.12, 1]),
                    clamp=True,
                ),
                legend=alt.Legend(
                    orient="bottom", title="block duration (µs)", titleFontWeight="normal",
                    gradientLength=180, gradientThickness=9, titleLimit=0, tickCount=4, offset=6,
                ),
            ),
            strokeWidth=alt.condition(
                "gaps && datum.took > 0.004 * across[1]", alt.value(0.5), alt.value(0)
            ),
            tooltip=[
                alt.Tooltip("block:N"),
                alt.Tooltip("lane:N", title="lane"),
                alt.Tooltip("start:Q", title="start, µs", format=",.3f"),
                alt.Tooltip("end:Q", title="end, µs", format=",.3f"),
                alt.Tooltip("took:Q", title="took, µs", format=",.3f"),
            ],
        )
    )  # fmt: skip
    tail = alt.Chart(_named("tail")).encode(x="at:Q")
    since = tail.mark_rule(strokeDash=[4, 3], color="currentColor")
    name = tail.mark_text(align="right", baseline="bottom", fontSize=11, dy=-3).encode(
        y=alt.value(0), text="label:N"
    )
    return _spec(
        alt.layer(busy, bars, since, name),
        "across", "up", "ticks_up", "names", "slots", "grid", "shades", "gaps",
    )  # fmt: skip


def error_map(colours: Sequence[str]) -> Spec:
    """C as an image, with rings around single wrong cells, over a scale of powers of ten."""
    import altair as alt

    def side(title: str) -> Any:
        return alt.Axis(
            title=title,
            titleFontWeight="normal",
            grid=False,
            tickCount=5,
            labelOverlap=True,
            labelExpr="datum.value % 1 == 0 ? format(datum.value, ',d') : ''",
        )

    x = alt.X("column:Q", scale=_domain("across", "linear"), axis=side("column of C"))
    down = alt.Scale(domain=alt.ExprRef("up"), nice=False, zero=False, reverse=True)
    y = alt.Y("row:Q", scale=down, axis=side("row of C"))
    image = (
        alt.Chart(_named("map"))
        .mark_image(
            width=alt.ExprRef("width"), height=alt.ExprRef("height"), align="left", baseline="top",
            aspect=False, smooth=False,
        )
        .encode(x=alt.value(0), y=alt.value(0), url="url:N")
    )  # fmt: skip
    rings = alt.Chart(_named("rings")).encode(x=x, y=y)
    halo = rings.mark_point(size=130, filled=False, stroke="#fff", strokeWidth=4, opacity=1)
    ring = rings.mark_point(size=130, filled=False, stroke="#000", strokeWidth=1.5, opacity=1)
    label = "abs(datum.value) <= 3 ? format(pow(10, datum.value), ',~r') : '1e' + datum.value"
    scale = (
        alt.Chart(_named("scale"))
        .mark_point(opacity=0)
        .encode(
            color=alt.Color(
                "power:Q",
                scale=alt.Scale(
                    domain=alt.ExprRef("powers"), range=list(colours), interpolate="rgb"
                ),
                legend=alt.Legend(
                    orient="bottom", title=None, values=alt.ExprRef("ticks_scale"),
                    labelExpr=label, gradientLength=200, gradientThickness=9, offset=6,
                ),
            )
        )
    )  # fmt: skip
    return _spec(alt.layer(image, halo, ring, scale), "across", "up", "powers", "ticks_scale")


# Parts


def _named(name: str) -> Any:
    import altair as alt

    return alt.NamedData(name=name)


def _domain(parameter: str, scale: Scale, base: int = 10) -> Any:
    import altair as alt

    more = {"base": base} if scale == "log" else {"zero": False}
    return alt.Scale(type=scale, domain=alt.ExprRef(parameter), nice=False, **more)


def _values(parameter: str = "", label: str = _SHORT) -> Any:
    import altair as alt

    ticks = {"values": alt.ExprRef(parameter)} if parameter else {"tickCount": 6}
    return alt.Axis(labelOverlap=True, labelExpr=label, titleFontWeight="normal", **ticks)


def _few() -> Any:
    import altair as alt

    return alt.Axis(tickCount=2, format=",~r")


def _sizes() -> Any:
    import altair as alt

    return alt.Axis(
        values=alt.ExprRef("sizes"), format=",", labelExpr=_SIZE, labelOverlap=True, grid=False
    )


def _names() -> Any:
    import altair as alt

    return alt.Axis(ticks=False, domain=False, labelLimit=220, labelPadding=6)


def _as_is(channel: Any, field: str) -> Any:
    """A channel whose values are colours, shapes or the like themselves."""
    return channel(field, scale=None, legend=None)


def _opacity(alt: Any, others: float = 0.12) -> Any:
    return alt.condition(_STANDS_OUT, alt.value(1), alt.value(others))


def _labels(x: str) -> list[Any]:
    """Leaders from points to the right edge, and marks and names there at `label_value`."""
    import altair as alt

    ends = alt.Chart(_named("labels"))
    there = ends.encode(y=alt.Y("label_value:Q", title=None))
    colour = _as_is(alt.Color, "colour:N")
    leaders = ends.mark_rule(strokeWidth=1.2, strokeDash=[1, 3]).encode(
        x=alt.X(x, title=None),
        x2=alt.value(alt.expr("width + 11")),
        y=alt.Y("value:Q", title=None),
        y2=alt.Y2("label_value:Q"),
        color=colour,
        opacity=alt.condition(_STANDS_OUT, alt.value(0.7), alt.value(0.1)),
    )
    marks = there.mark_point(size=30, strokeWidth=1.4).encode(
        x=alt.value(alt.expr("width + 16")),
        color=colour,
        shape=_as_is(alt.Shape, "shape:N"),
        fill=_as_is(alt.Fill, "fill:N"),
        opacity=_opacity(alt, 0.3),
    )
    names = there.mark_text(align="left", fontSize=11).encode(
        x=alt.value(alt.expr("width + 23")), text="label:N", opacity=_opacity(alt, 0.3)
    )
    return [leaders, marks, names]


def _points(base: Any, y: Any) -> Any:
    """A point each, hollow with claims; the nearest one tells all its figures."""
    import altair as alt

    return base.mark_point(size=42, strokeWidth=1.8).encode(
        y=y,
        shape=_as_is(alt.Shape, "shape:N"),
        fill=_as_is(alt.Fill, "fill:N"),
        tooltip=alt.Tooltip("tip:N"),
    )


def _spec(chart: Any, *parameters: str) -> Spec:
    """The chart without data, with its parameters at the top."""
    import altair as alt

    names = ("isolated", *parameters)
    made: Spec = chart.add_params(*(alt.param(name=name, value=[]) for name in names)).to_dict()
    for unused in ("config", "datasets"):
        made.pop(unused, None)
    return made
