"""Kernels whose arithmetic is known are told apart: `expected.toml` has what must be said."""

from __future__ import annotations

from itertools import combinations

import pytest
from support.expected import Backend, tried
from support.graded import GRADED, NOTHING, RANGES, graded, said, several, surprises
from support.optional import present
from support.paths import KERNELS

from matbench.bench.kernel_arguments import Float64
from matbench.bench.session import Session
from matbench.features.grade.multiplier import Multiplier

#: A grade must not take long.
MOST_LAUNCHES = 350
#: Runs are repeated where they may differ, which takes long on a CPU; on a GPU all are.
REPEATED = {"graded-atomics", "graded-split", "graded-in-order"}


@pytest.mark.parametrize(("name", "backend_name", "size"), tried(GRADED))
def test_a_kernel_is_described_as_it_is(
    name: str,
    backend_name: Backend,
    size: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    launches = 0
    multiply = Multiplier.multiply

    def counted(multiplier: Multiplier, A: Float64, B: Float64) -> Float64:
        nonlocal launches
        launches += 1
        return multiply(multiplier, A, B)

    monkeypatch.setattr(Multiplier, "multiply", counted)
    session = request.getfixturevalue("session" if backend_name == "opencl" else "checks")
    without = NOTHING if backend_name == "cuda" or name in REPEATED else frozenset({"runs"})
    grade = graded(GRADED[name].kernel(), session, int(size), without=without)
    assert surprises(name, grade, without) == {}
    assert launches <= MOST_LAUNCHES or backend_name == "cuda"


def test_no_two_are_expected_to_look_alike() -> None:
    rows = {name: present(entry.expected.grade) for name, entry in GRADED.items()}
    for one, other in combinations(rows, 2):
        apart = [
            key
            for key in rows["graded-in-order"]
            if "any" not in (rows[one][key], rows[other][key])
            and (
                rows[one][key][1] < rows[other][key][0] or rows[other][key][1] < rows[one][key][0]
                if key in RANGES
                else not several(rows[one][key]) & several(rows[other][key])
            )
        ]
        assert apart, (one, other)


def test_there_are_enough_and_each_has_its_file() -> None:
    assert len(GRADED) >= 24
    assert {path.stem for path in (KERNELS / "graded").glob("*.cu")} == set(GRADED)


def test_a_wrong_expectation_is_noticed(session: Session) -> None:
    """The control: another kernel's description does not fit."""
    grade = graded(GRADED["graded-tf32"].kernel(), session, without=frozenset({"runs"}))
    assert {"grade", "inputs", "growth"} <= set(surprises("graded-in-order", grade))
    assert said(grade)["inputs"] == 11
