"""Every chart, as Vega-Lite without data: a page's script or `filling` supplies it.

What depends on the data is a parameter: `across` and `up` are the domains of the axes, `ticks_…`
the marks on them, and `isolated` names the kernels that stand out (all of them, if it is empty).
"""

from __future__ import annotations

from matbench.show.charts import launches, parts
from matbench.show.charts.parts import Scale, Spec


def specs() -> dict[str, Spec]:
    """Every chart by its name."""
    return {
        "curve-log": curve("log"),
        "curve-linear": curve("linear"),
        "bars": bars(),
        "scatter": scatter(),
        "roofline": roofline(),
        "forest": forest(),
        "search": search(),
        **launches.specs(),
    }


def curve(scale: Scale) -> Spec:
    """One line a kernel over n, with intervals; its mark and name stand at the right edge.

    Values on a linear scale are shares.
    """
    import altair as alt

    axis = parts.values("ticks_up", parts.SHARE if scale == "linear" else parts.SHORT)
    y = alt.Y("value:Q", title=None, scale=parts.domain("up", scale), axis=axis)
    base = alt.Chart(parts.named("points")).encode(
        x=alt.X("n:Q", title=None, scale=parts.domain("across", "log", 2), axis=parts.sizes()),
        color=parts.as_is(alt.Color, "colour:N"),
        opacity=parts.opacity(alt),
        detail="kernel:N",
    )
    lines = base.mark_line(strokeWidth=1.8).encode(
        y=y, strokeDash=alt.condition("datum.is_baseline", alt.value([6, 3]), alt.value([1, 0]))
    )
    intervals = base.mark_rule(strokeWidth=1.4).encode(
        y=alt.Y("low:Q", title=None), y2=alt.Y2("high:Q")
    )
    points = parts.points(base, y)
    return parts.spec(
        alt.layer(lines, intervals, *parts.labels("n:Q"), points),
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

    label = f"share ? {parts.SHARE} : {parts.SHORT}"

    base = alt.Chart(parts.named("points")).encode(
        y=alt.Y("kernel:N", sort=None, title=None, axis=parts.names()),
        opacity=parts.opacity(alt),
        tooltip=alt.Tooltip("tip:N"),
    )
    x = alt.X(
        "value:Q", title=None, scale=parts.domain("across", "linear"), axis=parts.values("", label)
    )
    drawn = base.mark_bar(height=11, cornerRadiusEnd=2).encode(
        x=x, color=parts.as_is(alt.Color, "colour:N")
    )
    interval = base.mark_rule(strokeWidth=1.4, color="currentColor").encode(x="low:Q", x2="high:Q")
    beside = base.mark_tick(thickness=2, height=15, color="currentColor").encode(x="beside:Q")
    figures = base.mark_text(align="left", fontSize=11).encode(
        x=alt.value(alt.expr("width + 8")), text="figure:N"
    )
    return parts.spec(alt.layer(drawn, interval, beside, figures), "across", "share")


def scatter() -> Spec:
    """Speed against error, and the front that no kernel is both faster and more accurate than."""
    import altair as alt

    x = parts.across("error:Q")
    y = parts.up("value:Q")
    base = alt.Chart(parts.named("points")).encode(
        x=x, color=parts.as_is(alt.Color, "colour:N"), opacity=parts.opacity(alt), detail="kernel:N"
    )
    front = (
        alt.Chart(parts.named("front"))
        .mark_line(
            interpolate="step-after", strokeWidth=1.2, strokeDash=[3, 3], color="currentColor"
        )
        .encode(x=x, y=y, order="error:Q")
    )
    names = base.mark_text(fontSize=11, dy=-9).encode(
        y=y, text="label:N", color=alt.value("currentColor")
    )
    return parts.spec(
        alt.layer(front, parts.points(base, y), names), "across", "up", "ticks_across", "ticks_up"
    )


def roofline() -> Spec:
    """The limits that were measured, and a point for each case."""
    import altair as alt

    x = parts.across("intensity:Q")
    y = parts.up("value:Q")
    roofs = (
        alt.Chart(parts.named("roofs"))
        .mark_line(strokeWidth=1.2, color="currentColor")
        .encode(x=x, y=y, detail="label:N")
    )
    names = (
        alt.Chart(parts.named("names"))
        .mark_text(align="right", dy=-7, fontSize=11)
        .encode(x=x, y=y, text="label:N")
    )
    slope = (
        alt.Chart(parts.named("slope"))
        .mark_text(align="left", dx=8, dy=12, fontSize=11)
        .encode(x=x, y=y, text="label:N")
    )
    base = alt.Chart(parts.named("points")).encode(
        x=x, color=parts.as_is(alt.Color, "colour:N"), opacity=parts.opacity(alt), detail="kernel:N"
    )
    return parts.spec(
        alt.layer(roofs, names, slope, *parts.labels("intensity:Q"), parts.points(base, y)),
        "across",
        "up",
        "ticks_across",
        "ticks_up",
    )


def forest() -> Spec:
    """One comparison a row: the ratio of times and its interval, around 1."""
    import altair as alt

    y = alt.Y("label:N", sort=None, title=None, axis=parts.names())
    base = alt.Chart(parts.named("points")).encode(y=y, color=parts.as_is(alt.Color, "colour:N"))
    x = parts.across("value:Q")
    same = (
        alt.Chart(parts.named("same"))
        .mark_rule(strokeDash=[3, 3], color="currentColor")
        .encode(x=alt.X("value:Q"))
    )
    interval = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    ratio = base.mark_point(size=45, strokeWidth=1.8, opacity=1).encode(
        x=x,
        shape=parts.as_is(alt.Shape, "shape:N"),
        fill=parts.as_is(alt.Fill, "fill:N"),
        tooltip=alt.Tooltip("tip:N"),
    )
    return parts.spec(alt.layer(same, interval, ratio), "across", "ticks_across")


def search() -> Spec:
    """The candidates of a tuning search: how many rounds each survived, and its time."""
    import altair as alt

    points = (
        alt.Chart(parts.named("points"))
        .mark_point(size=45, filled=True)
        .encode(
            x=parts.across("value:Q"),
            y=alt.Y("round:O", title=None, sort="ascending"),
            color=parts.as_is(alt.Color, "colour:N"),
            shape=parts.as_is(alt.Shape, "shape:N"),
            tooltip=alt.Tooltip("tip:N"),
        )
    )
    return parts.spec(points, "across", "ticks_across")
