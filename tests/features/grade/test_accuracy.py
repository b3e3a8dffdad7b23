"""Grades from errors of simulated products whose arithmetic is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from support.golden import TableRegression
from support.optional import present

from matbench.features.grade import accuracy
from matbench.features.grade.accuracy import Errors
from matbench.features.grade.record import Algorithm, Growth
from matbench.model import UNIT_ROUNDOFF, Storage
from matbench.workloads import rounding

RANDOM = np.random.default_rng(5)


def points(slope: float, noise: float = 0.02, seed: int = 5) -> list[tuple[int, float]]:
    random = np.random.default_rng(seed)
    return [
        (K, 3.0 * K**slope * float(np.exp(noise * random.standard_normal())))
        for K in (16, 32, 64, 128, 256, 512, 1024)
        for _ in range(4)
    ]


@pytest.mark.parametrize(
    ("slope", "verdict"), [(0.0, "at most linear"), (1.0, "at most linear"), (1.5, "faster")]
)
def test_growth_is_the_slope_of_the_logarithms(slope: float, verdict: str) -> None:
    found = accuracy.growth(points(slope), 28)
    assert found.verdict == verdict
    assert found.slope == pytest.approx(slope, abs=0.02)
    low, high = present(found.interval)
    assert low < slope + 0.01
    assert high > slope - 0.01
    assert high - low < 0.05
    assert found.sizes[0] == 16


def test_growth_that_cannot_be_told_is_unclear() -> None:
    found = accuracy.growth(points(1.1, noise=1.5), 28)
    assert found.verdict == "unclear"
    assert found.interval is not None
    assert found.interval[0] < 1.15 < found.interval[1]


def test_errors_that_are_not_finite_have_no_growth() -> None:
    found = accuracy.growth([(16, 1.0), (32, math.inf)], 2)
    assert (found.verdict, found.slope, found.reason) == ("unclear", None, "C is not finite")


def test_the_interval_holds_the_slope_about_as_often_as_it_says() -> None:
    found = (accuracy.growth(points(0.5, 0.3, seed), 28).interval for seed in range(200))
    held = sum(low <= 0.5 <= high for low, high in map(present, found))
    assert 175 <= held <= 200


def test_a_grade_is_the_tightest_bound(table_regression: TableRegression) -> None:
    """Of errors relative to three sizes."""

    def letter(errors: str) -> str:
        sizes = [float(word) for word in errors.split()]
        found = accuracy.bounds([Errors(1, 0.5, 0.5, 0.5), Errors(1, *sizes)], 2, "float32")
        assert found.probes == 2
        return found.verdict

    table_regression("letters.txt", letter)


def test_a_bound_is_linear_in_K() -> None:
    assert accuracy.bounds([Errors(64, 640.0, 1.0, 1.0)], 1, "float32").verdict == "A"
    assert accuracy.bounds([Errors(1, 640.0, 1.0, 1.0)], 1, "float32").verdict == "B"


@pytest.mark.parametrize(("dropped", "bits"), [(0, 24), (2, 22), (13, 11), (16, 8)])
def test_bits_are_those_to_which_both_factors_were_rounded(dropped: int, bits: int) -> None:
    random = np.random.default_rng(dropped)  # of its own: tests run in any order
    A, B = 0.5 + random.random((64, 1)) / 2, 0.5 + random.random((1, 64)) / 2
    A, B = rounding.nearest(A, "float32"), rounding.nearest(B, "float32")
    unit = 2.0 ** (dropped - 24)
    C = rounding.nearest((np.rint(A / unit) * unit) @ (np.rint(B / unit) * unit), "float32")
    found = accuracy.bounds([accuracy.errors(C, A @ B, A, B, "float32")], 1, "float32")
    assert found.bits == bits


A_BOUND = accuracy.bounds([Errors(1, 1.0, 1.0, 1.0)], 1, "float32")
C_BOUND = accuracy.bounds([Errors(1, 1e9, 1e9, 1.0)], 1, "float32")


def test_growth_and_zeros_can_lower_a_grade() -> None:
    linear, faster = Growth(verdict="at most linear"), Growth(verdict="faster")
    classical, other = Algorithm(verdict="classical"), Algorithm(verdict="Strassen-like")
    assert accuracy.letter(A_BOUND, linear, classical) == "A"
    assert accuracy.letter(A_BOUND, faster, classical) == "unclear"
    assert accuracy.letter(A_BOUND, Growth(), classical) == "unclear"
    assert accuracy.letter(A_BOUND, linear, other) == "C"
    assert accuracy.letter(C_BOUND, faster, other) == "C"
    assert accuracy.letter(None, linear, classical) == "unclear"


def test_errors_are_relative_to_three_sizes() -> None:
    A, B = np.array([[1.0, 2.0], [8.0, 4.0]]), np.array([[1.0], [0.5]])
    R = A @ B
    u = UNIT_ROUNDOFF["float32"]
    C = R + np.array([[2 * u], [0.0]])
    found = accuracy.errors(C, R, A, B, "float32")
    assert found == Errors(2, 2 / 2, 2 / (2 * 2), 2 / (2 * 8))


def test_zero_from_zeros_is_no_error_and_anything_else_is() -> None:
    A, B = np.zeros((1, 2)), np.ones((2, 1))
    assert accuracy.errors(np.zeros((1, 1)), A @ B, A, B, "float32").by_element == 0
    assert accuracy.errors(np.full((1, 1), 1e-30), A @ B, A, B, "float32").by_element == math.inf
    assert accuracy.errors(np.full((1, 1), np.nan), A @ B, A, B, "float32").by_element == math.inf


@pytest.mark.parametrize(("storage", "kind"), [("float32", np.float32), ("float16", np.float16)])
def test_rounding_is_that_of_the_type(storage: Storage, kind: type) -> None:
    values = np.concatenate(
        [
            RANDOM.standard_normal(4000) * 2.0 ** RANDOM.integers(-40, 40, 4000),
            [0.0, -0.0, 65519.0, 65520.0, 2.0**-25, 3 * 2.0**-26, np.inf, -np.inf, np.nan],
        ]
    )
    with np.errstate(over="ignore"):
        wanted = values.astype(kind).astype(np.float64)
    np.testing.assert_array_equal(rounding.nearest(values, storage), wanted)
    np.testing.assert_array_equal(rounding.encoded(values, storage), wanted)


def test_ulps_are_those_of_the_exact_result() -> None:
    R = np.array([1.0, 2.0, 3.0 + 2.0**-25])
    C = np.array([1.0, 2.0 + 2.0**-21, 3.0])
    found = accuracy.ulps(C, R, "float32", "uniform")
    assert (found.largest, found.probes) == (2.0, 3)
    assert found.mean == pytest.approx((0 + 2 + 0.125) / 3)
    assert found.correctly_rounded == pytest.approx(2 / 3)
    assert accuracy.ulps(np.array([np.nan]), np.ones(1), "float32", "x").largest is None


@pytest.mark.parametrize("bits", [8, 11, 22, 23, 24])
def test_bits_that_are_read_are_counted(bits: int) -> None:
    given = rounding.nearest(1 + RANDOM.random(4000), "float32")
    unit = 2.0 ** (1 - bits)
    assert accuracy.read_bits(np.rint(given / unit) * unit, given, "float32") == bits
    assert accuracy.read_bits(np.floor(given / unit / 2) * unit * 2, given, "float32") < bits


def test_nothing_read_is_no_bits() -> None:
    ones: Callable[[], np.ndarray] = lambda: np.ones(3)  # noqa: E731
    assert accuracy.read_bits(ones() * np.nan, ones(), "float32") == 0
    assert accuracy.read_bits(ones() * np.inf, ones(), "float32") == 0


def test_a_mistaken_class_is_named_without_its_sign() -> None:
    inf, nan = np.inf, np.nan
    R = np.array([1.0, inf, -inf, nan, inf])
    assert accuracy.mistaken(R, R) is None
    assert accuracy.mistaken(np.array([1.0, nan, nan, nan, inf]), R) == "NaN instead of Inf"
    assert accuracy.mistaken(np.array([1.0, inf, -inf, 0.0, inf]), R) == "finite instead of NaN"
    assert accuracy.mistaken(np.array([1.0, -inf, -inf, nan, inf]), R) == "Inf of the wrong sign"
