"""Probes that show in which order a kernel adds, and how: see `summation_tree`.

A row of products is computed in one of two ways. If the kernel's numbers reach far enough, B is 1
and A holds the products, so every column of C is one more witness. Otherwise both hold a factor,
and one element of C, on the diagonal, is the sum.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from matbench.bench.kernel_arguments import Float64
from matbench.features.grade import accuracy, summation_tree
from matbench.features.grade.multiplier import Multiplier
from matbench.features.grade.record import Order, Products, Rounding, Statement, Sums
from matbench.features.grade.summation_tree import NoTreeError, Pair, Tree
from matbench.workloads import rounding

#: The numbers of terms: a small tree to look at, and one that shows chunks.
_SMALL, _LARGE = 32, 256
#: The most probes of a tree, per term: more would take long.
_MOST_PROBES = 24
#: The probes that check a tree: pairs at random, in other rows of C.
_CHECKED = 128


class _ExactError(NoTreeError):
    """No one is lost beside the largest terms: sums are exact, so they show no order."""


def _scales(multiplier: Multiplier) -> list[tuple[int, int, bool]]:
    """What to try as `huge`, `one` and `is_product` of a `Prober`: the first keeps huge terms apart
    from any accumulator's ones."""
    _, high = multiplier.exponents
    if multiplier.sums_in == "float16":
        return [(14, -8, True)]
    if multiplier.storage == "e4m3":
        return [(16, -18, True)]  # its smallest number squared
    if multiplier.storage == "float64":
        return [(400, 0, False), (120, 0, False)]
    reach = min(high, rounding.FORMATS[multiplier.storage][2]) - 7
    return [*([(reach, 0, False)] if reach >= 60 else []), (30, -14, True)]


@dataclass
class Prober:
    """Computes rows of products by launches of one shape.

    `huge` and `one` are the exponents of the huge term and of a one; `is_product`: each is a
    product of two factors.
    """

    multiplier: Multiplier
    terms: int
    huge: int
    one: int
    is_product: bool
    probes: int = 0

    def sums(self, products: Float64) -> Float64:
        """The kernel's sum of each row of products; `NoTreeError` if columns of C differ."""
        starts = range(0, len(products), self.terms)
        parts = [self._launch(products[start : start + self.terms]) for start in starts]
        self.probes += len(products)
        return np.concatenate(parts)

    def _launch(self, products: Float64) -> Float64:
        many = len(products)
        A, B = np.zeros((self.terms, self.terms)), np.zeros((self.terms, self.terms))
        if self.is_product:
            fractions, exponents = np.frexp(products)
            exponents -= 1
            left = exponents // 2
            A[:many] = np.ldexp(2 * fractions, left)
            B[:, :many] = np.where(products == 0, 0, np.ldexp(1.0, exponents - left)).T
        else:
            A[:many], B[:] = products, 1
        C = self.multiplier.multiply(A, B)
        sums: Float64 = np.diagonal(C)[:many].copy()
        if not self.is_product:
            alike = np.broadcast_to(sums[:, None], (many, self.terms))
            if not np.array_equal(C[:many], alike, equal_nan=True):
                raise NoTreeError("columns of C differ")
        return sums

    def shared(self, pairs: Sequence[Pair]) -> list[int]:
        """How many terms the smallest partial sum with both terms of a pair has."""
        if self.probes + len(pairs) > _MOST_PROBES * self.terms:
            raise NoTreeError("too irregular")
        unit, huge = 2.0**self.one, 2.0**self.huge
        products = np.full((len(pairs), self.terms), unit)
        for row, (plus, minus) in enumerate(pairs):
            products[row, plus], products[row, minus] = huge, -huge
        kept = self.sums(products) / unit
        if not (np.isfinite(kept).all() and np.array_equal(kept, np.rint(kept))):
            raise NoTreeError("sums of ones are not whole numbers")
        if not ((kept >= 0) & (kept <= self.terms - 2)).all():
            raise NoTreeError("sums of ones are larger than their number")
        if (kept == self.terms - 2).all() and len(pairs) >= self.terms - 1:
            raise _ExactError("no one is lost beside the largest terms")
        return [self.terms - int(count) for count in kept]


def order_and_sums(multiplier: Multiplier, random: np.random.Generator) -> tuple[Statement, ...]:
    """The order of addition, and how sums are computed; the latter rests on the former."""
    # The fewest significant bits with which a number of A or B is read.
    side, most = _SMALL, rounding.FORMATS[multiplier.storage][0]
    given = 1 + np.rint(random.random((side, side)) * 2 ** (most - 1)) / 2.0 ** (most - 1)
    given, alone = multiplier.stored(np.where(given >= 2, 1.5, given)), np.eye(side)
    with np.errstate(invalid="ignore"):
        read = [multiplier.multiply(given, alone), multiplier.multiply(alone, given)]
    bits = min(accuracy.read_bits(product, given, multiplier.storage) for product in read)
    prober, tree = _tree(multiplier, _SMALL, random)
    if isinstance(tree, _ExactError):
        order = Order(verdict="exact", terms=_SMALL, probes=prober.probes)
        return order, _sums(prober, tuple(range(_SMALL)), bits, random)
    if isinstance(tree, NoTreeError):
        sums = Sums(input_bits=bits, probes=2 * _SMALL**2, reason=str(tree))
        return Order(terms=_SMALL, probes=prober.probes, reason=str(tree)), sums
    sums = _sums(prober, tree, bits, random)
    levels, terms, probes = summation_tree.levels_of(tree), _SMALL, prober.probes
    hows = [level.how for level in levels]
    one_step = hows == ["at once"]
    if not one_step:
        larger, large = _tree(multiplier, _LARGE, random, backwards="in reverse" in hows)
        probes += larger.probes
        if not isinstance(large, NoTreeError) and (found := summation_tree.levels_of(large)):
            levels, terms = found, _LARGE
    order = Order(
        verdict="one step" if one_step else "regular" if levels else "irregular", terms=terms,
        levels=levels, steps_terms=_SMALL, steps=summation_tree.steps_of(tree), probes=probes,
    )  # fmt: skip
    return order, sums


def _tree(
    multiplier: Multiplier, terms: int, random: np.random.Generator, *, backwards: bool = False
) -> tuple[Prober, Tree | NoTreeError]:
    """The tree of so many terms, checked by other pairs, or why there is none."""
    for scale in _scales(multiplier):
        prober = Prober(multiplier, terms, *scale)
        try:
            found = summation_tree.tree_of(terms, prober.shared, backwards=backwards)
            pairs = [
                tuple(random.choice(terms, 2, replace=False).tolist()) for _ in range(_CHECKED)
            ]
            if prober.shared(pairs) == summation_tree.shared_in(found, pairs):
                return prober, found
            tree = NoTreeError("other probes give another tree")
        except NoTreeError as error:
            tree = error
            if isinstance(error, _ExactError):
                break
    return prober, tree


def _sums(prober: Prober, tree: Tree, bits: int, random: np.random.Generator) -> Sums:
    """The accumulator's width, its rounding, and whether products enter it unrounded."""
    # Two terms that only the last addition joins, and some of the others.
    assert not isinstance(tree, int)
    sides = sorted(map(summation_tree.terms_of, tree), key=len)
    i, last = sides[-1][0], sides[0][-1]
    others = [term for term in sides[-1][1:] if term != last] or sides[0][:-1]
    if not others:  # all in one step
        others = [term for side in sides for term in side if term not in (i, last)]
    between = others[:: max(1, len(others) // 4)][:5]
    # Exponents of the largest and the smallest term.
    multiplier = prober.multiplier
    top = min(60, prober.huge)
    lowest = top - 115
    if multiplier.storage == "e4m3":
        lowest = -14
    elif prober.is_product:
        top, lowest = (14 if "float16" in (multiplier.result, multiplier.sums_in) else 30), -28
    if multiplier.result == "float16":
        lowest = max(lowest, -24)
    powers = list(range(1, top - lowest + 1))

    def added(fraction: float) -> Float64:
        """1 + fraction·2⁻ᵏ − 1 for each k (rows) and each term between (columns)."""
        rows = np.zeros((len(powers) * len(between), prober.terms))
        for row, (power, j) in enumerate(itertools.product(powers, between)):
            rows[row, i], rows[row, last] = 2.0**top, -(2.0**top)
            rows[row, j] = fraction * 2.0 ** (top - power)
        sums: Float64 = prober.sums(rows).reshape(len(powers), -1) * 2.0**-top
        return sums

    try:
        kept = added(1.0) == np.ldexp(1.0, -np.array(powers))[:, None]
        width = min(int(np.cumprod(column).sum()) for column in kept.T) + 1
        how: Rounding = "unclear"
        if 1 < width <= len(powers):
            rest = added(1.5)[width - 1]  # 1 + ¾ of the last bit
            is_up, is_down = (rest == 2.0 ** (1 - width)).all(), (rest == 0.0).all()
            how = "nearest" if is_up else "truncated" if is_down else "unclear"
        fused = _fused(prober, tree, bits, random)
    except NoTreeError as error:
        return Sums(input_bits=bits, probes=prober.probes, reason=str(error))
    return Sums(
        accumulator_bits=width, rounding=how, products=fused, input_bits=bits, probes=prober.probes
    )


def _fused(prober: Prober, tree: Tree, bits: int, random: np.random.Generator) -> Products:
    """Whether the sum of −fl(a·b) and a·b is the rounding error of a·b, in either order."""
    multiplier, terms = prober.multiplier, prober.terms
    width = rounding.FORMATS[multiplier.storage][0]
    if 2 * bits <= max(width, 24):  # all products are exact
        return "unrounded"
    if prober.is_product:
        return "unclear"
    pairs = summation_tree.joined_by_one(tree)
    pairs = pairs[:: max(1, len(pairs) // 4)][:4]
    pairs += [pair[::-1] for pair in pairs]
    are_right = []  # of the sums that are not zero
    for (first, second), _ in itertools.product(pairs, range(4)):
        a, b = (1 + np.rint(random.random(2) * 2 ** (bits - 1)) / 2.0 ** (bits - 1)).tolist()
        exact = Fraction(a) * Fraction(b)  # of [1, 4)
        unit = Fraction(2) ** ((1 if exact >= 2 else 0) + 1 - width)
        rounded = round(exact / unit) * unit
        A, B = np.zeros((terms, terms)), np.zeros((terms, terms))
        A[:, first], B[first] = -float(rounded), 1
        A[:, second], B[second] = a, b
        prober.probes += 1
        if error := float(multiplier.multiply(A, B)[0, 0]):
            are_right.append(error == float(exact - rounded))
    if not are_right:
        return "rounded"
    return "unrounded" if all(are_right) else "unclear"
