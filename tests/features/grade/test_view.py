"""The words of a grade: orders of addition, trees, and what is unclear."""

from __future__ import annotations

import msgspec
import pytest

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


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([Level("in order", 256)], "in order"),
        ([Level("in order", 256, 16)], "16 terms at a time onto the running sum"),
        ([Level("in reverse", 256, 16)], "16 terms at a time onto the running sum, from the last"),
        ([Level("at once", 32)], "all 32 in one step"),
        ([Level("in order", 8, 1, 8), Level("pairwise", 4)],
         "4 chunks of 8 terms, each in order; then pairwise"),
        ([Level("in order", 8, 1, 1), Level("in order", 3)],
         "3 sums of every 3rd term, each in order; then in order"),
        ([Level("in order", 8, 1, 2), Level("in order", 4)],
         "4 sums of 2 terms in every 8, each in order; then in order"),
        (
            [Level("in order", 4, 1, 1), Level("pairwise", 8, 1, 32), Level("in order", 2)],
            "2 chunks of 32 terms, each (8 sums of every 8th term, each in order; then pairwise); "
            "then in order",
        ),
    ],
)  # fmt: skip
def test_levels_in_words(levels: list[Level], words: str) -> None:
    assert grade.words(levels) == words


@pytest.mark.parametrize(
    ("tree", "lines"),
    [
        (((0, 1), 2), ["0 + 1 + 2"]),
        (chain(list(range(4)), [4, 5, 6, 7]), ["0 & 1 & 2 & 3 + 4 & 5 & 6 & 7"]),
        (chain([0, 1], *([n] for n in range(2, 9))), ["0 + 1 + … + 8"]),
        (chain([7, 6], *([n] for n in range(5, -1, -1))), ["7 + 6 + … + 0"]),
        (((0, 1), (2, 3)), ["sum of", "  0 + 1", "  2 + 3"]),
        ((((0, 1), (2, 3)), (4, 5)), ["sum of, in order", "  0 + 1", "  2 + 3", "  4 + 5"]),
        (((((0, 1, 2), (3, 4, 5)), (6, 7, 8)), (9, 10, 11)),
         ["sum of, in order", "  0 & 1 & 2", "  3 & 4 & 5", "  6 & 7 & 8", "  9 & 10 & 11"]),
    ],
)  # fmt: skip
def test_a_tree_is_indented(tree: Tree, lines: list[str]) -> None:
    terms = len(summation_tree.terms_of(tree))
    found = Order(verdict="irregular", steps_terms=terms, steps=summation_tree.steps_of(tree))
    assert grade.tree(msgspec.structs.replace(GRADE, order=found)) == lines


def test_no_order_has_no_tree() -> None:
    assert grade.tree(GRADE) == []


@pytest.mark.parametrize(
    ("field", "statement", "words"),
    [
        ("runs", Runs(reason="it broke"), "unclear: it broke"),
        ("order", Order(verdict="exact"), "cannot be seen: sums lose nothing"),
        ("order", Order(verdict="varies", reason="runs differ"), "varies: runs differ"),
        ("sums", Sums(accumulator_bits=14), "sums of 14 bits"),
        ("bounds",
         Bounds(verdict="D", by_element=9e3, by_row=9e3, by_matrix=9e3, bits=11, probes=1),
         "larger than u times any size (u = 2⁻²⁴); grade A for 11 bits"),
        ("bounds", Bounds(reason="it broke"), "unclear: it broke"),
        ("constants", Constants(reason="none to try"), "constants      none to try"),
        ("sums", Sums(reason="it broke", input_bits=11), "read with 11 bits; unclear: it broke"),
    ],
)  # fmt: skip
def test_what_is_known_and_what_is_not(field: str, statement: object, words: str) -> None:
    text = plain(msgspec.structs.replace(GRADE, **{field: statement}))
    assert words in text


def test_ulps_that_are_unknown_are_unclear() -> None:
    text = plain(msgspec.structs.replace(GRADE, ulps=(Ulps(inputs="x", reason="C is not finite"),)))
    assert "x inputs" in text
    assert "unclear: C is not finite" in text


def test_parameters_are_in_the_table_if_a_kernel_is_in_it_twice() -> None:
    other = msgspec.structs.replace(GRADE, case=msgspec.structs.replace(CASE, params={"TILE": 16}))
    table = plain(GRADE, other).partition("Kernels compared")[2]
    assert "mine TILE=8" in table
    assert "mine TILE=16" in table
    third = msgspec.structs.replace(GRADE, case=msgspec.structs.replace(CASE, kernel="third"))
    assert "TILE" not in plain(GRADE, third).partition("Kernels compared")[2]


def test_kernels_that_were_not_graded_are_named_with_the_reason() -> None:
    bad = [
        msgspec.structs.replace(
            GRADE,
            case=msgspec.structs.replace(CASE, kernel=name),
            reason="needs CUDA",
            letter="unclear",
        )
        for name in ("one", "two")
    ]
    assert "not graded: one, two: needs CUDA" in plain(GRADE, *bad)


def test_errors_of_grade_A_are_those_of_the_longest_sums() -> None:
    assert "up to 1.00·u of |A|·|B|, element by element, at K = 1,024 (u = 2⁻²⁴)" in plain(GRADE)


def test_a_kernel_that_declares_less_than_it_takes_has_the_lower_grade_explained() -> None:
    bad = Bounds(verdict="D", by_element=9e3, by_row=9e3, by_matrix=9e3, bits=11, probes=1)
    case = msgspec.structs.replace(CASE, claims=Claims(precision="tf32"))
    text = plain(msgspec.structs.replace(GRADE, bounds=bad, letter="D", case=case))
    assert "grade A for 11 bits; it declares tf32" in text
