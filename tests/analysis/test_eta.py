"""How long a sweep still takes: what is known of similar cases, and nothing beyond that."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.optional import present
from support.records import outcome

from matbench.analysis.eta import Estimate, Kind
from matbench.model import Problem

kinds = st.builds(
    Kind,
    st.sampled_from(["matmul", "dot"]),
    st.sampled_from([0, 2 * 10**3, 2 * 10**6]),
    st.sampled_from(["a GPU", "a CPU"]),
    st.sampled_from(["tiled", "kahan", "naive"]),
)
seconds = st.floats(0.001, 1000)
taken = st.lists(st.tuples(kinds, seconds), min_size=1, max_size=20)
lefts = st.dictionaries(kinds, st.integers(1, 50), min_size=1, max_size=10)


def known(cases: list[tuple[Kind, float]]) -> Estimate:
    estimate = Estimate()
    for kind, taken_s in cases:
        estimate.add(kind, taken_s)
    return estimate


def at(n: int, kernel: str = "tiled", device: str = "a GPU") -> Kind:
    return Kind("matmul", 2 * n**3, device, kernel)


@given(lefts)
def test_nothing_is_said_before_a_case_is_done(left: dict[Kind, int]) -> None:
    assert Estimate().left_s(left) is None


@given(taken)
def test_nothing_is_said_when_nothing_is_left(cases: list[tuple[Kind, float]]) -> None:
    estimate = known(cases)
    assert estimate.left_s({}) is None
    assert estimate.left_s(Counter({cases[0][0]: 0})) is None


@given(taken, lefts, st.sampled_from([0.25, 2.0, 16.0]))
def test_the_estimate_is_a_sum_that_scales_with_the_times(
    cases: list[tuple[Kind, float]], left: dict[Kind, int], factor: float
) -> None:
    estimate = known(cases)
    each = {kind: estimate.case_s(kind) for kind in left}
    found = estimate.left_s(left)
    if None in each.values():
        assert found is None
        return
    assert found == pytest.approx(sum(many * (each[kind] or 0) for kind, many in left.items()))
    scaled = known([(kind, factor * taken_s) for kind, taken_s in cases])
    assert scaled.left_s(left) == pytest.approx(factor * present(found))


@given(taken, st.data(), st.floats(0, 5000))
def test_the_current_case_counts_down_and_stops_there(
    cases: list[tuple[Kind, float]], data: st.DataObject, spent_s: float
) -> None:
    now = data.draw(st.sampled_from([kind for kind, _ in cases]))
    estimate, left = known(cases), {now: 3}
    whole, each = estimate.left_s(left), estimate.case_s(now)
    assert whole is not None
    assert each is not None
    found = estimate.left_s(left, [(now, spent_s)])
    assert found == pytest.approx(whole - min(spent_s, each))
    assert present(found) >= 2 * each * 0.999  # the other two are still to come


def test_large_cases_are_not_taken_for_small_ones() -> None:
    """A mean of all would be 50 times too small."""
    estimate = known([(at(64), 0.1)] * 99 + [(at(4096), 10.0)])
    assert estimate.left_s({at(4096): 10}) == pytest.approx(100)
    assert estimate.left_s({at(64): 10}) == pytest.approx(1)


def test_the_most_similar_cases_count() -> None:
    estimate = known([(at(64, "naive"), 9.0), (at(64, "naive"), 9.0), (at(64), 1.0)])
    for _ in range(4):
        estimate.add(at(64, "numpy", "a CPU"), 50.0)
    assert estimate.case_s(at(64)) == 1.0  # the kernel's own
    assert estimate.case_s(at(64, "kahan")) == 9.0  # on this device
    assert estimate.case_s(at(64, "kahan", "another")) == 50.0  # any
    assert estimate.case_s(at(65)) is None
    assert estimate.case_s(at(64)._replace(workload="dot")) is None


def test_the_first_case_of_a_size_which_prepares_its_inputs_is_soon_outvoted() -> None:
    estimate = known([(at(64), 30.0), (at(64), 1.0)])
    assert estimate.case_s(at(64)) == 1.0


def test_the_kind_of_a_case_has_all_that_matters() -> None:
    case = outcome("tiled", problem=Problem(10, 20, 30)).case
    assert Kind.from_case(case) == Kind("matmul", 2 * 10 * 20 * 30, "opencl A Processor", "tiled")
    other = outcome("tiled", problem=Problem(1, 100, 1, workload="dot", inputs="signed")).case
    assert Kind.from_case(other).workload == "dot"
    assert math.isfinite(Kind.from_case(other).work)


def test_devices_that_work_at_the_same_time_need_less() -> None:
    now = at(4)
    estimate = known([(now, 10.0)])
    assert estimate.left_s({now: 4}, [(now, 4.0)]) == pytest.approx(36)
    assert estimate.left_s({now: 4}, [(now, 4.0), (now, 2.0)]) == pytest.approx(34)  # in rounds
    assert estimate.left_s({now: 4}, [(now, 4.0), (now, 2.0)], 2) == pytest.approx(17)
