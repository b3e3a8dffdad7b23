"""Kernels whose arithmetic is known are told apart: `expected.toml` has what must be said."""

from __future__ import annotations

import re
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
from support.expected import Backend, entries, tried
from support.optional import present
from support.paths import KERNELS

from matbench.bench.kernel_arguments import Float64
from matbench.bench.session import Session
from matbench.features.grade import multiplier, steps, view
from matbench.features.grade.multiplier import Multiplier
from matbench.features.grade.record import Grade, Statements
from matbench.kernelfile import sweep
from matbench.model import Case

GRADED = entries("graded")
#: Expected values that are ranges.
RANGES = {"binades", "inputs", "growth"}
NOTHING: frozenset[str] = frozenset()


def graded(
    name: str, session: Session, size: int = 256, without: frozenset[str] = NOTHING
) -> Grade:
    """The grade, found in this process; `without` names steps that are left out."""

    def run(task: Any, *args: Any, case: Case) -> Statements:
        *_, step, _ = args
        if step in without:
            statement: Any = steps.STEPS[step].failed or tuple
            return Statements(**{step: statement()})
        found: Statements = task(session, *args)
        return found

    kernel, device = GRADED[name].kernel(), session.backend.info
    problem = multiplier.problem_of(kernel, size, size, size)
    case = sweep.case(kernel, problem, next(sweep.parameter_sets(kernel, {})), device)
    worker: Any = SimpleNamespace(run=run, device=device)
    return steps.grade(worker, case, 0, "", lambda what: None)


def said(grade: Grade) -> dict[str, Any]:
    """What a grade says, under the keys of the table of expected values."""
    sums, specials = present(grade.sums), present(grade.specials)
    return {
        "grade": grade.letter,
        "algorithm": present(grade.algorithm).verdict,
        "exponents": present(grade.range).verdict,
        "binades": present(grade.range).binades,
        "specials": specials.verdict if not specials.differ else [*specials.differ.values()],
        "subnormals": view.subnormals(specials),
        "order": re.split(r" \(K|(?<=^unclear):", view.order(grade))[0],
        "bits": sums.accumulator_bits,
        "rounding": sums.rounding,
        "products": sums.products,
        "inputs": sums.input_bits,
        "runs": present(grade.runs).verdict,
        "rows": present(grade.batches).verdict,
        "growth": present(grade.growth).slope,
    }


def several(value: Any) -> set[Any]:
    """The values that are right, or that were found: one or a list."""
    return set(value) if isinstance(value, list) else {value}


def surprises(name: str, grade: Grade, without: frozenset[str] = NOTHING) -> dict[str, Any]:
    """What is said that was not expected, by key."""
    found = {}
    row = present(GRADED[name].expected.grade)
    row = row | row.get(grade.case.backend, {})
    if grade.reason is not None:
        return {"reason": grade.reason}
    for key, value in said(grade).items():
        wanted = row.get(key)
        if wanted is None or wanted == "any" or key in without:
            continue
        if key in RANGES:
            right = value is not None and wanted[0] <= value <= wanted[1]
        else:
            right = bool(several(wanted) & several(value))
        if not right:
            found[key] = value
    return found


#: A grade must not take long.
MOST_LAUNCHES = 350
#: Runs are repeated where they may differ, which takes long on a CPU; on a GPU all are.
REPEATED = {"graded-atomics", "graded-split", "graded-in-order"}


@pytest.mark.parametrize(("name", "backend_name", "size"), tried(GRADED))
def test_a_kernel_is_described_as_it_is(
    name: str, backend_name: Backend, size: str, request: pytest.FixtureRequest,
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
    grade = graded(name, session, int(size), without=without)
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
    grade = graded("graded-tf32", session, without=frozenset({"runs"}))
    assert {"grade", "inputs", "growth"} <= set(surprises("graded-in-order", grade))
    assert said(grade)["inputs"] == 11
