"""Mann and Whitney's test against SciPy's."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matbench.analysis import rank_sum

#: With ties as with a coarse timer, and without.
VALUES = st.integers(1, 12).map(float) | st.floats(1e-3, 1e9)
SAMPLES = st.lists(VALUES, min_size=1, max_size=30).map(np.array)


def assert_as_scipy_finds_it(a: np.ndarray, b: np.ndarray) -> None:
    from scipy.stats import mannwhitneyu

    if a.min() == a.max() == b.min() == b.max():
        expected = 1.0  # SciPy divides by the variance of the ranks
    else:
        expected = float(mannwhitneyu(b, a, alternative="two-sided").pvalue)
    assert rank_sum.p_value(a, b) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@given(SAMPLES, SAMPLES)
def test_any_samples(a: np.ndarray, b: np.ndarray) -> None:
    assert_as_scipy_finds_it(a, b)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 40), (3, 8), (8, 8), (8, 9), (9, 9), (8, 500)])
@pytest.mark.parametrize("shift", [0, 0.5, 10])
def test_few_and_many(sizes: tuple[int, int], shift: float) -> None:
    random = np.random.default_rng(1)
    a, b = (random.normal(10, 1, size) for size in sizes)
    assert_as_scipy_finds_it(a, b + shift)
    assert_as_scipy_finds_it(b + shift, a)


def test_very_many_are_not_counted() -> None:
    a, b = np.arange(8) + 0.5, np.arange(20_000.0)
    assert 0 < rank_sum.p_value(a, b) < 1e-5


def test_a_comparison_does_not_wait_for_scipy() -> None:
    check = (
        "import sys; from matbench.analysis.statistics import compare_samples\n"
        "found = compare_samples([1.0, 2, 3] * 9, [4.0, 5, 6] * 9)\n"
        "assert found.verdict == 'SLOWER' and found.p_value < 1e-6, found\n"
        "sys.exit('scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
