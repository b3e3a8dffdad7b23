"""The words of a grade: orders of addition, trees, and what is unclear."""

from __future__ import annotations

from typing import Any

import msgspec
from pytest_regressions.file_regression import FileRegressionFixture

from matbench.features.grade import summation_tree
from matbench.features.grade import view as grade
from matbench.features.grade.record import (
    Algorithm,
    Bounds,
    Constants,
    Grade,
    Growth,
    Level,
    Order,
    Runs,
    Sums,
    Ulps,
)
from matbench.features.grade.summation_tree import Tree
from matbench.model import Problem
from matbench.records.outcome import CaseRecord, Claims
from matbench.show import formats

CASE = CaseRecord(
    kernel="mine", sha256="0", group="tutorial", params={"TILE": 8}, problem=Problem(256, 256, 256),
    backend="cuda", device="A GPU", device_kind="gpu", device_id="GPU-0", storage="float32",
)  # fmt: skip
GRADE = Grade(
    case=CASE,
    letter="A",
    u=2.0**-24,
    seed=0,
    duration_s=1.0,
    bounds=Bounds(verdict="A", by_element=0.5, by_row=0.5, by_matrix=0.5, bits=24, probes=10),
    growth=Growth(
        verdict="at most linear",
        slope=-0.05,
        interval=(-0.1, 0.0),
        sizes=(16, 1024),
        errors=(1.0, 1.0),
        probes=10,
    ),
    algorithm=Algorithm(verdict="classical", probes=10),
)


def plain(*grades: Grade) -> str:
    return formats.text(grade.report(grades, []), "plain")


def chain(first: list[int], *steps: list[int]) -> Tree:
    tree: Tree = tuple(first)
    for step in steps:
        tree = (tree, *step)
    return tree


TREES: list[Tree] = [
    ((0, 1), 2), chain(list(range(4)), [4, 5, 6, 7]), chain([0, 1], *([n] for n in range(2, 9))),
    chain([7, 6], *([n] for n in range(5, -1, -1))), ((0, 1), (2, 3)), (((0, 1), (2, 3)), (4, 5)),
    ((((0, 1, 2), (3, 4, 5)), (6, 7, 8)), (9, 10, 11)),
]  # fmt: skip
BAD = Bounds(verdict="D", by_element=9e3, by_row=9e3, by_matrix=9e3, bits=11, probes=1)


def of(case: dict[str, Any] | None = None, **changes: Any) -> Grade:
    about = msgspec.structs.replace(CASE, **(case or {}))
    return msgspec.structs.replace(GRADE, case=about, **changes)


PAGES: dict[str, list[Grade]] = {
    "grade A: errors of the longest sums, and no order": [GRADE],
    "runs that broke": [of(runs=Runs(reason="it broke"))],
    "exact sums": [of(order=Order(verdict="exact"))],
    "an order that varies": [of(order=Order(verdict="varies", reason="runs differ"))],
    "sums of 14 bits": [of(sums=Sums(accumulator_bits=14))],
    "bounds of grade D": [of(bounds=BAD)],
    "unknown bounds": [of(bounds=Bounds(reason="it broke"))],
    "no constants": [of(constants=Constants(reason="none to try"))],
    "sums that broke": [of(sums=Sums(reason="it broke", input_bits=11))],
    "unknown ulps": [of(ulps=(Ulps(inputs="x", reason="C is not finite"),))],
    "a kernel twice, with its parameters": [GRADE, of({"params": {"TILE": 16}})],
    "two kernels": [GRADE, of({"kernel": "third"})],
    "not graded": [
        GRADE, *(of({"kernel": n}, reason="needs CUDA", letter="unclear") for n in ("one", "two")),
    ],
    "less than declared": [of({"claims": Claims(precision="tf32")}, bounds=BAD, letter="D")],
}  # fmt: skip


def test_pages(file_regression: FileRegressionFixture) -> None:
    levels = [Level("in order", 8, 1, 1), Level("in order", 3)]
    lines = [f"{grade.words(levels)}\n"]
    for tree in TREES:
        terms = len(summation_tree.terms_of(tree))
        order = Order(verdict="irregular", steps_terms=terms, steps=summation_tree.steps_of(tree))
        lines += [f"\n{tree}\n", *(f"{line}\n" for line in grade.tree(of(order=order)))]
    assert grade.tree(GRADE) == []
    lines += [f"\n=== {name}\n\n{plain(*grades)}\n" for name, grades in PAGES.items()]
    file_regression.check("".join(lines), encoding="utf-8")
