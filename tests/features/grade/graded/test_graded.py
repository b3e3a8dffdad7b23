"""Kernels whose arithmetic is known are told apart: `expected.toml` has what must be said."""

from __future__ import annotations

from itertools import combinations

import pytest
from support.graded import (
    DEFAULT,
    EXPECTED,
    FOLDER,
    NOTHING,
    RANGES,
    graded,
    load,
    said,
    several,
    surprises,
)
from support.optional import some

from matbench import backends
from matbench.cache import Cache
from matbench.features.grade.multiplier import Multiplier
from matbench.measure.launcher import Float64
from matbench.measure.options import Options
from matbench.measure.session import Session

#: One of each kind: plain, of few bits, in parts, and in whole numbers.
KINDS = {
    "graded-in-order", "graded-tf32", "graded-bf16x3", "graded-chunks-8", "graded-strassen",
    "graded-fixed-24", "graded-split", "graded-kahan", "graded-flushes",
}  # fmt: skip
#: A grade must not take long.
MOST_LAUNCHES = 350
#: Runs are repeated where they may differ, which takes long on a CPU; on a GPU all are.
REPEATED = {"graded-atomics", "graded-split", "graded-in-order"}


@pytest.mark.parametrize("name", some(EXPECTED, *KINDS))
def test_a_kernel_is_described_as_it_is(
    name: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = 0
    multiply = Multiplier.multiply

    def counted(multiplier: Multiplier, A: Float64, B: Float64) -> Float64:
        nonlocal launches
        launches += 1
        return multiply(multiplier, A, B)

    monkeypatch.setattr(Multiplier, "multiply", counted)
    without = NOTHING if name in REPEATED else frozenset({"runs"})
    grade = graded(load(name), session, without=without)
    assert surprises(name, grade, without) == {}
    assert launches <= MOST_LAUNCHES


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXPECTED)
def test_a_kernel_is_described_as_it_is_on_a_gpu(name: str) -> None:
    session = Session(
        backends.open_backend(backends.devices("cuda")[0], Cache()), Cache(), Options(timed=False)
    )
    try:
        grade = graded(load(name), session)
    finally:
        session.close()
    assert surprises(name, grade) == {}


def test_no_two_are_expected_to_look_alike() -> None:
    rows = {name: DEFAULT | row for name, row in EXPECTED.items()}
    for one, other in combinations(rows, 2):
        apart = [
            key
            for key in DEFAULT
            if "any" not in (rows[one][key], rows[other][key])
            and (
                rows[one][key][1] < rows[other][key][0] or rows[other][key][1] < rows[one][key][0]
                if key in RANGES
                else not several(rows[one][key]) & several(rows[other][key])
            )
        ]
        assert apart, (one, other)


def test_there_are_enough_and_each_has_its_file() -> None:
    assert len(EXPECTED) >= 24
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(EXPECTED)


def test_a_wrong_expectation_is_noticed(session: Session) -> None:
    """The control: another kernel's description does not fit."""
    grade = graded(load("graded-tf32"), session, without=frozenset({"runs"}))
    assert {"grade", "inputs", "growth"} <= set(surprises("graded-in-order", grade))
    assert said(grade)["inputs"] == 11
