"""The picture of a roofline has its limits and all points."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from support.pictures import TITLE, marks, needs_plots, picture, words

from matbench.features.explain import roofline_picture
from matbench.features.explain.roofline import Point, Roofline
from matbench.features.explain.roofline_view import LABELS

pytestmark = needs_plots
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
