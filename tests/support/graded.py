"""Grades kernels whose arithmetic is known, in this process, and compares what is said of them."""

from __future__ import annotations

import re
from typing import Any

from matbench.bench.session import Session
from matbench.features.grade import multiplier, steps, view
from matbench.features.grade.record import Grade, Statements
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo, Kernel
from support.expected import entries
from support.optional import present

GRADED = entries("graded")
#: Expected values that are ranges.
RANGES = {"binades", "inputs", "growth"}
NOTHING: frozenset[str] = frozenset()


class Here:
    """A worker without a process; `without` names steps that are left out."""

    def __init__(self, session: Session, without: frozenset[str] = NOTHING) -> None:
        self.session = session
        self.device: DeviceInfo = session.backend.info
        self.without = without

    def run(self, task: Any, *args: Any, case: Case) -> Statements:
        *_, step, _ = args
        if step in self.without:
            statement: Any = steps.STEPS[step].failed or tuple
            return Statements(**{step: statement()})
        found: Statements = task(self.session, *args)
        return found


def graded(
    kernel: Kernel,
    session: Session,
    size: int = 256,
    seed: int = 0,
    without: frozenset[str] = NOTHING,
) -> Grade:
    params = next(iter(sweep.parameter_sets(kernel, {})))
    problem = multiplier.problem_of(kernel, size, size, size)
    worker: Any = Here(session, without)
    case = sweep.case(kernel, problem, params, worker.device)
    return steps.grade(worker, case, seed, "", lambda what: None)


def said(grade: Grade) -> dict[str, Any]:
    """What a grade says, under the keys of the table of expected values."""
    sums, specials = grade.sums, grade.specials
    assert sums is not None
    assert specials is not None
    assert grade.algorithm
    assert grade.range
    assert grade.runs
    assert grade.batches
    assert grade.growth
    return {
        "grade": grade.letter,
        "algorithm": grade.algorithm.verdict,
        "exponents": grade.range.verdict,
        "binades": grade.range.binades,
        "specials": specials.verdict if not specials.differ else [*specials.differ.values()],
        "subnormals": view.subnormals(specials),
        "order": re.split(r" \(K|(?<=^unclear):", view.order(grade))[0],
        "bits": sums.accumulator_bits,
        "rounding": sums.rounding,
        "products": sums.products,
        "inputs": sums.input_bits,
        "runs": grade.runs.verdict,
        "rows": grade.batches.verdict,
        "growth": grade.growth.slope,
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
