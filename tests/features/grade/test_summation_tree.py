"""The order of a sum, found from probes of a simulated one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support.kernels import GOOD_BODY, PRODUCT, STORED, KernelWriter, changed

from matbench.bench.session import Session
from matbench.errors import CaseError
from matbench.features.grade import summation_tree, view
from matbench.features.grade.multiplier import Multiplier
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
from matbench.features.grade.summation_tree import Pair, Tree
from matbench.kernelfile import catalogue, sweep
from matbench.model import Kernel, Problem
from matbench.records.outcome import CaseRecord, Claims
from matbench.show import formats
from matbench.workloads import rounding

HUGE = np.float32(2.0**120)


def added(tree: Tree, terms: np.ndarray) -> Any:
    """The float32 sum in the order of the tree; terms of one step are aligned to the largest."""
    if isinstance(tree, int):
        return np.float32(terms[tree])
    operands = [added(operand, terms) for operand in tree]
    if len(operands) == 2:
        return np.float32(operands[0] + operands[1])
    unit = np.spacing(max(abs(operand) for operand in operands)).astype(np.float64)
    return np.float32(sum(np.trunc(np.float64(operand) / unit) for operand in operands) * unit)


class Sum:
    """A sum that can only be computed."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.terms = len(summation_tree.terms_of(tree))
        self.probes = 0

    def shared(self, pairs: Sequence[Pair]) -> list[int]:
        found = []
        for plus, minus in pairs:
            terms = np.ones(self.terms, np.float32)
            terms[plus], terms[minus] = HUGE, -HUGE
            found.append(self.terms - int(added(self.tree, terms)))
            self.probes += 1
        return found


def alike(tree: Tree) -> object:
    """A tree without the order of operands."""
    return tree if isinstance(tree, int) else frozenset(map(alike, tree))


def chain(terms: Sequence[Tree], at_a_time: int = 1) -> Tree:
    """In order, so many more terms in each step."""
    first = 2 if at_a_time == 1 else at_a_time
    tree: Tree = tuple(terms[:first])
    for start in range(first, len(terms), at_a_time):
        tree = (tree, *terms[start : start + at_a_time])
    return tree


def pairwise(operands: Sequence[Tree]) -> Tree:
    if len(operands) == 1:
        return operands[0]
    half = len(operands) // 2
    return (pairwise(operands[:half]), pairwise(operands[half:]))


def irregular(terms: list[int], draw: random.Random) -> Tree:
    if len(terms) == 1:
        return terms[0]
    many = min(len(terms), draw.choice((2, 2, 2, 3, 5)))
    cuts = sorted(draw.sample(range(1, len(terms)), many - 1))
    parts = [terms[a:b] for a, b in zip([0, *cuts], [*cuts, len(terms)], strict=True)]
    return tuple(irregular(part, draw) for part in parts)


N = list(range(32))
EIGHTS = [chain(N[start : start + 8]) for start in range(0, 32, 8)]
EXAMPLES: list[Tree] = [
    chain(N), chain(N[::-1]), pairwise(N), tuple(N), chain(N, 8), chain(N[::-1], 8),
    chain(EIGHTS), pairwise(EIGHTS), chain([chain(N[start::4]) for start in range(4)]),
    # Two of every eight terms; halves apart; and pairs of chunks of tensor cores.
    pairwise([chain([n for n in N if n // 2 % 4 == team]) for team in range(4)]),
    pairwise([pairwise([pairwise(N[a::8]) for a in (b, b + 4)]) for b in (0, 2, 1, 3)]),
    pairwise([chain(N[:16], 4), chain(N[16:], 4)]),
    chain([pairwise([chain(N[half:][start:16:2]) for start in (0, 1)]) for half in (0, 16)]),
]  # fmt: skip


def test_sums_are_recognised_from_probes_alone(file_regression: FileRegressionFixture) -> None:
    lines = []
    for tree in EXAMPLES:
        found = summation_tree.tree_of(32, Sum(tree).shared)
        assert alike(found) == alike(tree)
        lines.append(f"{view.words(summation_tree.levels_of(found))}\n    {tree}\n")
    file_regression.check("".join(lines), encoding="utf-8")


@pytest.mark.parametrize("seed", range(40))
def test_any_tree_is_found(seed: int) -> None:
    draw = random.Random(seed)
    terms = list(range(draw.randrange(2, 60)))
    draw.shuffle(terms)
    tree = irregular(terms, draw)
    probed = Sum(tree)
    found = summation_tree.tree_of(len(terms), probed.shared)
    assert alike(found) == alike(tree)
    assert probed.probes <= len(terms) * (len(terms) - 1) / 2
    assert alike(summation_tree.from_steps(len(terms), summation_tree.steps_of(found))) == alike(
        tree
    )


def test_a_sequential_sum_needs_one_probe_per_term() -> None:
    probed = Sum(chain(range(256)))
    summation_tree.tree_of(256, probed.shared)
    assert probed.probes == 255


def test_probes_that_contradict_each_other_give_no_tree() -> None:
    orders = [Sum(chain(N)), Sum(chain(N[::-1]))]

    def shared(pairs: Sequence[Pair]) -> list[int]:
        return [orders[plus % 2 ^ minus % 2].shared([(plus, minus)])[0] for plus, minus in pairs]

    with pytest.raises(summation_tree.NoTreeError):
        summation_tree.tree_of(32, shared)


def test_an_irregular_tree_has_no_levels() -> None:
    trees: tuple[Tree, ...] = (((0, 1), (2, 3)), 4, (5, (6, 7))), ((((0, 1), 2), 3, 4), 5)
    assert [*map(summation_tree.levels_of, trees)] == [(), ()]


# Multipliers


RANDOM = np.random.default_rng(3)


def multiplier(session: Session, kernel: Kernel) -> Multiplier:
    params = next(iter(sweep.parameter_sets(kernel, {})))
    return Multiplier(
        session.backend, lambda case: session._build(case, ("plain",)).program, kernel, params
    )


def whole(*shape: int) -> np.ndarray:
    return RANDOM.integers(-8, 9, shape).astype(np.float64)


@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 1, 1), (48, 48, 1), (1, 9, 4), (7, 1, 2)])
@pytest.mark.parametrize(
    "front",
    [
        "",
        'layout = "column-major"',
        'transpose = "TN"',
        'transpose = "NT"',
        'layout = "column-major"\ntranspose = "TT"',
    ],
)
def test_every_layout_gives_the_product(
    front: str, shape: tuple[int, int, int], session: Session, write_kernel: KernelWriter
) -> None:
    M, N, K = shape
    column = "column-major" in front
    transpose = front.partition('transpose = "')[2][:2] or "NN"

    def at(rows: str, columns: str, i: str, j: str, *, by_columns: bool) -> str:
        return f"{j} * {rows} + {i}" if by_columns else f"{i} * {columns} + {j}"

    a = at("M", "K", "row", "k", by_columns=column != (transpose[0] == "T"))
    b = at("K", "N", "k", "column", by_columns=column != (transpose[1] == "T"))
    c = at("M", "N", "row", "column", by_columns=column)
    body = changed(GOOD_BODY, (PRODUCT, f"A[{a}] * B[{b}]"), (STORED, f"C[{c}] = sum;"))
    kernel = catalogue.load(write_kernel("layout", front=front, body=body))
    A, B = whole(M, K), whole(K, N)
    np.testing.assert_array_equal(multiplier(session, kernel).multiply(A, B), A @ B)


def test_zeros_are_added_up_to_a_taken_size(session: Session, write_kernel: KernelWriter) -> None:
    launch = """where = ["M % 8 == 0", "N % 8 == 0", "K == 32"]
block = ["TILE", "TILE"]
grid = ["N // TILE", "M // TILE"]"""
    made = multiplier(session, catalogue.load(write_kernel("tiles", launch=launch)))
    A, B = whole(3, 5), whole(5, 9)
    assert made.case(3, 9, 5).problem.size == "8x16x32"
    np.testing.assert_array_equal(made.multiply(A, B), A @ B)
    with pytest.raises(CaseError, match=r"needs K == 32"):
        made.case(8, 8, 64)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1 + 2.0**-8, 1 + 3 * 2.0**-8, 1.0, -(2.0**-120)], [1.0, 1 + 2.0**-6, 1.0, -(2.0**-120)]),
        ([np.inf, -np.inf, 0.0, 2.0**-133], [np.inf, -np.inf, 0.0, 2.0**-133]),
        ([1 + 2.0**-8 + 2.0**-40], [1 + 2.0**-7]),  # not to a float32 first
    ],
)
def test_bfloat16_is_rounded_to_nearest(values: list[float], wanted: list[float]) -> None:
    stored = rounding.encoded(np.array(values), "bfloat16")
    assert stored.dtype == np.uint16
    np.testing.assert_array_equal(rounding.decoded(stored, "bfloat16"), wanted)
    assert np.isnan(rounding.decoded(rounding.encoded(np.array([np.nan]), "bfloat16"), "bfloat16"))


def test_C_is_zero_before_each_launch(session: Session, write_kernel: KernelWriter) -> None:
    body = changed(GOOD_BODY, ("= sum;", "+= sum;"))
    front = 'beta = 1.0\nreads = ["C"]'
    made = multiplier(session, catalogue.load(write_kernel("adds", front=front, body=body)))
    A, B = whole(4, 1), whole(1, 4)
    for _ in range(2):
        np.testing.assert_array_equal(made.multiply(A, B), A @ B)


# The words of a grade: orders of addition, trees, and what is unclear


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
    return formats.text(view.report(grades, []), "plain")


TREES: list[Tree] = [
    ((0, 1), 2), chain(range(8), 4), chain(range(9)), chain(range(7, -1, -1)),
    ((0, 1), (2, 3)), (((0, 1), (2, 3)), (4, 5)),
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
    lines = [f"{view.words(levels)}\n"]
    for tree in TREES:
        terms = len(summation_tree.terms_of(tree))
        order = Order(verdict="irregular", steps_terms=terms, steps=summation_tree.steps_of(tree))
        lines += [f"\n{tree}\n", *(f"{line}\n" for line in view.tree(of(order=order)))]
    assert view.tree(GRADE) == []
    lines += [f"\n=== {name}\n\n{plain(*grades)}\n" for name, grades in PAGES.items()]
    file_regression.check("".join(lines), encoding="utf-8")
