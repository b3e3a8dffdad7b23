"""Whole-number arithmetic of C on numbers and names, written as expressions of front matter."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from matbench.kernelfile import signature
from matbench.kernelfile.expressions import ExpressionError, whole

Text = int | str
#: Larger numbers are no sizes, and longer sums no expressions.
_MOST = 1 << 40
_MOST_PRODUCTS = 32
_OF_NUMBERS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne, "/": operator.floordiv, "%": operator.mod,
}  # fmt: skip


class Term(NamedTuple):
    """A sum of products of names: `{("BM", "N"): 2, (): 1}` is 2·BM·N + 1."""

    products: Mapping[tuple[str, ...], int]

    @property
    def number(self) -> int | None:
        """The term as a number, if no name is in it."""
        return self.products.get((), 0) if not self.products.keys() - {()} else None

    @property
    def text(self) -> Text:
        """The term in front matter."""
        if self.number is not None:
            return self.number
        ordered = sorted(self.products.items(), key=lambda item: (item[1] < 0, not item[0]))
        signed = [f"{'-' if many < 0 else '+'} {_product(of, many)}" for of, many in ordered]
        return re.sub(r"^\+ |^(-) ", r"\1", " ".join(signed))


def term_of(text: Text) -> Term:
    """A number, or an expression of front matter, as a term."""
    return Term({(): text} if text else {}) if isinstance(text, int) else Term({(text,): 1})


def replaced(text: Text, values: Mapping[str, Text]) -> Text:
    """An expression of front matter with values in place of names."""
    there = signature.with_types(str(text), {name: str(value) for name, value in values.items()})
    try:
        return whole(there, {})
    except ExpressionError:
        return there


def combined(a: Term | None, sign: str, b: Term | None) -> Term | None:
    """`a + b`, `a / b` …; None if there is no such expression."""
    if a is None or b is None:
        return None
    if sign in _OF_NUMBERS:
        return _compared(a, sign, b)
    if sign in ("<<", ">>"):
        power = term_of(1 << b.number) if b.number is not None and 0 <= b.number < 32 else None
        return combined(a, "*" if sign == "<<" else "/", power)
    products = Counter(a.products)
    if sign in ("+", "-"):
        for of, many in b.products.items():
            products[of] += many if sign == "+" else -many
    elif sign == "*":
        products = Counter()
        for of, many in a.products.items():
            for other, times in b.products.items():
                products[tuple(sorted(of + other))] += many * times
    else:
        return None
    largest = max(map(abs, products.values()), default=0)
    is_small = len(products) <= _MOST_PRODUCTS and largest < _MOST
    return Term({of: n for of, n in products.items() if n}) if is_small else None


def _product(names: tuple[str, ...], many: int) -> str:
    if names and abs(many) == 1:  # a sign in front binds more closely than a division
        alone = len(names) == 1 and many > 0
        return names[0] if alone else " * ".join(map(_factor, names))
    return " * ".join([str(abs(many)), *map(_factor, names)])


def _factor(text: Text) -> str:
    """An operand of a product or a division."""
    return str(text) if re.fullmatch(r"\w+|\w*\([^()]*\)", str(text)) else f"({text})"


def _compared(a: Term, sign: str, b: Term) -> Term | None:
    """The comparison, the remainder, or the quotient: exact if all products can be divided;
    `(a + b - 1) / b` is rounded up."""
    if a.number is not None and b.number is not None:
        is_defined = b.number or sign not in "/%"
        return term_of(int(_OF_NUMBERS[sign](a.number, b.number))) if is_defined else None
    if sign != "/":
        text = f"{_factor(a.text)} {sign} {_factor(b.text)}"
        return term_of(text if sign == "%" else f"({text})")
    if len(b.products) == 1:
        [(divisor, many)] = b.products.items()
        counts = [(Counter(of), n) for of, n in a.products.items()]
        if all(of >= Counter(divisor) and n % many == 0 for of, n in counts):
            return Term({tuple((of - Counter(divisor)).elements()): n // many for of, n in counts})
    over = combined(combined(a, "-", b), "+", term_of(1))
    if over is not None and len(over.products) < len(a.products):
        return term_of(f"ceil_div({over.text}, {b.text})")
    is_product = len(a.products) == 1 and re.fullmatch(r"\w+( \* \w+)*", str(a.text))
    return term_of(f"{a.text if is_product else _factor(a.text)} // {_factor(b.text)}")
