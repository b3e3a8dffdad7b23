"""The roofline: the points below it, and how characters and a picture show them."""

from __future__ import annotations

import math
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import records
from support.optional import present
from support.pictures import TITLE, marks, needs_plots, picture, words

from matbench.features.explain import roofline_picture
from matbench.features.explain.roofline import Point, Roofline, roofline
from matbench.features.explain.roofline_view import LABELS, chart
from matbench.records.explanation import Bottleneck, Explanation, Limits, Traffic

positive = st.floats(1e-3, 1e15)
LIMITS = Limits(
    device="", driver="", copy_bytes_per_s=4e12, read_bytes_per_s=4.5e12, fma_flop_per_s=60e12,
    sm_mhz=None, when="",
)  # fmt: skip
EXPLAINED = Explanation(
    case=records.outcome().case, outcome=records.outcome(), traffic=Traffic(1000, 100, 10.0),
    operations_per_s=8e12, limits=LIMITS, bound=Bottleneck(by="neither"),
)  # fmt: skip


def test_below_the_ridge_memory_is_the_roof_and_above_it_arithmetic() -> None:
    roof = Roofline(4e12, 60e12, ())
    assert roof.ridge == 15
    assert roof.allowed(5) == 20e12
    assert roof.allowed(15) == roof.allowed(100) == 60e12


def test_a_case_without_a_model_stands_at_the_least_traffic() -> None:
    found = present(roofline(EXPLAINED))
    assert found.points == (Point("least", 10, 40e12), Point("measured at least", 10, 8e12))


def test_a_modelled_case_stands_at_its_modelled_intensity() -> None:
    traffic = msgspec.structs.replace(EXPLAINED.traffic, intensity=2.0)
    found = present(roofline(msgspec.structs.replace(EXPLAINED, traffic=traffic)))
    assert found.points == (
        Point("least", 10, 40e12),
        Point("modelled", 2, 8e12),
        Point("measured at modelled", 2, 8e12),
    )


def test_without_a_floating_point_rate_there_is_no_roofline() -> None:
    for changes in ({"whole_numbers": True}, {"limits": None}, {"operations_per_s": None}):
        assert roofline(msgspec.structs.replace(EXPLAINED, **changes)) is None


@given(positive, positive, st.lists(st.tuples(positive, positive), max_size=4))
def test_all_points_lie_within_the_bounds(
    bytes_per_s: float, flop_per_s: float, points: list[tuple[float, float]]
) -> None:
    roof = Roofline(bytes_per_s, flop_per_s, tuple(Point("least", x, y) for x, y in points))
    (left, right), (bottom, top) = roof.bounds()
    assert left <= roof.ridge <= right
    assert bottom <= flop_per_s <= top
    for x, y in points:
        assert left <= x <= right
        assert bottom <= y <= top


# Characters


def test_the_chart_shows_points_where_they_are() -> None:
    below = Point("measured at modelled", 4.0, 8e12)
    above = Point("least", 100.0, 60e12)
    lines = chart(Roofline(4e12, 60e12, (below, above)))
    (measured,) = [line for line in lines if "●" in line and "┤" in line]
    (top,) = [line for line in lines if "◇" in line and "┤" in line]
    assert measured.startswith("     8,000 ┤")
    assert top.startswith("    60,000 ┤")
    assert lines.index(top) < lines.index(measured)
    assert measured.index("●") < top.index("◇")
    assert measured.rstrip().endswith("●")  # the roof is to its left and above it
    assert lines[-2:] == [f"● {LABELS[below.kind]}", f"◇ {LABELS[above.kind]}"]
    (numbers,) = [line for line in lines if "4.00" in line]
    assert numbers.index("4.00") == measured.index("●")


@given(positive, positive, st.lists(st.tuples(positive, positive), max_size=4))
def test_any_limits_and_points_make_a_chart(
    bytes_per_s: float, flop_per_s: float, points: list[tuple[float, float]]
) -> None:
    marked = tuple(Point("measured at least", x, y) for x, y in points)
    lines = chart(Roofline(bytes_per_s, flop_per_s, marked))
    assert max(map(len, lines)) <= 79
    if points:
        assert any("●" in line for line in lines[:-1])


# The picture


ROOF = Roofline(
    4e12,
    60e12,
    (
        Point("least", 170.0, 60e12),
        Point("modelled", 4.0, 16e12),
        Point("measured at modelled", 4.0, 8e12),
    ),
)
POINTS = "mark-symbol role-mark layer_1_marks"


@needs_plots
def test_a_roofline_names_its_limits_and_points(tmp_path: Path) -> None:
    path = tmp_path / "roof.svg"
    roofline_picture.draw(ROOF, path, "tiled at 1000")
    svg = path.read_text(encoding="utf-8")
    said = words(svg)
    for part in ("tiled at 1000", "4,000 GB/s copied", "60,000 GFLOP/s of multiply-adds"):
        assert part in said
    assert all(LABELS[point.kind] in said for point in ROOF.points)
    roofline_picture.draw(ROOF, tmp_path / "roof.png", TITLE)
    assert picture(tmp_path / "roof.png").shape[1] > 900


@needs_plots
def test_points_lie_on_and_below_the_roof(tmp_path: Path) -> None:
    path = tmp_path / "roof.svg"
    roofline_picture.draw(ROOF, path, "")
    svg = path.read_text(encoding="utf-8")
    least, modelled, measured = marks(svg, POINTS)
    assert modelled.x == measured.x < least.x
    assert least.y < modelled.y < measured.y
    assert [mark.is_hollow for mark in (least, modelled, measured)] == [True, True, False]
    slope, flat = (
        [tuple(map(float, corner)) for corner in re.findall(r"([-\d.]+),([-\d.]+)", mark.text)]
        for mark in marks(svg, "mark-line")
    )
    shift = marks(svg, "mark-line")[0]
    assert flat[0][1] + shift.y == pytest.approx(least.y, abs=0.1), "on the flat roof"
    (x1, y1), (x2, y2) = slope
    share = (modelled.x - shift.x - x1) / (x2 - x1)
    assert y1 + share * (y2 - y1) + shift.y == pytest.approx(modelled.y, abs=0.1), "on the slope"
    # A factor of two is as high anywhere: 60 to 16 to 8.
    ratio = (measured.y - modelled.y) / (modelled.y - least.y)
    assert ratio == pytest.approx(math.log(2) / math.log(60 / 16), rel=0.02)
