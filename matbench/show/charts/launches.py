"""Charts of launches: their samples, when their blocks ran, and where C is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matbench.show.charts import parts, style
from matbench.show.charts.parts import Scale, Spec


def specs() -> dict[str, Spec]:
    """Every chart by its name."""
    return {
        "strip": strip(),
        "ecdf-log": ecdf("log"),
        "ecdf-linear": ecdf("linear"),
        "course": course(),
        "conditions": conditions(),
        "timeline": timeline(),
        "error-map": error_map(style.ORANGES),
        "error-map-shaded": error_map((*style.BLUES, *style.ORANGES)),
    }


def strip() -> Spec:
    """Every sample of every kernel at one size, as a tick."""
    import altair as alt

    base = alt.Chart(parts.named("points"))
    ticks = base.mark_tick(thickness=1, height=12).encode(
        opacity=alt.condition(parts.STANDS_OUT, alt.value(0.4), alt.value(0.06)),
        x=parts.across("value:Q"),
        y=alt.Y("kernel:N", sort=None, title=None, axis=parts.names()),
        color=parts.as_is(alt.Color, "colour:N"),
    )
    return parts.spec(ticks, "across", "ticks_across")


def ecdf(scale: Scale) -> Spec:
    """The share of launches that took no longer, for each kind of samples of one case."""
    import altair as alt

    ticks = "ticks_across" if scale == "log" else ""
    lines = (
        alt.Chart(parts.named("points"))
        .mark_line(interpolate="step-after", strokeWidth=1.8, clip=True)
        .encode(
            x=alt.X(
                "value:Q", title=None, scale=parts.domain("across", scale), axis=parts.values(ticks)
            ),
            y=alt.Y(
                "share:Q",
                title=None,
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(tickCount=5, format=".0%"),
            ),
            color=parts.as_is(alt.Color, "colour:N"),
            detail="kind:N",
        )
    )
    return parts.spec(lines, "across", "ticks_across")


def course() -> Spec:
    """The samples of one case in the order they were taken."""
    import altair as alt

    points = (
        alt.Chart(parts.named("points"))
        .mark_circle(size=14, opacity=0.6)
        .encode(
            x=alt.X("index:Q", title=None, axis=parts.values()),
            y=alt.Y("value:Q", title=None, scale=parts.domain("up", "linear"), axis=parts.values()),
            color=parts.as_is(alt.Color, "colour:N"),
        )
    )
    return parts.spec(points, "up")


def conditions() -> Spec:
    """Clock, power or temperature while samples were taken."""
    import altair as alt

    lines = (
        alt.Chart(parts.named("points"))
        .mark_line(strokeWidth=1.4, interpolate="linear", point=alt.OverlayMarkDef(size=14))
        .encode(
            x=alt.X("index:Q", title=None, axis=None),
            y=alt.Y("value:Q", title=None, scale=parts.domain("up", "linear"), axis=parts.few()),
            color=parts.as_is(alt.Color, "colour:N"),
        )
    )
    return parts.spec(lines, "up")


def timeline() -> Spec:
    """Lanes from top to bottom, and in them a bar for each block, over time in µs.

    `bars` and `busy` are rows of a record's `Timeline`, of whose ns the `shades` are µs; `names`
    are those of the lanes, and `grid` is the launch's. `gaps` keeps bars apart.
    """
    import altair as alt

    x = alt.X(
        "start:Q",
        title="µs since the first block started",
        scale=parts.domain("across", "linear"),
        axis=parts.values(),
    )
    y = alt.Y(
        "top:Q",
        title=None,
        scale=parts.domain("up", "linear"),
        axis=alt.Axis(
            values=alt.ExprRef("ticks_up"), labelExpr="names[floor(datum.value)]", grid=False,
            labelOverlap=True,
        ),
    )  # fmt: skip
    busy = (
        alt.Chart(parts.named("busy"))
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
        alt.Chart(parts.named("bars"))
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
    tail = alt.Chart(parts.named("tail")).encode(x="at:Q")
    since = tail.mark_rule(strokeDash=[4, 3], color="currentColor")
    name = tail.mark_text(align="right", baseline="bottom", fontSize=11, dy=-3).encode(
        y=alt.value(0), text="label:N"
    )
    return parts.spec(
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

    x = alt.X("column:Q", scale=parts.domain("across", "linear"), axis=side("column of C"))
    down = alt.Scale(domain=alt.ExprRef("up"), nice=False, zero=False, reverse=True)
    y = alt.Y("row:Q", scale=down, axis=side("row of C"))
    image = (
        alt.Chart(parts.named("map"))
        .mark_image(
            width=alt.ExprRef("width"), height=alt.ExprRef("height"), align="left", baseline="top",
            aspect=False, smooth=False,
        )
        .encode(x=alt.value(0), y=alt.value(0), url="url:N")
    )  # fmt: skip
    rings = alt.Chart(parts.named("rings")).encode(x=x, y=y)
    halo = rings.mark_point(size=130, filled=False, stroke="#fff", strokeWidth=4, opacity=1)
    ring = rings.mark_point(size=130, filled=False, stroke="#000", strokeWidth=1.5, opacity=1)
    label = "abs(datum.value) <= 3 ? format(pow(10, datum.value), ',~r') : '1e' + datum.value"
    scale = (
        alt.Chart(parts.named("scale"))
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
    return parts.spec(alt.layer(image, halo, ring, scale), "across", "up", "powers", "ticks_scale")
