"""Notes about synthetic samples, and which of them matter."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from support.noise import Vector, autocorrelated, times

from matbench.analysis.sample_notes import matters, notes

# Which notes are made


def said(samples: Vector | list[float]) -> str:
    return "; ".join(notes(samples))


def test_outliers_are_counted() -> None:
    samples = times(np.random.default_rng(0).normal(0, 1, 60), 0.005)
    samples[[7, 30]] *= 1.3, 2
    assert said(samples).startswith("2 of 60 samples are outliers (up to 1.99 × the")
    samples[30] = samples[31]
    assert said(samples).startswith("1 of 60 samples is an outlier (up to 1.31 × the")


def test_an_outlier_is_three_interquartile_ranges_beyond_the_quartiles() -> None:
    """Of 100 samples, 100,000 to 100,099 ns and one more: quartiles 50 apart, widened by 2%."""
    samples = [100_000.0 + 40 * i for i in range(100)]
    quartile, between = 102_980.0, 2_000.0
    assert "outlier" not in said([*samples, quartile + 2.9 * 1.02 * between])
    assert "outlier" in said([*samples, quartile + 3.3 * 1.02 * between])


def test_one_spike_among_equal_samples_is_an_outlier() -> None:
    assert (
        said([10240.0] * 39 + [20480.0]) == "1 of 40 samples is an outlier (up to 2 × the median)"
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_drift_is_detected(sign: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        slope = sign * 0.04 * np.arange(40) / 40
        found = said(1e6 * (1 + slope + 0.01 * rng.normal(0, 1, 40)))
        assert f"drifting: {'+' if sign > 0 else '-'}" in found


def test_ten_samples_that_only_rise_are_drifting() -> None:
    assert "drifting: +" in said([100.0 + i for i in range(10)])


def test_a_drift_too_small_to_matter_is_not_mentioned() -> None:
    assert "drifting" not in said([1e6 + i for i in range(100)])


def test_autocorrelation_is_detected() -> None:
    rng = np.random.default_rng(0)
    found = [said(times(autocorrelated(rng, 100), 0.01)) for _ in range(100)]
    assert sum("autocorrelated: r = 0." in text for text in found) >= 98


def test_alternating_samples_are_autocorrelated() -> None:
    samples = [1e6 + 1e4 * (i % 2) + 10 * (i * 7 % 11) for i in range(40)]
    assert "autocorrelated: r = -0." in said(samples)
    assert "too wide" in said(samples)


def test_two_modes_are_detected() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        mode = np.where(rng.random(60) < 0.4, 1.05, 1.0)
        found = said(1e6 * mode * (1 + 0.005 * rng.normal(0, 1, 60)))
        assert "two modes: " in found
        assert "1.05 times" in found


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("normal", lambda rng, n: times(rng.normal(0, 1, n), 0.005)),
        ("uniform", lambda rng, n: times(rng.random(n), 0.02)),
        ("steps of 32 ns", lambda rng, n: np.round(rng.normal(1e4, 50, n) / 32) * 32),
        ("steps of 1 µs", lambda rng, n: np.round(rng.normal(1e4, 300, n), -3)),
        ("two values", lambda rng, n: np.where(rng.random(n) < 0.1, 10240.0, 11264.0)),
    ],
)  # fmt: skip
def test_false_alarms_are_rare(name: str, draw: Callable[..., Vector]) -> None:
    rng = np.random.default_rng(3)
    found = [notes(draw(rng, count)) for count in (10, 20, 50) for _ in range(400)]
    alarms = [note for note in found if note]
    assert len(alarms) <= 0.01 * len(found), alarms


@pytest.mark.parametrize("samples", [[], [5.0], [1.0, 9.0, 5.0], [10240.0] * 50])
def test_few_or_equal_samples_show_no_pattern(samples: list[float]) -> None:
    assert notes(samples) == ()


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -3.0])
def test_samples_that_are_no_times_are_mentioned(bad: float) -> None:
    assert notes([1.0] * 11 + [bad]) == ("1 of 12 samples are not positive and finite",)


# Which notes matter


@pytest.mark.parametrize(
    ("note", "half_width", "expected"),
    [
        ("89 of 8902 samples are outliers (up to 14.3 of the median)", 0.001, False),
        ("1 of 10 samples is an outlier (up to 1.01 × the median)", 0.5, False),
        ("drifting: +0.9% from the first to the last third of the samples", 0.001, False),
        ("drifting: -1.0% from the first to the last third of the samples", 0.001, True),
        ("drifting: -4.0% from the first to the last third of the samples", 0.05, False),
        ("autocorrelated: r = 0.23 from sample to sample, so the interval is too narrow", 0.001,
         False),
        ("autocorrelated: r = 0.60 from sample to sample, so the interval is too narrow", 0.006,
         True),
        ("autocorrelated: r = 0.60 from sample to sample, so the interval is too narrow", 0.02,
         False),
        ("autocorrelated: r = 1.00 from sample to sample, so the interval is too narrow", 0.001,
         True),
        ("autocorrelated: r = -0.90 from sample to sample, so the interval is too wide", 0.006,
         False),
        ("two modes: 45% of the samples take 1.87 times as long as the others", 0.001, True),
        ("two modes: 20% of the samples take 1.87 times as long as the others", 0.001, False),
        ("two modes: 55% of the samples take 1.005 times as long as the others", 0.001, False),
        ("two modes: 55% of the samples take 1.04 times as long as the others", 0.1, False),
        ("clocks throttled during sampling: SwPowerCap", 0.001, True),
        ("not finite, so recorded as unknown: median_ns (nan)", None, True),
        ("drifting: +7.5% from the first to the last third of the samples", math.inf, True),
    ],
)  # fmt: skip
def test_a_note_matters_where_it_may_move_the_median(
    note: str, half_width: float | None, expected: bool
) -> None:
    assert matters(note, half_width) == expected


def test_every_note_that_is_made_is_recognised() -> None:
    """A note with unknown wording would always be shown."""
    rng = np.random.default_rng(3)
    steady = rng.normal(1000, 1, 400)
    spiked = np.append(steady, 5000)
    mostly = np.where(rng.random(400) < 0.2, 2000, 1000) + rng.normal(0, 1, 400)
    creeping = steady + np.linspace(0, 8, 400)
    for samples, word in ((spiked, "outlier"), (creeping, "drifting"), (mostly, "two modes")):
        (note,) = [note for note in notes(samples) if word in note]
        assert not matters(note, 0.001)
    (note,) = [n for n in notes(creeping) if "autocorrelated" in n]
    assert not matters(note, 0.0)
    assert matters("3 of 9 samples are not positive and finite", 0.001)
