"""What follows from two ratios."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.optional import present
from support.records import in_turns

from matbench.analysis.statistics import ComparisonPlan, compare_samples
from matbench.features.history.commits import Ratio


def test_widths_are_combined_by_their_squares() -> None:
    root = math.sqrt(2)
    assert Ratio(2, 4, 8).over(Ratio(1, 2, 4)) == pytest.approx((2 * 2**-root, 2, 2 * 2**root))
    assert Ratio(2, 4, 8).over(Ratio(3, 3, 3)) == pytest.approx((2 / 3, 4 / 3, 8 / 3))
    assert Ratio(4, 4, 4).over(Ratio(1, 2, 8)) == pytest.approx((0.5, 2, 4))
    assert Ratio(0.5, 1, 4).inverse() == (0.25, 1, 2)


def test_it_holds_as_often_as_its_parts() -> None:
    """Of 400 quotients of measured ratios, 99.5% or more hold the true one."""
    generator = np.random.default_rng(1)

    def measured(ratio: float) -> Ratio:
        a, b = generator.normal(1, 0.03, (2, 48))
        return present(Ratio.of(in_turns(ComparisonPlan(looks=(48,)).decide(a, b * ratio, 0))))

    quotients = [measured(1.56).over(measured(1.2)) for _ in range(400)]
    assert sum(q.low <= 1.3 <= q.high for q in quotients) >= 398
    assert np.median([q.high / q.low for q in quotients]) < 1.1


def test_without_an_interval_there_is_none() -> None:
    assert Ratio.of(in_turns(None)) is None
    assert Ratio.of(in_turns(compare_samples([1.0], [2.0]))) is None
