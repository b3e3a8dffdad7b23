"""Readable numbers: one unit per column, ratios in words, a dash for unknown values."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import TableRegression
from support.optional import present

from matbench.show import units


def told(question: str) -> str:
    """Numbers in a form: `speedup 0.5`. The times of a column, in ms, have one unit."""
    form, *words = question.split()
    numbers = [None if word == "None" else float(word) for word in words]
    if form == "durations":
        times_ns = [1e6 * present(ms) for ms in numbers]
        assert units.duration(times_ns[0]) == units.durations(times_ns[:1])(times_ns[0])
        return ", ".join(map(units.durations(times_ns), times_ns))
    if form == "speedups":
        low, high = numbers
        return units.speedups(None if low is None or high is None else (low, high))
    found: str = getattr(units, form)(*numbers)
    return found


def test_numbers_are_said_the_way_people_say_them(table_regression: TableRegression) -> None:
    table_regression("units.txt", told)


def test_rates_of_an_explanation_share_the_unit_of_the_largest() -> None:
    rate = units.rates([1e12, 5.14e13, None], "FLOP/s")
    assert [rate(5.14e13), rate(2e9), rate(0.0), rate(None)] == [
        "51.4 TFLOP/s", "0.00200 TFLOP/s", "0 TFLOP/s", units.UNKNOWN,
    ]  # fmt: skip


def test_a_column_of_rates_has_one_unit() -> None:
    title, rate = units.rate_column([7.81e12, 5.24e12, None], "FLOP/s")
    assert (title, rate(7.81e12), rate(None)) == ("TFLOP/s", "7.81", units.UNKNOWN)
    title, rate = units.rate_column([73.992e9, 0.133e9], "B/s")
    assert (title, rate(73.992e9), rate(0.133e9)) == ("GB/s", "73.992", "0.133")
    assert units.rate_column([], "FLOP/s")[0] == "GFLOP/s"


FORMS: list[Callable[[float | None], str]] = [
    units.percent, units.share, units.times, units.error, units.count, units.number, units.bytes_,
    units.bandwidth, units.duration, units.speedup,
]  # fmt: skip


@given(st.floats())
def test_every_number_has_a_form(value: float) -> None:
    of_column = units.rates([value], "FLOP/s"), units.rate_column([value], "FLOP/s")[1]
    assert all(form(value) for form in (*FORMS, *of_column))
    assert units.speedups((value, value))


@pytest.mark.parametrize("nothing", [None, math.nan, math.inf])
def test_what_is_no_number_is_a_dash(nothing: float | None) -> None:
    assert {form(nothing) for form in FORMS[:8]} == {units.UNKNOWN}
