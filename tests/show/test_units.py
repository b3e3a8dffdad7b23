"""Readable numbers: one unit per column, ratios in words, a dash for unknown values."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matbench.show import units

NO_NUMBERS = (None, math.nan, math.inf)


@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        ([0.0000005], ["0.000500 µs"]),
        ([0.00001241], ["0.0124 µs"]),
        ([0.000802, 0.0010315], ["0.802 µs", "1.032 µs"]),
        ([0.0125, 0.025], ["12.50 µs", "25.00 µs"]),
        ([0.2561, 0.4989], ["256.1 µs", "498.9 µs"]),
        ([9.612, 90], ["9.612 ms", "90.000 ms"]),
        ([9.612, 1523], ["9.61 ms", "1523.00 ms"]),
        ([1234.5], ["1.234 s"]),
    ],
)
def test_times_of_a_column_have_one_unit(ms: list[float], expected: list[str]) -> None:
    time = units.durations(1e6 * value for value in ms)
    assert [time(1e6 * value) for value in ms] == expected
    assert units.duration(1e6 * ms[0]) == units.durations([1e6 * ms[0]])(1e6 * ms[0])


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        (units.percent, 0.01, "1.0%"),
        (units.percent, 0.31, "31%"),
        (units.percent, 0.0004, "<0.1%"),
        (units.percent, 0.0, "0.0%"),
        (units.percent, 12.0, "12.00×"),
        (units.share, 1.0834, "108.3%"),
        (units.times, 2.0, "2.00×"),
        (units.times, 3905.2, "3,905×"),
        (units.times, 2e7, "2.0e+07×"),
        (units.error, 2.2e-6, "2.2e-6"),
        (units.error, 2.8e1, "2.8e1"),
        (units.error, 0.0, "0"),
        (units.count, 1048576, "1,048,576"),
        (units.number, 0.012345, "0.0123"),
        (units.number, 123456.7, "123,457"),
        (units.number, 0.0, "0"),
        (units.number, 1e-9, "1.00e-09"),
        (units.bytes_, 41234, "41.2 kB"),
        (units.bytes_, 12, "12.0 B"),
        (units.bandwidth, 4.3e12, "4.30 TB/s"),
        (units.bandwidth, 4.3e17, "430 PB/s"),
    ],
)
def test_numbers_by_form(form: Callable[[float | None], str], value: float, expected: str) -> None:
    assert form(value) == expected
    assert [form(nothing) for nothing in NO_NUMBERS] == [units.UNKNOWN] * 3


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (0.068, "14.7 × faster"),
        (1.02, "1.02 × slower"),
        (1.004, "1.004 × slower"),
        (1.01, "1.01 × slower"),
        (0.5, "2.00 × faster"),
        (1.4, "1.40 × slower"),
        (123.4, "123 × slower"),
        (12345.6, "12,346 × slower"),
        (1e6, "1.0e+06 × slower"),
        (5e-9, "2.0e+08 × faster"),
        (1.0, "1.000 ×"),
        (0.99999, "1.000 × faster"),
        (0.0, "∞ × faster"),
        (None, units.UNKNOWN),
        (math.nan, units.UNKNOWN),
    ],
)
def test_ratios_are_said_the_way_people_say_them(ratio: float | None, expected: str) -> None:
    assert units.speedup(ratio) == expected


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((0.067, 0.069), "14.5 to 14.9 × faster"),
        ((1.01, 1.02), "1.01 to 1.02 × slower"),
        ((0.99, 1.02), "1.01 × faster to 1.02 × slower"),
        ((0.5, 0.5), "2.00 × faster"),
        ((1.0, 1.02), "1.000 × to 1.02 × slower"),
        (None, units.UNKNOWN),
    ],
)
def test_an_interval_is_told_alike(interval: tuple[float, float] | None, expected: str) -> None:
    assert units.speedups(interval) == expected


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


@given(st.floats())
def test_every_number_has_a_form(value: float) -> None:
    for form in (
        units.duration, units.percent, units.share, units.times, units.speedup, units.error,
        units.count, units.number, units.bytes_, units.bandwidth,
        units.rates([value], "FLOP/s"), units.rate_column([value], "FLOP/s")[1],
    ):  # fmt: skip
        assert form(value)
    assert units.speedups((value, value))
