"""Reads the launches of a kernel in the host code of its file.

A launch is evaluated as far as it is known: constants become numbers, and what is passed to the
kernel gets the name of the parameter. With `kernel<<<grid, 256>>>(…, n)`, where the parameter is
`N`, `dim3 grid(CEIL_DIV(n, 32))` is `ceil_div(N, 32)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from matbench.features.adopt.arithmetic import Term, combined
from matbench.kernelfile import signature, syntax

if TYPE_CHECKING:
    from tree_sitter import Node

    from matbench.kernelfile.signature import Function

Text = int | str
ITEM_BYTES = {"double": 8, "half": 2, "__half": 2, "__nv_bfloat16": 2, "float4": 16, "char": 1}
#: Functions of libraries that divide and round up.
_CEIL_DIV = {"ceildiv", "divceil", "cdiv", "divup", "idivup", "updiv", "atenceildiv"}
#: How deep definitions may depend on others, and how many launches are read.
_DEEPEST = 24
_MOST_LAUNCHES = 8
#: How many parts of expressions are evaluated for a launch.
_MOST_STEPS = 5000
_LIMIT = "cudaFuncAttributeMaxDynamicSharedMemorySize"


_DEFINING = {
    "preproc_def", "enumerator", "init_declarator", "field_declaration", "assignment_expression",
    "function_declarator",
}  # fmt: skip


class HostLaunch(NamedTuple):
    """A launch in host code; None is not known.

    The sides of grid and block, and the bytes of dynamic shared memory, are in terms of the
    kernel's parameters and template parameters. `given` are the parameters that take a constant or
    an expression.
    """

    template: tuple[Text | None, ...] = ()
    grid: tuple[Text | None, ...] = ()
    block: tuple[Text | None, ...] = ()
    shared: Text | None = 0
    given: Mapping[str, Text] = {}


class _Definition(NamedTuple):
    """A variable or macro; with `parameters`, a function of one expression."""

    name: str
    text: str
    at: int = 0
    owner: int = 0
    parameters: tuple[str, ...] | None = None


def launches(code: str, function: Function) -> tuple[HostLaunch, ...]:
    """The launches of a kernel in a text without comments, each once."""
    if "<<<" not in code:
        return ()
    root = syntax.parse(code)
    calls = [node for node in syntax.walk(root) if node.type == "call_expression"]
    definitions = [*_definitions(root)]
    distinct: dict[str, HostLaunch] = {}
    for call in calls:
        if _of_type(call, "kernel_call_syntax"):
            reader = _Reader(definitions, calls, call)
            if reader.name == _last(function.name):
                launch = reader.launch(function)
                distinct.setdefault(repr(launch), launch)
    return tuple(distinct.values())[:_MOST_LAUNCHES]


# -- definitions -----------------------------------------------------------------------------------


def _definitions(root: Node) -> Iterator[_Definition]:
    for node in syntax.walk(root):
        name = next(
            filter(None, (syntax.fields(node, of) for of in ("name", "declarator", "left"))), None
        )
        values = (
            syntax.fields(node, of) for of in ("value", "default_value", "right", "parameters")
        )
        value = next(filter(None, values), None)
        if name is None:
            continue
        if node.type in ("function_definition", "init_declarator", "preproc_function_def"):
            is_lambda = value is not None and value.type == "lambda_expression"
            if node.type != "init_declarator" or is_lambda:
                yield from _functions(node, value if is_lambda and value else node)
                continue
        if value is not None and node.type in _DEFINING:
            text = syntax.text_of(name)
            yield _Definition(text, _text(value), node.start_byte, _owner(node))


def _functions(node: Node, value: Node) -> Iterator[_Definition]:
    """A function of one expression: a macro, a lambda, or a body with only `return`."""
    declarator = syntax.fields(value, "declarator")
    name = syntax.declared(syntax.fields(node, "declarator") or node)
    listed = syntax.fields(declarator or value, "parameters")
    names = [syntax.declared(p) or p for p in (listed.named_children if listed else ())]
    body = syntax.fields(value, "body")
    text = syntax.fields(value, "value")  # of a macro
    if body is not None and [n.type for n in body.named_children] == ["return_statement"]:
        text = next(iter(body.named_children[0].named_children), None)
    if name is not None and text is not None:
        parameters = tuple(map(syntax.text_of, names))
        yield _Definition(
            syntax.text_of(name), _text(text), node.start_byte, _owner(node), parameters
        )


def _owner(node: Node) -> int:
    """Where the function that contains a node begins; 0 outside of functions."""
    above = [outer for outer in syntax.parents(node) if outer.type == "function_definition"]
    return above[0].start_byte + 1 if above else 0


def _text(node: Node) -> str:
    return syntax.text_of(node).replace("\\ ", "").strip()


def _last(name: str) -> str:
    return name.partition("<")[0].rpartition("::")[2].strip()


def _of_type(node: Node, *kinds: str) -> list[Node]:
    return [child for child in node.named_children if child.type in kinds]


def _expression(text: str) -> Node | None:
    """The tree of an expression."""
    for node in syntax.walk(syntax.parse(f"auto matbench = {text};")):
        if node.type == "init_declarator":
            return None if node.has_error else syntax.fields(node, "value")
    return None


# -- one launch ------------------------------------------------------------------------------------


class _Reader:
    """Evaluates expressions as they are meant at one launch, `call`."""

    def __init__(
        self, definitions: Sequence[_Definition], calls: Sequence[Node], call: Node
    ) -> None:
        self.calls, self.call = calls, call
        owner = _owner(call)
        seen = [
            d for d in definitions if d.owner == 0 or (d.owner == owner and d.at < call.start_byte)
        ]
        seen.sort(key=lambda definition: definition.owner > 0)  # a function's own come last
        self.values = {d.name: d.text for d in seen if d.parameters is None}
        self.functions = {d.name: d for d in seen if d.parameters is not None}
        self.values |= self._of_template(owner)
        called = syntax.fields(call, "function")
        text = syntax.text_of(called) if called is not None else ""
        self.called = self.values.get(text, text).removeprefix("&")
        self.name = _last(self.called)
        #: The terms that stand for texts of host code.
        self.known: dict[str, Term] = {}
        self.steps = 0

    def _of_template(self, owner: int) -> dict[str, str]:
        """The template arguments of the function that launches, as another function gives them."""
        outer = next((n for n in syntax.parents(self.call) if n.start_byte + 1 == owner), None)
        if outer is None or outer.parent is None or outer.parent.type != "template_declaration":
            return {}
        function = signature.function(outer)
        for call in self.calls:
            called = syntax.fields(call, "function")
            if called is not None and _last(syntax.text_of(called)) == _last(function.name):
                given = _arguments(syntax.text_of(called))
                return dict(zip((p.name for p in function.template), given, strict=False))
        return {p.name: "" for p in function.template if p.default is None}

    def launch(self, function: Function) -> HostLaunch:
        """The launch in terms of the kernel's parameters."""
        [configuration] = _of_type(self.call, "kernel_call_syntax")
        grid, block, *more = map(_text, configuration.named_children)
        template = self.template(function)
        given = self.arguments(function, block)
        shared = self.term(more[0]) if more else Term()
        if shared is None:
            shared = self.term(self.limit())
        bytes_ = shared.text if shared is not None else None
        blocks = self.sides(grid) if given is not None else ()
        return HostLaunch(template, blocks, self.sides(block), bytes_, given or {})

    def limit(self) -> str:
        """The shared memory that `cudaFuncSetAttribute` allows the kernel."""
        for call in self.calls:
            text, listed = syntax.text_of(call), syntax.fields(call, "arguments")
            is_setting = text.startswith("cudaFuncSetAttribute") and _LIMIT in text
            if is_setting and self.name in text and listed is not None:
                return _text(listed.named_children[-1])
        return ""

    def template(self, function: Function) -> tuple[Text | None, ...]:
        """The template arguments; from now on, names among them are the template's parameters."""
        arguments: list[Text | None] = []
        for parameter, text in zip(function.template, _arguments(self.called), strict=False):
            term = self.term(text)
            if parameter.kind in ("typename", "class"):
                kind = self.values.get(text, text)
                arguments.append(kind if kind in ITEM_BYTES or kind == "float" else None)
            elif parameter.kind == "bool":
                arguments.append(str(bool(term.plus)).lower() if term is not None else None)
            else:
                arguments.append(term.plus if term is not None and not term.name else None)
        for parameter, text in zip(function.template, _arguments(self.called), strict=False):
            if text.isidentifier() and parameter.kind not in ("typename", "class", "bool"):
                self.known.setdefault(text, Term(parameter.name))
        return tuple(arguments)

    def arguments(self, function: Function, block: str) -> dict[str, Text] | None:
        """The parameters that take a constant or an expression; what others take gets their name.
        None if the launch has another number of arguments.

        A constant is a size, unless the block has it as a side.
        """
        listed = syntax.fields(self.call, "arguments")
        passed = [_bare(node) for node in (listed.named_children if listed is not None else ())]
        if len(passed) != len(function.parameters):
            return None
        pairs = [
            (parameter.name, node)
            for parameter, node in zip(function.parameters, passed, strict=True)
            if not parameter.pointer and "int" in signature.SCALARS.get(parameter.type, "")
        ]
        pairs.sort(key=lambda pair: _is_stride(pair[0]))
        given: dict[str, Text] = {}
        for name, node in pairs:
            text = _text(node)
            term = self.term(text)
            if term is not None and not term.name and len(given) + 1 < len(pairs):
                kept, self.known = self.known, {**self.known, text: Term(name)}
                is_side = any(name in str(side).split() for side in self.sides(block))
                self.known = kept
                if is_side:
                    given[name] = term.plus
                    continue
            is_expression = node.type in ("binary_expression", "call_expression")
            if term is not None and term.name and is_expression and not _is_stride(name):
                given[name] = term.text
            while text and text not in self.known:
                self.known[text] = Term(name)
                text = self.values.get(text, "")
        return given

    def sides(self, text: str, depth: int = 0) -> tuple[Text | None, ...]:
        """The sides of a `dim3`, without those at its end that are 1."""
        is_named = text in self.values or f"{text}.x" in self.values
        if is_named and text not in self.known and depth < _DEEPEST:
            sides = [*self.sides(self.values.get(text, ""), depth + 1), 1, 1][:3]
            for axis, side in enumerate("xyz"):
                own = self.values.get(f"{text}.{side}")
                sides[axis] = self.number(own, depth + 1) if own else sides[axis]
        else:
            inner = text.removeprefix("dim3").strip()
            is_list = inner[:1] in ("(", "{") and _closing(inner) == len(inner)
            pieces = signature.pieces(inner[1:-1], "([{", ")]}") if is_list else (inner,)
            sides = [self.number(piece, depth + 1) for piece in pieces if piece] or [1]
        while len(sides) > 1 and sides[-1] == 1:
            sides.pop()
        return tuple(sides)

    def number(self, text: str, depth: int = 0) -> Text | None:
        """The value of an expression."""
        term = self.term(text, depth)
        return term.text if term is not None else None

    def term(self, text: str, depth: int = 0) -> Term | None:
        """The value of an expression; None if it is not known."""
        if text in self.known:
            return self.known[text]
        node = _expression(text) if text and depth < _DEEPEST else None
        return self.of(node, depth + 1) if node is not None else None

    def of(self, node: Node, depth: int) -> Term | None:
        """The value of a tree."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return None
        if (text := _text(node)) in self.known:
            return self.known[text]
        kind, parts = node.type, [child for child in node.named_children if child.type != "comment"]
        if kind in ("parenthesized_expression", "initializer_list", "argument_list"):
            return self.of(parts[0], depth) if len(parts) == 1 else None
        if kind == "cast_expression":
            return self.of(parts[-1], depth)
        if kind == "number_literal":
            return _literal(text)
        if kind == "sizeof_expression":
            name = text.removeprefix("sizeof").strip("( )")
            return Term("", ITEM_BYTES.get(self.values.get(name, name), 4))
        if kind == "call_expression":
            return self.called_value(node, depth)
        values = [self.of(part, depth) for part in parts] if "_expression" in kind else []
        if kind in ("binary_expression", "unary_expression") and None not in values:
            a, b = [Term(), *values][-2:]
            sign = syntax.text_of(node.children[-2 if kind[0] == "b" else 0])
            return combined(a, sign, b)  # type: ignore[arg-type]
        if kind == "conditional_expression" and len(values) == 3 and None not in values:
            if_, yes, no = values
            name = f"({yes.text} if {if_.text} else {no.text})"  # type: ignore[union-attr]
            return Term(name) if if_ is not None and if_.name else yes if if_ and if_.plus else no
        return self.named(text, depth)

    def named(self, text: str, depth: int) -> Term | None:
        """The value of a name; sizes keep those of BLAS."""
        of, _, axis = text.rpartition(".")
        if text in ("true", "false"):
            return Term("", int(text == "true"))
        for name in (text, _last(text)):
            if name in self.values:
                return self.term(self.values[name], depth)
        if of in self.values and axis in ("x", "y", "z"):
            side = [*self.sides(of, depth), 1, 1]["xyz".index(axis)]
            return Term("", side) if isinstance(side, int) else Term(side) if side else None
        return Term(text.upper()) if text in ("M", "N", "K", "m", "n", "k") else None

    def called_value(self, node: Node, depth: int) -> Term | None:
        """The value of a call of a function that the text defines, or that libraries have."""
        function, listed = syntax.fields(node, "function"), syntax.fields(node, "arguments")
        nodes = listed.named_children if listed is not None else []
        name = _last(syntax.text_of(function)) if function is not None else ""
        if (
            name in ("ceil", "ceilf")
            and nodes
            and (over := _bare(nodes[0])).type == "binary_expression"
        ):
            name, nodes = "cdiv", over.named_children
        found = [self.of(part, depth) for part in nodes]
        values = [value for value in found if value is not None]
        if not values or len(values) < len(found) or depth > _DEEPEST:
            return None
        if name in self.functions:
            definition, kept = self.functions[name], self.known
            self.known = kept | dict(zip(definition.parameters or (), values, strict=False))
            try:
                return self.term(definition.text, depth)
            finally:
                self.known = kept
        if len(values) == 1:
            return values[0] if name.endswith("_cast") or name in signature.SCALARS else None
        a, b = values[:2]
        if name in ("min", "max"):
            return Term(f"{name}({a.text}, {b.text})")
        if name.replace("_", "").lower() in _CEIL_DIV:
            more = combined(a, "+", b) if not b.name else None
            return (
                combined(Term(more.name, more.plus - 1), "/", b)
                if more
                else Term(f"ceil_div({a.text}, {b.text})")
            )
        return None


def _is_stride(name: str) -> bool:
    return name.lower().startswith(("ld", "stride"))


def _bare(node: Node) -> Node:
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


def _literal(text: str) -> Term | None:
    digits = text.lower().replace("'", "")
    try:
        if digits.startswith("0x"):
            return Term("", int(digits.rstrip("ul"), 16))
        number = float(digits.rstrip("ulf"))
    except ValueError:
        return None
    return Term("", int(number)) if number.is_integer() else None


def _arguments(called: str) -> tuple[str, ...]:
    """The template arguments of `kernel<64, 64>`."""
    inside = called.partition("<")[2].removesuffix(">")
    return signature.pieces(inside) if inside else ()


def _closing(text: str) -> int:
    """The position after the bracket that closes the first one."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if depth == 0:
            return position + 1
    return len(text)
