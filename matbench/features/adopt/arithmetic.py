"""Whole-number arithmetic of C on numbers and names, written as expressions of front matter."""

from __future__ import annotations

import operator
import re
from typing import NamedTuple

#: Larger numbers are no sizes.
_MOST = 1 << 40
_COMPARISONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip


class Term(NamedTuple):
    """An expression plus a number; without the expression, a number."""

    name: str = ""
    plus: int = 0

    @property
    def text(self) -> int | str:
        """The term in front matter."""
        if not self.name:
            return self.plus
        sign = "-" if self.plus < 0 else "+"
        return f"{self.name} {sign} {abs(self.plus)}" if self.plus else self.name

    @property
    def factor(self) -> str:
        """The term as an operand of a product."""
        is_simple = re.fullmatch(r"\w+|\w*\([^()]*\)", str(self.text))
        return str(self.text) if is_simple else f"({self.text})"


def combined(a: Term, sign: str, b: Term) -> Term | None:
    """`a + b`, `a / b` …; None if there is no such expression."""
    if not a.name and not b.name:
        return _computed(a.plus, sign, b.plus)
    if sign in ("+", "-"):
        if not b.name:
            return Term(a.name, a.plus + (b.plus if sign == "+" else -b.plus))
        if sign == "-":
            return Term(f"{a.name or 0} - {Term(b.name).factor}", a.plus - b.plus)
        return Term(f"{a.name} + {b.name}" if a.name else b.name, a.plus + b.plus)
    if sign == "*":
        one = Term("", 1)
        product, _, number = a.name.rpartition(" * ")
        if not b.name and not a.plus and number.isdigit():
            a, b = Term(product), Term("", int(number) * b.plus)
        return b if a == one else a if b == one else Term(f"{_left(a)} * {b.factor}")
    if sign == "/":
        return _divided(a, b)
    if sign == "%":
        return Term(f"{_left(a)} % {b.factor}")
    return Term(f"({a.factor} {sign} {b.factor})") if sign in _COMPARISONS else None


def _left(a: Term) -> str:
    return a.name if re.fullmatch(r"\w+( \* \w+)*", a.name) and not a.plus else a.factor


def _computed(a: int, sign: str, b: int) -> Term | None:
    if sign in _COMPARISONS:
        return Term("", int(_COMPARISONS[sign](a, b)))
    is_shift = sign in ("<<", ">>") and 0 <= b < 32
    number = {
        "+": a + b, "-": a - b, "*": a * b, "/": a // b if b else None, "%": a % b if b else None,
        "<<": a << b if is_shift else None, ">>": a >> b if is_shift else None,
    }.get(sign)  # fmt: skip
    return Term("", number) if number is not None and abs(number) < _MOST else None


def _divided(a: Term, b: Term) -> Term | None:
    """The quotient; `(a + b - 1) / b` is rounded up."""
    if b == Term("", 1):
        return a
    whole = ""
    if not b.name and a.plus == b.plus - 1:
        whole = a.name
    elif b.name and not b.plus and a.plus == -1:
        if a.name.endswith(f" + {b.name}"):
            whole = a.name.removesuffix(f" + {b.name}")
        elif a.name.startswith(f"{b.name} + "):
            whole = a.name.removeprefix(f"{b.name} + ")
    return Term(f"ceil_div({whole}, {b.text})") if whole else Term(f"{_left(a)} // {b.factor}")
