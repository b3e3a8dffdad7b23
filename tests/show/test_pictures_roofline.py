"""The picture of a roofline has its limits and all points."""

from __future__ import annotations

from pathlib import Path

from support.pictures import TITLE, needs_matplotlib, picture, words

from matbench.analysis.roofline import Point, Roofline
from matbench.show.pictures import roofline
from matbench.show.roofline import LABELS

ROOF = Roofline(
    4e12,
    60e12,
    (
        Point("least", 170.0, 60e12),
        Point("modelled", 4.0, 16e12),
        Point("measured at modelled", 4.0, 8e12),
    ),
)


@needs_matplotlib
def test_a_roofline_names_its_limits_and_points(tmp_path: Path) -> None:
    path = tmp_path / "roof.svg"
    roofline.draw(ROOF, path, "tiled at 1000")
    svg = path.read_text(encoding="utf-8")
    said = words(svg)
    for part in ("tiled at 1000", "4,000 GB/s copied", "60,000 GFLOP/s of multiply-adds"):
        assert part in said
    assert all(LABELS[point.kind] in said for point in ROOF.points)
    roofline.draw(ROOF, path, "tiled at 1000")
    assert path.read_text(encoding="utf-8") == svg
    roofline.draw(ROOF, tmp_path / "roof.png", TITLE)
    assert picture(tmp_path / "roof.png").shape[1] > 900
