"""The arithmetic of front matter: checked when a kernel is loaded, bounded when evaluated.

An expression is checked as a syntax tree: `_Checked` refuses every kind of node that it does not
list, so there are no other calls, loops or attributes. Only then Python compiles and evaluates it.
Only powers can grow fast; they are limited, as are the text's length and the result.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from types import CodeType

from matbench.errors import MatbenchError

Number = int | float
#: An argument that is no number.
_TENSOR_MAP = re.compile(r"\s*tensor_map\s*\(\s*(\w+)\s*,([^,]+),([^,]+)\)\s*")

MAX_LENGTH = 300
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
#: What `**` is replaced by; no name in an expression can be the same.
_POWER = "**"
_KNOWN = {"__builtins__": {}, _POWER: _power, **FUNCTIONS}
_ARITHMETIC = (
    ast.Expression, ast.Load, ast.UnaryOp, ast.USub, ast.Not, ast.BinOp, ast.Add, ast.Sub, ast.Mult,
    ast.Div, ast.FloorDiv, ast.Mod, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt,
    ast.GtE, ast.BoolOp, ast.And, ast.Or, ast.IfExp,
)  # fmt: skip


def names_in(text: str, names: Collection[str]) -> list[str]:
    """The names in `text`, each once; all must be among `names`."""
    _, used = _compiled(text)
    for name in used:
        if name not in names:
            raise ExpressionError(f"unknown name {name!r}; known: {', '.join(sorted(names))}")
    return list(used)


def evaluate(text: str, values: Mapping[str, Number]) -> Number:
    """The number (or truth value) of `text` with `values` for its names."""
    names_in(text, values.keys())
    try:
        result: Number = eval(_compiled(text)[0], _KNOWN, values)  # noqa: S307 - checked
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
        how = "divide with // or ceil_div, as in ceil_div(N, 16)"
        raise ExpressionError(f"not a whole number; {how}")
    return int(result)


def tensor_map(text: str) -> tuple[str, str, str] | None:
    """The matrix of an argument `tensor_map(A, 128, 64)`, and the rows and columns of its box."""
    match = _TENSOR_MAP.fullmatch(text)
    return (match[1], match[2].strip(), match[3].strip()) if match else None


def constants(let: Mapping[str, int | str], params: Mapping[str, int]) -> dict[str, int]:
    """Swept constants, and the values that `[let]` derives from them and from those above it."""
    values = dict(params)
    for name, text in let.items():
        try:
            values[name] = whole(text, values)
        except ExpressionError as error:
            raise ExpressionError(f"let.{name} {str(text)!r:.60}: {error}") from None
    return values


@functools.lru_cache(maxsize=1024)  # cases of a kernel share all expressions, kernels many
def _compiled(text: str) -> tuple[CodeType, tuple[str, ...]]:
    """`text` compiled, and the names in it, each once."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH} characters")
    checked = _Checked()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = checked.visit(ast.parse(text.strip(), mode="eval"))
        code = compile(ast.fix_missing_locations(tree), "expression", "eval")
    except (SyntaxError, ValueError, MemoryError):
        raise ExpressionError("not an arithmetic expression") from None
    except RecursionError:
        raise ExpressionError("nested too deeply") from None
    return code, tuple(checked.names)


class _Checked(ast.NodeTransformer):
    """Refuses what is not arithmetic, notes the names, and limits powers."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, _ARITHMETIC):
            raise ExpressionError(f"{type(node).__name__.lower()} is not arithmetic")
        return super().generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, int | float):
            raise ExpressionError(f"{node.value!r:.40} is not a number")
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        self.names[node.id] = None
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
            raise ExpressionError(f"only {', '.join(FUNCTIONS)} can be called")
        try:
            inspect.signature(FUNCTIONS[node.func.id]).bind(*node.args)
        except TypeError as error:
            raise ExpressionError(f"{node.func.id}: {error}") from None
        node.args = [self.visit(argument) for argument in node.args]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if not isinstance(node.op, ast.Pow):
            return self.generic_visit(node)
        operands = [self.visit(node.left), self.visit(node.right)]
        return ast.Call(ast.Name(_POWER, ast.Load()), operands, [])
