"""The roofline: what it allows, and its chart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matbench.analysis.roofline import Point, Roofline

positive = st.floats(1e-3, 1e15)


def test_below_the_ridge_memory_is_the_roof_and_above_it_arithmetic() -> None:
    roof = Roofline(4e12, 60e12, ())
    assert roof.ridge == 15
    assert roof.allowed(5) == 20e12
    assert roof.allowed(15) == roof.allowed(100) == 60e12


def test_the_chart_shows_points_where_they_are() -> None:
    below = Point("●", "measured", 4.0, 8e12)
    above = Point("◇", "least", 100.0, 60e12)
    lines = Roofline(4e12, 60e12, (below, above)).chart()
    (measured,) = [line for line in lines if "●" in line and "┤" in line]
    (top,) = [line for line in lines if "◇" in line and "┤" in line]
    assert measured.startswith("     8,000 ┤")
    assert top.startswith("    60,000 ┤")
    assert lines.index(top) < lines.index(measured)
    assert measured.index("●") < top.index("◇")
    assert measured.rstrip().endswith("●")  # the roof is to its left and above it
    assert lines[-2:] == ["● measured", "◇ least"]
    (numbers,) = [line for line in lines if "4.00" in line]
    assert numbers.index("4.00") == measured.index("●")


@given(positive, positive, st.lists(st.tuples(positive, positive), max_size=4))
def test_any_limits_and_points_make_a_chart(
    bytes_per_s: float, flop_per_s: float, points: list[tuple[float, float]]
) -> None:
    roof = Roofline(bytes_per_s, flop_per_s, tuple(Point("●", "p", x, y) for x, y in points))
    lines = roof.chart()
    assert max(map(len, lines)) <= 79
    (left, right), (bottom, top) = roof.bounds()
    for x, y in points:
        assert left <= x <= right
        assert bottom <= y <= top
    if points:
        assert any("●" in line for line in lines[:-1])
