"""FP8 and INT8 operands: right kernels are accepted, and each usual mistake is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.eight_bits import E4M3, MISTAKES, ROWS, VARIANTS, Variant
from support.optional import present

from matbench.backends import Backend
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.measure import rounding
from matbench.measure.options import Options
from matbench.measure.session import Session
from matbench.model import Inputs, Problem, Storage
from matbench.records.outcome import Outcome
from matbench.workloads import MATMUL


@pytest.fixture(scope="module")
def checks(backend: Backend) -> Session:
    return Session(backend, Cache(), Options(timed=False))


def measured(session: Session, source: str, problem: Problem, folder: Path) -> Outcome:
    file = folder / "eight-bits.cu"
    file.write_text(source, encoding="utf-8")
    case = sweep.case(catalogue.load(file), problem, {}, session.backend.info)
    assert case.skip is None, case.skip
    return session.measure(case)


def at(size: str, alpha: float = 1.0, inputs: Inputs = "signed") -> Problem:
    [problem] = parse_problems(size, MATMUL, inputs)
    return Problem(problem.M, problem.N, problem.K, inputs=inputs, alpha=alpha)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_right_kernel_is_accepted(name: str, checks: Session, tmp_path: Path) -> None:
    for size in ("1", "40x300x400", "17x129x255"):
        outcome = measured(checks, VARIANTS[name].source, at(size), tmp_path)
        assert outcome.status == "measured", outcome.reason


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_refused(name: str, checks: Session, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    problem = at(mistake.size, -2.0 if name == "no alpha" else 1.0, mistake.inputs)
    twin = measured(checks, mistake.variant.source, problem, tmp_path)
    assert twin.status == "measured", twin.reason
    outcome = measured(checks, mistake.source, problem, tmp_path)
    assert outcome.status == "wrong", f"accepted: {name}"


def test_there_are_enough_mistakes() -> None:
    assert len(MISTAKES) >= 30
    assert len({mistake.source for mistake in MISTAKES.values()}) == len(MISTAKES)


@example(problem=Problem(33, 290, 400, inputs="normal"), name="scales of blocks")
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    problem=st.builds(
        Problem,
        st.integers(1, 70),
        st.integers(1, 300),
        st.integers(1, 600),
        inputs=st.sampled_from(["uniform", "signed", "normal"]),
        seed=st.integers(0, 1000),
        alpha=st.sampled_from([1.0, -2.0, 3.0]),
    ),
    name=st.sampled_from(sorted(VARIANTS)),
)
def test_no_right_kernel_is_refused(
    problem: Problem, name: str, checks: Session, tmp_path: Path
) -> None:
    outcome = measured(checks, VARIANTS[name].source, problem, tmp_path)
    assert outcome.status == "measured", outcome.reason


def test_errors_are_those_of_sums_and_not_of_rounded_inputs(
    checks: Session, tmp_path: Path
) -> None:
    outcome = measured(checks, E4M3.source, at("64x64x1000"), tmp_path)
    assert present(present(outcome.accuracy).avg_rel_err) < 1e-5
    outcome = measured(checks, ROWS.source, at("64x64x1000"), tmp_path)
    assert present(present(outcome.accuracy).avg_rel_err) < 1e-5


def test_whole_numbers_have_no_errors(checks: Session, tmp_path: Path) -> None:
    source = Variant("int8", result="int").source
    accuracy = present(measured(checks, source, at("64x64x1000"), tmp_path).accuracy)
    assert (accuracy.max_rel_err, accuracy.bound_ratio) == (0, 0)


# -- the types ----------------------------------------------------------------------------------


def test_e5m2_is_the_upper_half_of_float16() -> None:
    codes = np.arange(256, dtype=np.uint8)
    wanted = (codes.astype(np.uint16) << 8).view(np.float16).astype(np.float64)
    np.testing.assert_array_equal(rounding.decoded(codes, "e5m2"), wanted)


def test_the_numbers_of_e4m3() -> None:
    """Those that the specification lists: the largest, the smallest of both kinds, NaN."""
    codes = np.array([0x00, 0x01, 0x07, 0x08, 0x38, 0x7E, 0x7F, 0x80, 0xB8, 0xFE], np.uint8)
    wanted = [0, 2**-9, 7 * 2**-9, 2**-6, 1, 448, np.nan, -0.0, -1, -448]
    np.testing.assert_array_equal(rounding.decoded(codes, "e4m3"), wanted)


@pytest.mark.parametrize("storage", ["e4m3", "e5m2"])
def test_numbers_are_stored_as_the_nearest(storage: Storage) -> None:
    codes = np.arange(256, dtype=np.uint8)
    values = rounding.decoded(codes, storage)
    finite = np.isfinite(values)
    np.testing.assert_array_equal(rounding.encoded(values[finite], storage), codes[finite])
    assert np.isnan(rounding.decoded(rounding.encoded(np.array([np.nan]), storage), storage))
    ordered = np.unique(values[finite])
    between = np.random.default_rng(3).uniform(ordered[0], ordered[-1], 5000)
    nearest = np.abs(between[:, None] - ordered).min(axis=1)
    stored = rounding.decoded(rounding.encoded(between, storage), storage)
    np.testing.assert_array_equal(np.abs(stored - between), nearest)


def test_whole_numbers_are_limited_to_those_with_a_negative() -> None:
    given = np.array([-200.0, -127.5, -0.5, 0.5, 1.5, 126.6, 128.0])
    stored = rounding.encoded(given, "int8")
    assert stored.tolist() == [-127, -127, 0, 0, 2, 127, 127]
