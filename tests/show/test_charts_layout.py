"""Places that are computed for pictures: marks on axes, and names that never overlap."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from matbench.show.charts import layout

places = st.lists(st.floats(-50, 350), min_size=1, max_size=30)
values = st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=20)
NEAR = 1e-6


@given(places)
def test_names_keep_their_distance_their_order_and_to_their_panel(wanted: list[float]) -> None:
    gap, high = 14.0, 14.0 * len(wanted)
    found = layout.separated(wanted, gap, 0, high)
    ordered = sorted(found)
    assert all(b - a >= gap - NEAR for a, b in pairwise(ordered))
    assert min(found) >= -NEAR and max(found) <= high + NEAR
    by_wish = sorted(range(len(wanted)), key=lambda i: wanted[i])
    assert [found[i] for i in by_wish] == pytest.approx(ordered)


@given(places)
def test_names_that_fit_stay_where_they_are(wanted: list[float]) -> None:
    assume(all(abs(a - b) >= 14 for i, a in enumerate(wanted) for b in wanted[:i]))
    assert layout.separated(wanted, 14, -50, 350) == pytest.approx(wanted)


def test_names_move_as_little_as_possible() -> None:
    assert layout.separated([100, 100], 10, 0, 200) == [95, 105]
    assert layout.separated([100, 101, 150], 10, 0, 200) == pytest.approx([95.5, 105.5, 150])
    assert layout.separated([0, 0, 0], 10, 0, 200) == [0, 10, 20]
    assert layout.separated([200, 199], 10, 0, 200) == [200, 190]


@given(values, st.floats(1.01, 1000))
def test_a_domain_holds_its_values_and_is_wide_enough(known: list[float], least: float) -> None:
    low, high = layout.extent(known, least)
    assert low < min(known) and max(known) < high
    assert high / low >= least * (1 - NEAR)


def test_what_has_no_logarithm_is_not_in_a_domain() -> None:
    low, high = layout.extent([0.0, 5.0])
    assert 4 < low < 5 < high < 6
    assert layout.extent([]) == layout.extent([1.0])


@given(values, st.integers(3, 14))
def test_an_axis_has_three_round_marks_or_more(known: list[float], most: int) -> None:
    low, high = domain = layout.extent(known)
    found = layout.ticks(domain, most)
    assert len(found) >= 3
    assert len(found) <= max(most, 8)
    assert found == sorted(set(found))
    assert low <= found[0] and found[-1] <= high
    for value in found:
        digits = f"{value:.12e}".split("e")[0].rstrip("0").replace(".", "")
        assert len(digits) <= 3, value


def test_marks_are_powers_of_ten_where_these_are_many() -> None:
    assert layout.ticks((0.5, 60.0)) == [0.5, 1, 2, 5, 10, 20, 50]
    assert layout.ticks((1e-9, 1.0), 12) == [float(f"1e{p}") for p in range(-9, 1)]
    assert layout.ticks((95.0, 106.0)) == [95, 100, 105]


@given(
    st.lists(st.integers(1, 2**30), min_size=2, max_size=60, unique=True).map(sorted),
    st.floats(100, 900),
)
def test_marked_sizes_are_far_enough_apart(sizes: list[int], length: float) -> None:
    found = layout.size_ticks(sizes, length, 40)
    assert found
    assert all(sizes[0] <= size <= sizes[-1] for size in found)
    at = [layout.position(size, (sizes[0], sizes[-1]), length) for size in found]
    if len(found) > 2:
        assert min(b - a for a, b in pairwise(at)) >= 40 - NEAR
        assert found == sizes or all(size & (size - 1) == 0 for size in found)


def test_all_sizes_are_marked_if_there_is_room() -> None:
    assert layout.size_ticks([256, 1000, 2048], 300) == [256, 1000, 2048]
    assert layout.size_ticks([1000, 1024, 2048, 4096], 300) == [1024, 2048, 4096]


@given(values, st.floats(50, 500))
def test_a_value_is_where_its_place_says(known: list[float], length: float) -> None:
    domain = layout.extent(known)
    for value in known:
        place = layout.position(value, domain, length)
        assert 0 <= place <= length
        assert math.isclose(layout.value_at(place, domain, length), value, rel_tol=1e-9)


@given(values)
def test_labels_beside_an_axis_do_not_overlap(known: list[float]) -> None:
    domain, height = layout.extent(known), 14.0 * (len(known) + 3)
    found = layout.labelled(known, domain, height)
    at = sorted(layout.position(value, domain, height) for value in found)
    gaps = [b - a for a, b in pairwise(at)]
    assert min(gaps, default=layout.NAME_HEIGHT) >= layout.NAME_HEIGHT - NEAR
