"""Drifts in synthetic samples, and which of them matter."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from support.noise import Vector, times

from matbench.analysis.statistics import drift


@pytest.mark.parametrize("sign", [1, -1])
def test_a_drift_is_detected(sign: int) -> None:
    rng = np.random.default_rng(0)
    slope = sign * 0.06 * np.arange(40) / 40
    for _ in range(50):
        found = drift(1e6 * (1 + slope + 0.01 * rng.normal(0, 1, 40)), None)
        assert found * sign == pytest.approx(0.04, abs=0.02)


def test_a_drift_matters_from_1_percent_if_it_exceeds_the_interval() -> None:
    """The medians of the thirds of 30 rising samples are 20 steps apart."""
    rising = [1e6 * (1 + 0.0006 * i) for i in range(30)]
    shift = pytest.approx(1.0147 / 1.0027 - 1)
    assert [drift(rising, share) for share in (None, 0.011, math.inf)] == [shift] * 3
    assert drift(rising, 0.013) == 0
    halves = [2.0] * 5 + [2.5] * 5 + [3.0] * 5
    assert (drift(halves, 0.49), drift(halves, 0.5)) == (0.5, 0)
    assert drift([1e6 * (1 + 0.00045 * i) for i in range(30)], None) == 0


def test_ten_samples_that_only_rise_are_drifting() -> None:
    assert drift([100.0 + i for i in range(10)], None) > 0
    assert drift([100.0 + i for i in range(9)], None) == 0


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
    every = [drift(draw(rng, count), 0.0099) for count in (10, 20, 50) for _ in range(400)]
    assert sum(shift != 0 for shift in every) <= 0.005 * len(every)


@pytest.mark.parametrize("samples", [[], [5.0], [1.0, 9.0, 5.0], [10240.0] * 50])
def test_few_or_equal_samples_do_not_drift(samples: list[float]) -> None:
    assert drift(samples, None) == 0
