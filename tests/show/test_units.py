"""Readable numbers: one unit per column, ratios in words, a dash for unknown values;
and reasons."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import any_record, toml
from support.golden import TableRegression
from support.optional import present
from support.tables import outcome

from matbench.model import Skip, SkipKind
from matbench.records.outcome import Outcome
from matbench.show import units
from matbench.show.reasons import kind, outcome_reason, skip_reason


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


# Reasons in words: what skipped cases lack, and why sides of a comparison have no times


def words(question: str) -> str:
    """A reason to skip, given in TOML."""
    skip = msgspec.convert(toml.read(question), Skip)
    needing = msgspec.structs.replace(skip, needs=f"{skip.needs}\x1b")
    assert "\x1b" not in outcome_reason(outcome("x", status="skipped", skip=needing))
    return skip_reason(skip)


def test_what_is_missing_in_words(table_regression: TableRegression) -> None:
    table_regression("reasons.txt", words)


def skipped(what: SkipKind, needs: str, **given: int | float | str) -> Outcome:
    return outcome("x", status="skipped", skip=Skip(what, needs, given))


@pytest.mark.parametrize(
    "other",
    [
        skipped("limit", "N <= 8", N=9),
        skipped("condition", "N <= 9", N=9),
        skipped("condition", "N <= 8", M=9),
        skipped("condition", "N <= 8", N="9"),
        outcome("x", status="failed", reason="needs N <= 8 (N = 9)"),
    ],
)
def test_those_that_lack_something_else_are_of_another_kind(other: Outcome) -> None:
    assert kind(skipped("condition", "N <= 8", N=9)) != kind(other)
    assert kind(skipped("condition", "N <= 8", N=9)) == kind(skipped("condition", "N <= 8", N=10))


@given(any_record.outcomes())
def test_any_record_has_words(plain: Any) -> None:
    """Also a skip that says less than ours: records may be of other programs."""
    skip = plain.skip
    assert skip is None or isinstance(skip_reason(skip, skip), str)
    assert isinstance(kind(plain), tuple)
