"""Reads the launches of a kernel in the host code of its file.

A launch is evaluated as far as it is known: constants become numbers, and what is passed to the
kernel gets the name of the parameter. With `kernel<<<grid, 256>>>(…, n)`, where the parameter is
`N`, `dim3 grid(CEIL_DIV(n, 32))` is `ceil_div(N, 32)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from matbench.features.adopt import names
from matbench.features.adopt.arithmetic import Text, term_of
from matbench.features.adopt.scope import (
    ITEM_BYTES,
    Definition,
    Scope,
    bare,
    definitions,
    last,
    owner_of,
    text_of,
)  # fmt: skip
from matbench.kernelfile import signature, syntax

if TYPE_CHECKING:
    from tree_sitter import Node

    from matbench.kernelfile.signature import Signature
    from matbench.model import Parameter

_MOST_LAUNCHES = 8
_LIMIT = "cudaFuncAttributeMaxDynamicSharedMemorySize"
_TYPES = ("typename", "class")


class HostLaunch(NamedTuple):
    """A launch in host code; None is not known.

    The sides of grid and block, and the bytes of dynamic shared memory, are in terms of the
    kernel's parameters and template parameters. `given` are the parameters that take a constant or
    an expression; `settings` those of them that are no sizes by name. `passed` is what the others
    take in the host's words. It is at a `line` of the kernel's own file, or of another `file`.
    """

    template: tuple[Text | None, ...] = ()
    grid: tuple[Text | None, ...] = ()
    block: tuple[Text | None, ...] = ()
    shared: Text | None = 0
    given: Mapping[str, Text] = {}
    settings: Mapping[str, int] = {}
    passed: Mapping[str, str] = {}
    file: str = ""
    line: int = 0


def launches(code: str, function: Signature) -> tuple[HostLaunch, ...]:
    """The launches of a kernel in a text without comments, each once: at first constants that are
    no sizes by the names of their parameters are settings, then all are sizes."""
    if "<<<" not in code:
        return ()
    root = syntax.parse(code)
    calls = [node for node in syntax.walk(root) if node.type == "call_expression"]
    given = [*definitions(root)]
    distinct: dict[str, HostLaunch] = {}
    whole = [p.name for p in function.parameters if not p.pointer and is_whole(p)]
    for settings in (names.settings(whole, function.defaults), []):
        for call in filter(_configurations, calls):
            reader = _Reader(given, calls, call)
            reader.settings = settings
            if reader.name == last(function.name):
                launch = reader.launch(function)
                file, line = syntax.place_of(code, call)
                distinct.setdefault(repr(launch), launch._replace(file=file, line=line))
    return tuple(distinct.values())[:_MOST_LAUNCHES]


def _configurations(call: Node) -> list[Node]:
    return [child for child in call.named_children if child.type == "kernel_call_syntax"]


class _Reader(Scope):
    """Evaluates expressions as they are meant at one launch, `call`."""

    settings: Sequence[str] = ()

    def __init__(self, given: Sequence[Definition], calls: Sequence[Node], call: Node) -> None:
        super().__init__(given, owner_of(call), call.start_byte)
        self.given, self.calls, self.call = given, calls, call
        self.values |= self._of_template(owner_of(call))
        called = syntax.fields(call, "function")
        text = syntax.text_of(called) if called is not None else ""
        self.called = self.values.get(text, text).removeprefix("&")
        self.name = last(self.called)

    def _of_template(self, owner: int) -> dict[str, str]:
        """The template arguments of the function that launches, as another function gives them."""
        outer = next((n for n in syntax.parents(self.call) if n.start_byte + 1 == owner), None)
        if outer is None or outer.parent is None or outer.parent.type != "template_declaration":
            return {}
        function = signature.function(outer)
        for call in self.calls:
            called = syntax.fields(call, "function")
            if called is not None and last(syntax.text_of(called)) == last(function.name):
                given = _arguments(syntax.text_of(called))
                return dict(zip((p.name for p in function.template), given, strict=False))
        return {p.name: "" for p in function.template if p.default is None}

    def launch(self, function: Signature) -> HostLaunch:
        """The launch in terms of the kernel's parameters."""
        [configuration] = _configurations(self.call)
        grid, block, *more = map(text_of, configuration.named_children)
        template = self.template(function)
        passed = self.passed(function)
        given, settings = self.arguments(function, passed, block) if passed else ({}, {})
        shared = self.text(more[0]) if more else 0
        if shared is None:
            shared = self.limit()
        blocks = self.sides(grid) if passed else ()
        words = {name: text_of(node) for name, node in passed.items()}
        return HostLaunch(template, blocks, self.sides(block), shared, given, settings, words)

    def limit(self) -> Text | None:
        """The shared memory that `cudaFuncSetAttribute` allows the kernel."""
        for call in self.calls:
            text, listed = syntax.text_of(call), syntax.fields(call, "arguments")
            is_setting = text.startswith("cudaFuncSetAttribute") and _LIMIT in text
            if is_setting and self.name in text and listed is not None:
                there = Scope(self.given, owner_of(call), call.start_byte)
                return there.text(text_of(listed.named_children[-1]))
        return None

    def template(self, function: Signature) -> tuple[Text | None, ...]:
        """The template arguments; from now on, names among them are the template's parameters."""
        pairs = [*zip(function.template, _arguments(self.called), strict=False)]
        arguments: list[Text | None] = []
        for parameter, text in pairs:
            value = self.text(text)
            if parameter.kind in _TYPES:
                kind = self.values.get(text, text)
                arguments.append(kind if kind in ITEM_BYTES or kind == "float" else None)
            elif not isinstance(value, int):
                arguments.append(None)
            else:
                arguments.append(str(bool(value)).lower() if parameter.kind == "bool" else value)
        for parameter, text in pairs:
            if text.isidentifier() and parameter.kind not in (*_TYPES, "bool"):
                self.known.setdefault(text, term_of(parameter.name))
        return tuple(arguments)

    def passed(self, function: Signature) -> dict[str, Node]:
        """What each parameter takes; nothing if the launch has another number of arguments."""
        listed = syntax.fields(self.call, "arguments")
        nodes = [bare(node) for node in (listed.named_children if listed is not None else ())]
        order = [parameter.name for parameter in function.parameters]
        is_complete = {*order[len(nodes) :]} <= function.defaults.keys()
        fits = is_complete and len(nodes) <= len(order)
        return dict(zip(order, nodes, strict=False)) if fits else {}

    def arguments(
        self, function: Signature, passed: Mapping[str, Node], block: str
    ) -> tuple[dict[str, Text], dict[str, int]]:
        """The parameters that take a constant or an expression, and those of them that are
        settings; what others take gets their name.

        A constant is a size, unless it is a setting or the block has it as a side.
        """
        whole = [p.name for p in function.parameters if not p.pointer and is_whole(p)]
        pairs = [(name, passed[name]) for name in sorted(whole, key=_is_stride) if name in passed]
        given: dict[str, Text] = {}
        settings: dict[str, int] = {}
        for name, node in pairs:
            text = text_of(node)
            value = self.text(text)
            if isinstance(value, int) and len(given) + 1 < len(pairs):
                kept, self.known = self.known, {**self.known, text: term_of(name)}
                is_side = any(name in str(side).split() for side in self.sides(block))
                self.known = kept
                if is_side or name in self.settings:
                    given[name] = value
                    settings |= {} if is_side else {name: value}
                    continue
            is_expression = node.type in ("binary_expression", "call_expression")
            if isinstance(value, str) and is_expression and not _is_stride(name):
                given[name] = value
            while text and text not in self.known:
                self.known[text] = term_of(name)
                text = self.values.get(text, "")
        for name in {*whole} - passed.keys():
            value = self.text(function.defaults[name])
            if isinstance(value, int):
                given[name] = settings[name] = value
        return given, settings


def is_whole(parameter: Parameter) -> bool:
    """Whether it is a whole number."""
    return "int" in signature.SCALARS.get(parameter.type, "")


def _is_stride(name: str) -> bool:
    return name.lower().startswith(("ld", "stride"))


def _arguments(called: str) -> tuple[str, ...]:
    """The template arguments of `kernel<64, 64>`."""
    inside = called.partition("<")[2].removesuffix(">")
    return signature.pieces(inside) if inside else ()
