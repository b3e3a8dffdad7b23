"""The definitions in a CUDA C++ text, and the value of expressions at a place of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from matbench.features.adopt.arithmetic import Term, Text, combined, replaced, term_of
from matbench.kernelfile import signature, syntax

if TYPE_CHECKING:
    from tree_sitter import Node

    from matbench.kernelfile.signature import Signature


ITEM_BYTES = {"double": 8, "half": 2, "__half": 2, "__nv_bfloat16": 2, "float4": 16, "char": 1}
#: Functions of libraries that divide and round up.
_CEIL_DIV = {"ceildiv", "divceil", "cdiv", "divup", "idivup", "updiv", "atenceildiv"}
#: How deep definitions may depend on others, and how many parts an expression may have.
_DEEPEST = 24
_MOST_STEPS = 5000
_DEFINING = {
    "preproc_def", "enumerator", "init_declarator", "field_declaration", "assignment_expression",
    "function_declarator",
}  # fmt: skip
_CONSTANT = {"preproc_def", "enumerator", "field_declaration"}


class Definition(NamedTuple):
    """A variable or macro, in the function that begins at `owner`; with `parameters`, a function of
    one expression."""

    name: str
    text: str
    at: int = 0
    owner: int = 0
    is_constant: bool = False
    parameters: tuple[str, ...] | None = None


def definitions(root: Node) -> Iterator[Definition]:
    """All definitions of values in a tree, and of what yields one expression: macros, lambdas, and
    functions with only `return`."""
    for node in syntax.walk(root):
        name = _first(node, "name", "declarator", "left")
        value = _first(node, "value", "default_value", "right", "parameters")
        is_lambda = node.type == "init_declarator" and value and value.type == "lambda_expression"
        parameters, is_constant = None, node.type in _CONSTANT
        if is_lambda or node.type in ("function_definition", "preproc_function_def"):
            name = syntax.declared(syntax.fields(node, "declarator") or node)
            function = value if is_lambda and value else node
            listed = syntax.fields(syntax.fields(function, "declarator") or function, "parameters")
            names = (syntax.declared(p) or p for p in (listed.named_children if listed else ()))
            parameters, is_constant = tuple(map(syntax.text_of, names)), True
            value, body = syntax.fields(function, "value"), syntax.fields(function, "body")
            if body is not None and [n.type for n in body.named_children] == ["return_statement"]:
                value = next(iter(body.named_children[0].named_children), None)
        elif node.type not in _DEFINING or (
            syntax.text_of(syntax.fields(node, "operator")) not in ("", "=")
        ):
            continue
        elif not is_constant and node.parent is not None:  # what surrounds those may be large
            is_constant = bool(signature.words(node.parent) & {"const", "constexpr", "static"})
        if name is not None and value is not None:
            text = syntax.text_of(value).replace("\\ ", "").strip()  # without continued lines
            owner = _begin(_function_around(node))
            named = syntax.text_of(name)
            yield Definition(named, text, node.start_byte, owner, is_constant, parameters)


def _first(node: Node, *names: str) -> Node | None:
    return next(filter(None, (syntax.fields(node, name) for name in names)), None)


def definition_of(root: Node, function: Signature) -> Node | None:
    """The node that defines a kernel, if the parser sees it."""
    nodes = signature.entries(root)
    lines = (syntax.line_of(signature.name_of(node) or node) for node in nodes)
    return next((n for n, line in zip(nodes, lines, strict=True) if line == function.line), None)


def _function_around(node: Node) -> Node | None:
    return next((n for n in syntax.parents(node) if n.type == "function_definition"), None)


def _begin(function: Node | None) -> int:
    """Where a function begins; 0 outside of functions."""
    return function.start_byte + 1 if function is not None else 0


def last(name: str) -> str:
    """A name without namespaces and template arguments."""
    return name.partition("<")[0].rpartition("::")[2].strip()


def bare(node: Node) -> Node:
    """An expression without casts and parentheses around it."""
    while node.named_children:
        function = syntax.fields(node, "function")
        is_cast = function is not None and "_cast<" in syntax.text_of(function)
        if is_cast and len(listed := node.named_children[-1].named_children) == 1:
            node = listed[0]
        elif node.type in ("parenthesized_expression", "cast_expression"):
            node = node.named_children[-1]
        else:
            break
    return node


class Scope:
    """Evaluates expressions as they are meant at a node, in its `function` if there is one.

    If that is a function itself, a kernel's, names without a value stand for themselves.
    """

    def __init__(self, given: Sequence[Definition], node: Node) -> None:
        self.node, self.is_kernel = node, node.type == "function_definition"
        self.function = node if self.is_kernel else _function_around(node)
        owner, at = _begin(self.function), node.end_byte if self.is_kernel else node.start_byte
        seen = [d for d in given if d.owner == 0 or (d.owner == owner and d.at < at)]
        seen.sort(key=lambda definition: definition.owner > 0)  # a function's own come last
        self.constants = {d.name for d in seen if d.is_constant and d.parameters is None}
        self.values = {d.name: d.text for d in seen if d.parameters is None}
        self.functions = {d.name: d for d in seen if d.parameters is not None}
        #: The terms that stand for texts.
        self.known: dict[str, Term] = {}
        self.steps = 0

    def sides(self, text: str, depth: int = 0) -> tuple[Text | None, ...]:
        """The sides of a `dim3`, without those at its end that are 1."""
        is_named = text in self.values or f"{text}.x" in self.values
        if is_named and text not in self.known and depth < _DEEPEST:
            sides = [*self.sides(self.values.get(text, ""), depth + 1), 1, 1][:3]
            for axis, side in enumerate("xyz"):
                own = self.values.get(f"{text}.{side}")
                sides[axis] = self.text(own, depth + 1) if own else sides[axis]
        else:
            inner = text.removeprefix("dim3").strip()
            is_list = inner[:1] == "{" or syntax.closing(inner, 0) == len(inner) > 1
            pieces = signature.pieces(inner[1:-1], "([{", ")]}") if is_list else (inner,)
            sides = [self.text(piece, depth + 1) for piece in pieces if piece] or [1]
        while len(sides) > 1 and sides[-1] == 1:
            sides.pop()
        return tuple(sides)

    def text(self, text: str, depth: int = 0) -> Text | None:
        """The value of an expression in front matter."""
        term = self.term(text, depth)
        return term.text if term is not None else None

    def term(self, text: str, depth: int = 0) -> Term | None:
        """The value of an expression; None if it is not known."""
        self.steps = self.steps if depth else 0
        if text in self.known:
            return self.known[text]
        tree = syntax.parse(f"auto matbench = {text};") if text and depth < _DEEPEST else None
        nodes = (n for n in (syntax.walk(tree) if tree else ()) if n.type == "init_declarator")
        node = next(nodes, None)
        value = syntax.fields(node, "value") if node and not node.has_error else None
        return self.of(value, depth + 1) if value is not None else None

    def of(self, node: Node, depth: int = 0) -> Term | None:
        """The value of a tree."""
        self.steps = self.steps + 1 if depth else 0
        if self.steps > _MOST_STEPS:
            return None
        text, kind = syntax.text_of(node), node.type
        if text in self.known:
            return self.known[text]
        parts = [child for child in node.named_children if child.type != "comment"]
        if kind in ("parenthesized_expression", "initializer_list", "argument_list"):
            return self.of(parts[0], depth + 1) if len(parts) == 1 else None
        if kind == "cast_expression":
            return self.of(parts[-1], depth + 1)
        if kind == "number_literal":
            return _literal(text)
        if kind == "call_expression":
            return self._called(node, depth + 1)
        if kind == "sizeof_expression":
            name = text.removeprefix("sizeof").strip("( )")
            return term_of(ITEM_BYTES.get(self.values.get(name, name), 4))
        if "_expression" in kind and kind != "field_expression":
            return self._computed(node, [self.of(part, depth + 1) for part in parts])
        return self._named(text, depth + 1)

    def _computed(self, node: Node, values: list[Term | None]) -> Term | None:
        """The value of an operator."""
        if node.type in ("binary_expression", "unary_expression"):
            a, b = [term_of(0), *values][-2:]
            return combined(a, syntax.text_of(node.children[-2 if len(values) > 1 else 0]), b)
        known = [value for value in values if value is not None]
        if node.type != "conditional_expression" or len(known) < 3:
            return None
        if_, yes, no = known
        if if_.number is not None:
            return yes if if_.number else no
        return term_of(f"({yes.text} if {if_.text} else {no.text})")

    def _named(self, text: str, depth: int) -> Term | None:
        """The value of a name; sizes keep those of BLAS."""
        of, _, axis = text.rpartition(".")
        if text in ("true", "false"):
            return term_of(int(text == "true"))
        for name in (text, last(text)):
            if name in self.values:
                return self.term(self.values[name], depth)
        if of in self.values and axis in ("x", "y", "z"):
            side = [*self.sides(of, depth), 1, 1]["xyz".index(axis)]
            return term_of(side) if side is not None else None
        if self.is_kernel:
            return term_of(text.replace(".", "_")) if text.replace(".", "").isidentifier() else None
        return term_of(text.upper()) if text in ("M", "N", "K", "m", "n", "k") else None

    def _called(self, node: Node, depth: int) -> Term | None:
        """The value of a call of a function that the text defines, or that libraries have."""
        function, listed = syntax.fields(node, "function"), syntax.fields(node, "arguments")
        nodes = listed.named_children if listed is not None else []
        name = last(syntax.text_of(function))
        over = bare(nodes[0]) if name in ("ceil", "ceilf") and nodes else None
        if over is not None and over.type == "binary_expression":
            name, nodes = "cdiv", over.named_children
        found = [self.of(part, depth) for part in nodes]
        values = [value for value in found if value is not None]
        if not values or len(values) < len(found) or depth > _DEEPEST:
            return None
        if len(values) == 2 and name.replace("_", "").lower() in _CEIL_DIV:
            above = combined(combined(values[0], "+", values[1]), "-", term_of(1))
            return combined(above, "/", values[1])
        if name in self.functions:
            definition, kept = self.functions[name], self.known
            self.known = kept | dict(zip(definition.parameters or (), values, strict=False))
            term = self.term(definition.text, depth)
            self.known = kept
            return term
        if len(values) == 1:
            return values[0] if name.endswith("_cast") or name in signature.SCALARS else None
        if name in ("min", "max"):
            return term_of(replaced(f"{name}({values[0].text}, {values[1].text})", {}))
        return None


def _literal(text: str) -> Term | None:
    digits = text.lower().replace("'", "")
    try:
        is_hexadecimal = digits.startswith("0x")
        value = int(digits.rstrip("ul"), 16) if is_hexadecimal else float(digits.rstrip("ulf"))
    except ValueError:
        return None
    return term_of(int(value)) if math.isfinite(value) and value == int(value) else None
