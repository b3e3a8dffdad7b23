"""The order of a sum, found from probes of a simulated one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from matbench.features.grade import summation_tree
from matbench.features.grade.summation_tree import Pair, Tree

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


def chain(terms: Sequence[int], at_a_time: int = 1) -> Tree:
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


def in_order(operands: Sequence[Tree]) -> Tree:
    tree = operands[0]
    for operand in operands[1:]:
        tree = (tree, operand)
    return tree


def irregular(terms: list[int], draw: random.Random) -> Tree:
    if len(terms) == 1:
        return terms[0]
    many = min(len(terms), draw.choice((2, 2, 2, 3, 5)))
    cuts = sorted(draw.sample(range(1, len(terms)), many - 1))
    parts = [terms[a:b] for a, b in zip([0, *cuts], [*cuts, len(terms)], strict=True)]
    return tuple(irregular(part, draw) for part in parts)


N = list(range(32))
EIGHTS = [chain(N[start : start + 8]) for start in range(0, 32, 8)]
EXAMPLES: dict[str, tuple[Tree, list[tuple[object, ...]]]] = {
    "in order": (chain(N), [("in order", 32, 1, None)]),
    "in reverse": (chain(N[::-1]), [("in reverse", 32, 1, None)]),
    "pairwise": (pairwise(N), [("pairwise", 32, 1, None)]),
    "at once": (tuple(N), [("at once", 32, 1, None)]),
    "eight at a time": (chain(N, 8), [("in order", 32, 8, None)]),
    "chunks of 8": (in_order(EIGHTS), [("in order", 8, 1, 8), ("in order", 4, 1, None)]),
    "chunks of 8, pairwise": (pairwise(EIGHTS), [("in order", 8, 1, 8), ("pairwise", 4, 1, None)]),
    "every fourth": (
        in_order([chain(N[start::4]) for start in range(4)]),
        [("in order", 8, 1, 1), ("in order", 4, 1, None)],
    ),
    "two of every eight": (
        pairwise([chain([n for n in N if n // 2 % 4 == team]) for team in range(4)]),
        [("in order", 8, 1, 2), ("pairwise", 4, 1, None)],
    ),
    "halves apart": (
        pairwise([pairwise([pairwise(N[a::8]) for a in (b, b + 4)]) for b in (0, 2, 1, 3)]),
        [("pairwise", 4, 1, 1), ("pairwise apart", 8, 1, None)],
    ),
    "pairs of chunks of tensor cores": (
        pairwise([chain(N[:16], 4), chain(N[16:], 4)]),
        [("in order", 16, 4, 16), ("in order", 2, 1, None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_sum_is_recognised_from_probes_alone(name: str) -> None:
    tree, levels = EXAMPLES[name]
    found = summation_tree.tree_of(32, Sum(tree).shared)
    assert alike(found) == alike(tree)
    assert [
        (a.how, a.terms, a.at_a_time, a.block) for a in summation_tree.levels_of(found)
    ] == levels


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
    assert summation_tree.levels_of((((0, 1), (2, 3)), 4, (5, (6, 7)))) == ()


def test_a_sum_that_begins_with_more_terms_than_it_adds_later_is_irregular() -> None:
    assert summation_tree.levels_of(((((0, 1, 2), 3), 4), 5)) == ()
