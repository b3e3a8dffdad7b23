"""The order in which a sum is computed, as a tree: from probes, and as a regular pattern.

The probes are those of P. Xie, Y. Gao, Y. Wang and J. Xue, "Revealing Floating-Point Accumulation
Orders in Software/Hardware Implementations" (USENIX ATC 2025): all terms are 1, except for a huge
+h and −h. A 1 that is added while h is in the sum is lost, so the result counts the ones outside
the smallest partial sum that contains both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Union

import msgspec
import numpy as np

from matbench.features.grade.record import Level

#: A term's index, or a sum of such: `((0, 1), 2)`. Terms that one step adds are of one sum.
Tree = Union[int, tuple["Tree", ...]]  # noqa: UP007 - it names itself
Pair = tuple[int, int]
#: For each pair of terms, how many terms the smallest partial sum with both has: asked, or known.
Shared = Callable[[Sequence[Pair]], Sequence[int]]
Known = dict[Pair, int]


class NoTreeError(ValueError):
    """The probes contradict each other: no tree explains them."""


def tree_of(terms: int, shared: Shared, *, backwards: bool = False) -> Tree:
    """The tree of a sum, from as few probes as its shape allows; `NoTreeError`.

    A sum that begins with its last terms needs fewer probes if they are tried `backwards`.
    """
    known: Known = {}
    every = list(range(terms))
    while True:
        missing: list[Pair] = []
        tree = _built(every[::-1] if backwards else every, known, missing)
        if not missing:
            return tree
        known.update(zip(missing, shared(missing), strict=True))


def _built(terms: list[int], known: Known, missing: list[Pair]) -> Tree:
    """The tree of these terms; pairs that must be probed first are added to `missing`."""
    first, *others = terms
    sizes = _sizes(first, others, known, missing)
    if len(sizes) < len(others):
        return first
    tree: Tree = first
    inside = 1
    for size in sorted(set(sizes.values())):
        joined = [term for term in others if sizes[term] == size]
        inside += len(joined)
        if size != inside:
            raise NoTreeError(f"{inside} terms in a sum of {size}")
        tree = (tree, *_apart(joined, size, known, missing))
    return tree


def _apart(terms: list[int], size: int, known: Known, missing: list[Pair]) -> Iterator[Tree]:
    """The operands that these terms are in; all are added to one sum of `size` terms."""
    while terms:
        first, *others = terms
        sizes = _sizes(first, others, known, missing)
        if len(sizes) < len(others):
            return
        if any(joined > size for joined in sizes.values()):
            raise NoTreeError(f"terms of a sum of {size} meet in a larger one")
        yield _built([first, *(t for t in others if sizes[t] < size)], known, missing)
        terms = [term for term in others if sizes[term] == size]


def _sizes(first: int, others: list[int], known: Known, missing: list[Pair]) -> dict[int, int]:
    """How many terms the smallest sum with the first and each other has, where that is known."""
    missing += [(first, other) for other in others if (first, other) not in known]
    return {other: known[first, other] for other in others if (first, other) in known}


def sums_of(tree: Tree) -> list[tuple[Tree, ...]]:
    """The additions of a tree, operands first."""
    sums, left = [], [tree]
    while left:
        node = left.pop()
        if not isinstance(node, int):
            sums.append(node)
            left.extend(node)
    return sums[::-1]


def terms_of(tree: Tree) -> list[int]:
    """The indices of a tree's terms, ascending."""
    if isinstance(tree, int):
        return [tree]
    return sorted(x for node in sums_of(tree) for x in node if isinstance(x, int))


def shared_in(tree: Tree, pairs: Sequence[Pair]) -> list[int]:
    """For each pair of terms, how many terms the smallest sum with both has in this tree."""
    sums = [set(terms_of(node)) for node in sums_of(tree)]
    return [min(len(terms) for terms in sums if terms.issuperset(pair)) for pair in pairs]


def steps_of(tree: Tree) -> tuple[tuple[int, ...], ...]:
    """The additions, operands first: each lists terms, or K plus the index of an earlier one."""
    sums, terms = sums_of(tree), len(terms_of(tree))
    number = {id(node): terms + index for index, node in enumerate(sums)}
    return tuple(tuple(x if isinstance(x, int) else number[id(x)] for x in node) for node in sums)


def from_steps(terms: int, steps: Sequence[Sequence[int]]) -> Tree:
    """The tree with these additions; the inverse of `steps_of`."""
    nodes: list[Tree] = list(range(terms))
    for operands in steps:
        nodes.append(tuple(nodes[operand] for operand in operands))
    return nodes[-1]


# -- patterns --------------------------------------------------------------------------------------


def levels_of(tree: Tree) -> tuple[Level, ...]:
    """The tree as regular levels, from the terms outwards; empty if it is irregular."""
    return _levels(_numbered(tree)) or ()


def _numbered(tree: Tree, groups: Sequence[Tree] = ()) -> Tree:
    """The same tree with its terms, or these groups of them, numbered from 0, and its operands in
    the order of their first terms: equal for trees of the same shape."""
    rank = {node: index for index, node in enumerate(groups or terms_of(tree))}

    def number(node: Tree) -> tuple[int, Tree]:
        if isinstance(node, int) or node in rank:
            return rank[node], rank[node]
        operands = sorted(map(number, node), key=lambda operand: operand[0])
        return operands[0][0], tuple(operand for _, operand in operands)

    return number(tree)[1]


def _levels(tree: Tree) -> tuple[Level, ...] | None:
    """The fewest levels that describe the tree; None if it is irregular."""
    terms = len(terms_of(tree))
    whole = _level(tree, terms)
    if whole is not None:
        return (whole,)
    candidates = []
    for size in (size for size in range(terms // 2, 1, -1) if terms % size == 0):
        groups = sorted((n for n in sums_of(tree) if len(terms_of(n)) == size), key=terms_of)
        if len(groups) * size != terms or len({_numbered(group) for group in groups}) > 1:
            continue
        block = _block([terms_of(group) for group in groups])
        outer = _level(_numbered(tree, groups), len(groups))
        inner = _levels(_numbered(groups[0])) if block and outer else None
        if inner and outer:
            candidates.append((*inner[:-1], msgspec.structs.replace(inner[-1], block=block), outer))
    return min(candidates, key=len, default=None)


def _level(tree: Tree, terms: int) -> Level | None:
    """The tree as one level; None if it has several, or is irregular."""
    order: list[Tree] = list(range(terms))
    if added := chain_of(tree):
        first, *others = map(len, added)
        if not others and terms > 2:
            return Level("at once", terms)
        # Each step adds equally many; the first may also have the term that the sum begins with.
        at_a_time = others[-1] if others else 1
        if {*others} <= {at_a_time} and first in (at_a_time, at_a_time + 1):
            if [*chain(*added)] == order:
                return Level("in order", terms, at_a_time)
            if [*chain(*reversed(added))] == order:
                return Level("in reverse", terms, at_a_time)
    if terms & (terms - 1) == 0:
        if tree == _halved(order, apart=False):
            return Level("pairwise", terms)
        if tree == _halved(order, apart=True):
            return Level("pairwise apart", terms)
    return None


def joined_by_one(tree: Tree) -> list[Pair]:
    """Pairs of a term of some sum and a single term that is added to that sum."""
    return [
        (terms_of(operand)[-1], term)
        for node in reversed(sums_of(tree))
        for operand in node
        for term in node
        if isinstance(term, int) and operand != term
    ]


def chain_of(tree: Tree) -> list[list[int]] | None:
    """The terms that each step adds to the running sum; None if a step adds a sum."""
    added: list[list[int]] = []
    while not isinstance(tree, int):
        sums = [operand for operand in tree if not isinstance(operand, int)]
        if len(sums) > 1:
            return None
        added.append(sorted(operand for operand in tree if isinstance(operand, int)))
        if not sums:
            return added[::-1]
        (tree,) = sums
    return None


def _halved(sums: Sequence[Tree], *, apart: bool) -> Tree:
    """A balanced tree of neighbours, or of what is half the length `apart`."""
    while half := len(sums) // 2:
        pairs = (sums[:half], sums[half:]) if apart else (sums[::2], sums[1::2])
        sums = [*zip(*pairs, strict=True)]
    return sums[0]


def _block(groups: Sequence[Sequence[int]]) -> int | None:
    """How many adjacent terms a group has before the next group's begin, if that is regular: 1 if
    terms are dealt out in turn, all of a group's if it is one chunk."""
    many, size = len(groups), len(groups[0])
    for block in (block for block in range(1, size + 1) if size % block == 0):
        dealt = np.arange(many * size).reshape(-1, many, block).swapaxes(0, 1)
        if dealt.reshape(many, size).tolist() == list(groups):
            return block
    return None
