"""Patterns in synthetic samples, and which of them matter."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
from support.noise import Vector, autocorrelated, times
from support.records import timing

from matbench.analysis import patterns
from matbench.analysis.patterns import Autocorrelation, Drift, Pattern, TwoModes, find_patterns
from matbench.analysis.ranking import patterns_in


def found(samples: Vector | list[float], half_width: float | None = None) -> list[Pattern]:
    return list(patterns.find_patterns(samples, half_width))


@pytest.mark.parametrize("sign", [1, -1])
def test_drift_is_detected(sign: int) -> None:
    rng = np.random.default_rng(0)
    slope = sign * 0.06 * np.arange(40) / 40
    for _ in range(50):
        [drift] = found(1e6 * (1 + slope + 0.01 * rng.normal(0, 1, 40)))
        assert isinstance(drift, Drift)
        assert drift.shift * sign == pytest.approx(0.04, abs=0.02)


def test_a_drift_matters_from_1_percent_if_it_exceeds_the_interval() -> None:
    """The medians of the thirds of 30 rising samples are 20 steps apart."""
    rising = [1e6 * (1 + 0.0006 * i) for i in range(30)]
    [drift] = found(rising)
    assert drift == Drift(cast(float, pytest.approx(1.0147 / 1.0027 - 1)))
    assert found(rising, 0.011) == found(rising, math.inf) == [drift]
    assert found(rising, 0.013) == []
    assert found([1e6 * (1 + 0.00045 * i) for i in range(30)]) == []


def test_ten_samples_that_only_rise_are_drifting() -> None:
    assert [type(pattern) for pattern in found([100.0 + i for i in range(10)])] == [Drift]


def test_autocorrelation_is_detected() -> None:
    rng = np.random.default_rng(0)
    samples = [times(autocorrelated(rng, 100), 0.001) for _ in range(100)]
    every = [pattern for x in samples for pattern in found(x, 0.006)]
    assert len(every) >= 98
    assert all(isinstance(pattern, Autocorrelation) for pattern in every)


@pytest.mark.parametrize(("half_width", "matters"), [(0.004, 0), (0.008, 1), (0.02, 0), (None, 0)])
def test_autocorrelation_matters_where_it_makes_a_narrow_interval_wide(
    half_width: float | None, matters: int
) -> None:
    """At r = 0.6 the interval of independent samples would be twice as wide."""
    rng = np.random.default_rng(8)
    samples = times(autocorrelated(rng, 400, 0.6), 0.001)
    assert len(found(samples, half_width)) == matters
    alternating = [1e6 + 1e4 * (i % 2) + 10 * (i * 7 % 11) for i in range(40)]
    assert not any(isinstance(one, Autocorrelation) for one in found(alternating, half_width))
    assert not [*find_patterns(samples, half_width, in_rounds=True)]


def test_samples_in_rounds_may_be_autocorrelated() -> None:
    """The interval then covers how rounds differ; the control has one round."""
    samples = tuple(times(autocorrelated(np.random.default_rng(8), 400, 0.6), 0.001))
    interval_ns = (1e6 * 0.992, 1e6 * 1.008)
    one = timing(samples_ns=samples, interval_ns=interval_ns)
    several = timing(samples_ns=samples, interval_ns=interval_ns, rounds=(200, 200))
    assert [type(pattern) for pattern in patterns_in(one)] == [Autocorrelation]
    assert patterns_in(several) == []


def modes(share: float, ratio: float) -> list[float]:
    """A hundred samples, alternating as long as both modes last."""
    rng = np.random.default_rng(3)
    slow = np.zeros(100)
    slow[: round(100 * share)] = 1
    return list(1e6 * (1 + (ratio - 1) * rng.permutation(slow)) * (1 + 1e-4 * rng.random(100)))


@pytest.mark.parametrize(
    ("share", "ratio", "half_width", "matters"),
    [
        (0.45, 1.87, 0.001, True),
        (0.55, 1.04, 0.001, True),
        (0.20, 1.87, 0.001, False),
        (0.80, 1.87, 0.001, False),
        (0.55, 1.008, 0.001, False),
        (0.55, 1.04, 0.1, False),
    ],
)
def test_two_modes_matter_if_both_are_frequent_and_far_apart(
    share: float, ratio: float, half_width: float, matters: bool
) -> None:
    wanted = [TwoModes(share, cast(float, pytest.approx(ratio, rel=1e-3)))]
    assert found(modes(share, ratio), half_width) == (wanted if matters else [])


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
    every = [found(draw(rng, count), 0.0099) for count in (10, 20, 50) for _ in range(400)]
    alarms = [pattern for pattern in every if pattern]
    assert len(alarms) <= 0.01 * len(every), alarms


@pytest.mark.parametrize(
    "samples", [[], [5.0], [1.0, 9.0, 5.0], [10240.0] * 50, [10240.0, 11264.0] * 20]
)
def test_few_or_equal_samples_or_neighbouring_ticks_show_no_pattern(samples: list[float]) -> None:
    assert found(samples) == []
