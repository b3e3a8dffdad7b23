"""What definitions of charts have in common: scales, axes, marks and parameters."""

from __future__ import annotations

from typing import Any, Literal

Scale = Literal["log", "linear"]
Spec = dict[str, Any]

STANDS_OUT = "isolated.length == 0 || indexof(isolated, datum.kernel) >= 0"
#: Powers of two from 2¹⁷ on are written as such.
_POWER = "round(log(datum.value) / LN2)"
_DIGITS = "'⁰¹²³⁴⁵⁶⁷⁸⁹'"
SIZE = (
    f"datum.value >= 131072 && datum.value == pow(2, {_POWER}) ? '2'"
    f" + slice({_DIGITS}, floor({_POWER} / 10), floor({_POWER} / 10) + 1)"
    f" + slice({_DIGITS}, {_POWER} % 10, {_POWER} % 10 + 1) : datum.label"
)
SHARE = "format(datum.value, '.0%')"
SHORT = "format(datum.value, datum.value == 0 || abs(datum.value) >= 1e-3 ? ',~r' : '~e')"


def named(name: str) -> Any:
    import altair as alt

    return alt.NamedData(name=name)


def domain(parameter: str, scale: Scale, base: int = 10) -> Any:
    import altair as alt

    more = {"base": base} if scale == "log" else {"zero": False}
    return alt.Scale(type=scale, domain=alt.ExprRef(parameter), nice=False, **more)


def values(parameter: str = "", label: str = SHORT) -> Any:
    import altair as alt

    ticks = {"values": alt.ExprRef(parameter)} if parameter else {"tickCount": 6}
    return alt.Axis(labelOverlap=True, labelExpr=label, titleFontWeight="normal", **ticks)


def across(field: str) -> Any:
    """A logarithmic x, with ticks at `ticks_across`."""
    import altair as alt

    scale, axis = domain("across", "log"), values("ticks_across")
    return alt.X(field, title=None, scale=scale, axis=axis)


def up(field: str) -> Any:
    """A logarithmic y, with ticks at `ticks_up`."""
    import altair as alt

    return alt.Y(field, title=None, scale=domain("up", "log"), axis=values("ticks_up"))


def few() -> Any:
    import altair as alt

    return alt.Axis(tickCount=2, format=",~r")


def sizes() -> Any:
    import altair as alt

    return alt.Axis(
        values=alt.ExprRef("sizes"), format=",", labelExpr=SIZE, labelOverlap=True, grid=False
    )


def names() -> Any:
    import altair as alt

    return alt.Axis(ticks=False, domain=False, labelLimit=220, labelPadding=6)


def as_is(channel: Any, field: str) -> Any:
    """A channel whose values are colours, shapes or the like themselves."""
    return channel(field, scale=None, legend=None)


def opacity(alt: Any, others: float = 0.12) -> Any:
    return alt.condition(STANDS_OUT, alt.value(1), alt.value(others))


def labels(x: str) -> list[Any]:
    """Leaders from points to the right edge, and marks and names there at `label_value`."""
    import altair as alt

    ends = alt.Chart(named("labels"))
    there = ends.encode(y=alt.Y("label_value:Q", title=None))
    colour = as_is(alt.Color, "colour:N")
    leaders = ends.mark_rule(strokeWidth=1.2, strokeDash=[1, 3]).encode(
        x=alt.X(x, title=None),
        x2=alt.value(alt.expr("width + 11")),
        y=alt.Y("value:Q", title=None),
        y2=alt.Y2("label_value:Q"),
        color=colour,
        opacity=alt.condition(STANDS_OUT, alt.value(0.7), alt.value(0.1)),
    )
    marks = there.mark_point(size=30, strokeWidth=1.4).encode(
        x=alt.value(alt.expr("width + 16")),
        color=colour,
        shape=as_is(alt.Shape, "shape:N"),
        fill=as_is(alt.Fill, "fill:N"),
        opacity=opacity(alt, 0.3),
    )
    names = there.mark_text(align="left", fontSize=11).encode(
        x=alt.value(alt.expr("width + 23")), text="label:N", opacity=opacity(alt, 0.3)
    )
    return [leaders, marks, names]


def points(base: Any, y: Any) -> Any:
    """A point each, hollow with claims; the nearest one tells all its figures."""
    import altair as alt

    return base.mark_point(size=42, strokeWidth=1.8).encode(
        y=y,
        shape=as_is(alt.Shape, "shape:N"),
        fill=as_is(alt.Fill, "fill:N"),
        tooltip=alt.Tooltip("tip:N"),
    )


def spec(chart: Any, *parameters: str) -> Spec:
    """The chart without data, with its parameters at the top."""
    import altair as alt

    names = ("isolated", *parameters)
    made: Spec = chart.add_params(*(alt.param(name=name, value=[]) for name in names)).to_dict()
    for unused in ("config", "datasets"):
        made.pop(unused, None)
    return made
