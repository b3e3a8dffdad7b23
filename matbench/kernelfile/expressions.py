"""The arithmetic of front matter: checked when a kernel is loaded, bounded when evaluated.

An expression is compiled to nested functions of the values of its names. `_compiled` refuses every
kind of node that it does not list, so there are no other calls, loops or attributes. Only powers
can grow fast; they are limited, as are the text's length, its depth and the result.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import math
import operator
import warnings
from collections.abc import Callable, Collection, Mapping

from matbench.errors import MatbenchError

Number = int | float
_Compiled = Callable[[Mapping[str, Number]], Number]

MAX_LENGTH = 300
MAX_DEPTH = 40
#: Larger than any product of sizes and parameters that matbench accepts.
MAX_MAGNITUDE = 2**256


class ExpressionError(MatbenchError):
    """An expression is refused, or cannot be evaluated with the given values."""


def ceil_div(a: int, b: int) -> int:
    """The smallest whole number of pieces of size `b` that cover `a`."""
    return -(-a // b)


def is_power_of_two(a: Number) -> bool:
    """Whether a is 1, 2, 4, 8, …, as a tree reduction needs."""
    return a >= 1 and a == int(a) and int(a).bit_count() == 1


def _power(base: Number, exponent: Number) -> Number:
    if not 0 <= exponent <= 64 or abs(base) > 2**64:
        raise ExpressionError("powers are limited to exponents from 0 to 64 and bases up to 2**64")
    if base < 0 and exponent != int(exponent):
        raise ExpressionError("a negative number has no real root")
    return base**exponent


FUNCTIONS: dict[str, Callable[..., Number]] = {
    "ceil_div": ceil_div,
    "is_power_of_two": is_power_of_two,
    "max": lambda a, b, *more: max(a, b, *more),
    "min": lambda a, b, *more: min(a, b, *more),
}
_OPERATORS: dict[type[ast.AST], Callable[..., Number]] = {
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


def names_in(text: str, names: Collection[str]) -> list[str]:
    """The names in `text`, in order of appearance; all must be among `names`."""
    used = list(_parsed(text)[1])
    for name in used:
        if name not in names:
            raise ExpressionError(f"unknown name {name!r}; known: {', '.join(sorted(names))}")
    return used


def evaluate(text: str, values: Mapping[str, Number]) -> Number:
    """The number (or truth value) of `text` with `values` for its names."""
    names_in(text, values.keys())
    try:
        result = _parsed(text)[0](values)
    except ZeroDivisionError:
        raise ExpressionError("division by zero") from None
    except OverflowError:
        result = math.inf
    if not abs(result) <= MAX_MAGNITUDE:
        raise ExpressionError("the value is too large")
    return result


def whole(text: int | str, values: Mapping[str, Number]) -> int:
    """A whole number: a literal, or an expression that yields one."""
    if isinstance(text, int):
        return text
    result = evaluate(text, values)
    if not isinstance(result, int):
        example = _rounded_up(text)
        as_in = f", as in {example}" if example else ""
        raise ExpressionError(f"not a whole number; divide with // or ceil_div{as_in}")
    return int(result)


def _rounded_up(text: str) -> str | None:
    """The likely meaning of a division: `ceil_div(N, 16)` for `(N + 15) / 16`."""
    match ast.parse(text.strip(), mode="eval").body:
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            divisor, whole = ast.unparse(right), ast.unparse(left)
            amount, _, more = whole.rpartition(" + ")
            less = {f"{divisor} - 1", f"({divisor} - 1)"}
            if divisor.isdecimal():
                less.add(str(int(divisor) - 1))
            return f"ceil_div({amount if amount and more in less else whole}, {divisor})"
    return None


@functools.lru_cache(maxsize=1024)  # cases of a kernel share all expressions, kernels many
def _parsed(text: str) -> tuple[_Compiled, tuple[str, ...]]:
    """`text` compiled, and the names in it in order of appearance."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ExpressionError("not an arithmetic expression") from None
    used: dict[str, None] = {}
    return _compiled(tree.body, used, 0), tuple(used)


def _compiled(node: ast.AST, used: dict[str, None], depth: int) -> _Compiled:
    """A node and its descendants as a function; adds the names to `used` in text order."""
    if depth > MAX_DEPTH:
        raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels")

    def parts(*nodes: ast.AST) -> list[_Compiled]:
        return [_compiled(child, used, depth + 1) for child in nodes]

    def applied(function: Callable[..., Number], *nodes: ast.AST) -> _Compiled:
        operands = parts(*nodes)
        return lambda values: function(*[operand(values) for operand in operands])

    match node:
        case ast.Constant(value=int() | float() as number):
            return lambda values: number
        case ast.Constant(value=other):
            raise ExpressionError(f"{other!r:.40} is not a number")
        case ast.Name(id=name):
            used[name] = None
            return lambda values: values[name]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            try:
                inspect.signature(FUNCTIONS[name]).bind(*args)
            except TypeError as error:
                raise ExpressionError(f"{name}: {error}") from None
            return applied(FUNCTIONS[name], *args)
        case ast.Call():
            raise ExpressionError(f"only {', '.join(FUNCTIONS)} can be called")
        case ast.UnaryOp(op=op, operand=operand):
            return applied(_operator(op), operand)
        case ast.BinOp(left=left, op=op, right=right):
            return applied(_operator(op), left, right)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            operators, operands = [_operator(op) for op in ops], parts(left, *comparators)
            # Each operand is evaluated once; otherwise time would double with every level.
            return lambda values: all(
                compare(*pair)
                for compare, pair in zip(
                    operators, itertools.pairwise(o(values) for o in operands), strict=True
                )
            )
        case ast.BoolOp(op=op, values=operands):
            return functools.reduce(_or if isinstance(op, ast.Or) else _and, parts(*operands))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            first, condition, second = parts(body, test, orelse)
            return lambda values: first(values) if condition(values) else second(values)
    raise ExpressionError(f"{type(node).__name__.lower()} is not arithmetic")


def _operator(op: ast.AST) -> Callable[..., Number]:
    if type(op) not in _OPERATORS:
        raise ExpressionError(f"{type(op).__name__.lower()} is not arithmetic")
    return _OPERATORS[type(op)]


def _and(left: _Compiled, right: _Compiled) -> _Compiled:
    return lambda values: left(values) and right(values)


def _or(left: _Compiled, right: _Compiled) -> _Compiled:
    return lambda values: left(values) or right(values)
