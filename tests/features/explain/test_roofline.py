"""The roofline, and the points below it."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support import records

from matbench.features.explain.roofline import Point, Roofline, roofline
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
    found = roofline(EXPLAINED)
    assert found is not None
    assert found.points == (Point("least", 10, 40e12), Point("measured at least", 10, 8e12))


def test_a_modelled_case_stands_at_its_modelled_intensity() -> None:
    traffic = msgspec.structs.replace(EXPLAINED.traffic, intensity=2.0)
    found = roofline(msgspec.structs.replace(EXPLAINED, traffic=traffic))
    assert found is not None
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
