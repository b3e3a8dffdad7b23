"""The roofline drawn with characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matbench.features.explain.roofline import Point, Roofline
from matbench.features.explain.roofline_view import LABELS, chart

positive = st.floats(1e-3, 1e15)


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
