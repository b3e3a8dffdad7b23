"""The arithmetic of front matter: checked when a kernel is loaded, bounded when evaluated.

`simpleeval` walks the tree; this room narrows it to numbers, so that no expression can call
anything but the functions below, loop, or take unbounded time or memory.
"""

from __future__ import annotations

import ast
import functools
import operator
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

from simpleeval import InvalidExpression, SimpleEval

from matbench.errors import MatbenchError

Number = int | float

MAX_LENGTH = 300
MAX_DEPTH = 40
#: Larger than any product of sizes and parameters that matbench accepts.
MAX_MAGNITUDE = 2**256


class ExpressionError(MatbenchError):
    """An expression that is refused, or that cannot be evaluated with the values at hand."""


def ceil_div(a: int, b: int) -> int:
    """The smallest whole number of pieces of size `b` that cover `a`."""
    return -(-a // b)


def is_power_of_two(a: Number) -> bool:
    """Whether a is 1, 2, 4, 8, … — as a tree that halves needs it."""
    return a >= 1 and a == int(a) and int(a).bit_count() == 1


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil_div": ceil_div,
    "is_power_of_two": is_power_of_two,
    "max": max,
    "min": min,
}


def _power(base: Number, exponent: Number) -> Number:
    if not 0 <= exponent <= 64 or abs(base) > 2**64:
        raise ExpressionError("a power is limited to exponents 0 to 64 and bases up to 2**64")
    if base < 0 and exponent != int(exponent):
        raise ExpressionError("the root of a negative number is no real one")
    return base**exponent


def _bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*operands: Number) -> Any:
        result = function(*operands)
        if not isinstance(result, bool) and not abs(result) <= MAX_MAGNITUDE:
            raise ExpressionError("the value grows without bound")
        return result

    return call


_ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_OPERATORS = {kind: _bounded(function) for kind, function in _ARITHMETIC.items()}
_NODES = (
    ast.Expression, ast.Expr, ast.Constant, ast.Name, ast.Load, ast.Call, ast.IfExp,
    ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.And, ast.Or, ast.Compare, *_OPERATORS,
)  # fmt: skip


def parse(text: str, names: Collection[str]) -> ast.Expr:
    """Parse `text` and refuse all that is not bounded arithmetic over `names`."""
    tree, used = _parsed(text)
    for name in used:
        if name not in names:
            raise ExpressionError(f"{name!r} is not known here; known: {', '.join(sorted(names))}")
    return tree


@functools.lru_cache(maxsize=1024)  # kernels share most of theirs, and the cases of one all
def _parsed(text: str) -> tuple[ast.Expr, tuple[str, ...]]:
    """The tree of `text`, and the names in it in order of appearance."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            body = ast.parse(text.strip(), mode="exec").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ExpressionError("not an arithmetic expression") from None
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        raise ExpressionError("not an arithmetic expression")
    used: list[ast.Name] = []
    _check(body[0], used, 0)
    used.sort(key=lambda node: (node.lineno, node.col_offset))
    return body[0], tuple(dict.fromkeys(node.id for node in used))


def _check(node: ast.AST, used: list[ast.Name], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels")
    if not isinstance(node, _NODES):
        raise ExpressionError(f"{type(node).__name__.lower()} is not arithmetic")
    if isinstance(node, ast.Constant) and type(node.value) not in (int, float, bool):
        raise ExpressionError(f"{node.value!r:.40} is not a number")
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
            raise ExpressionError(f"only {', '.join(FUNCTIONS)} can be called")
        fewest = 1 if node.func.id == "is_power_of_two" else 2
        if len(node.args) < fewest:
            raise ExpressionError(f"{node.func.id} takes {('a number', 'two numbers')[fewest - 1]}")
        for argument in node.args:
            _check(argument, used, depth + 1)
        return
    if isinstance(node, ast.Name):
        used.append(node)
    for child in ast.iter_child_nodes(node):
        _check(child, used, depth + 1)


def names_in(text: str, names: Collection[str]) -> list[str]:
    """The names that `text` mentions, in order of appearance."""
    parse(text, names)
    return list(_parsed(text)[1])


def evaluate(text: str, values: Mapping[str, Number]) -> Number:
    """The number (or truth value) of `text` with `values` for its names."""
    tree = parse(text, values.keys())
    try:
        evaluator = SimpleEval(operators=_OPERATORS, functions=FUNCTIONS, names=dict(values))
        result = evaluator.eval(text, previously_parsed=tree)
    except ExpressionError:
        raise
    except ZeroDivisionError:
        raise ExpressionError("division by zero") from None
    except (InvalidExpression, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ExpressionError(str(error)) from None
    if not abs(result) <= MAX_MAGNITUDE:
        raise ExpressionError("the value grows without bound")
    return result  # type: ignore[no-any-return]


def whole(text: int | str, values: Mapping[str, Number]) -> int:
    """A whole number: a literal, or an expression that yields one."""
    if isinstance(text, int):
        return text
    result = evaluate(text, values)
    if not isinstance(result, int):
        raise ExpressionError("not a whole number; divide with // or ceil_div")
    return int(result)
