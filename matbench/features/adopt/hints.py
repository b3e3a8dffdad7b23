"""What the text of a kernel reveals about its launch: constants, tiles, axes, launches.

All of it is guessed from the text, so callers verify it by trial.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from matbench.features.adopt import launches as host
from matbench.features.adopt.arithmetic import Term, Text
from matbench.features.adopt.launches import HostLaunch
from matbench.features.adopt.names import settings
from matbench.features.adopt.scope import Scope, definitions
from matbench.kernelfile import signature, syntax

if TYPE_CHECKING:
    from tree_sitter import Node

    from matbench.kernelfile.signature import Signature

#: A parameter that is the width of a tile.
_SIDE = re.compile(r"(?:block|tile)(?:_?(?:size|dim|width|side))?", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z_]\w*")
#: How the body of a kernel with array parameters begins, as they are unpacked.
_ARRAY = re.compile(r"\(\*\)((?: ?\[[^]]+\])+)\)(\w+_values)\b")
#: No constant above this is the side of a tile.
_MOST = 1 << 20


class Hints(NamedTuple):
    """What the text of one kernel reveals.

    `tiles` has what multiplies `blockIdx`, and `shares` what then multiplies `threadIdx`, for each
    axis; `blocks` and `threads` are the axes of `blockIdx` and `threadIdx` in use. `constants` are
    those of the file that the kernel names. `sides` are the parameters that take the side of a
    block, and `settings` others that are no sizes by name: with what a launch passes, or else the
    default, or 1. `extents` are those of array parameters; the first one may be missing.
    """

    body: str = ""
    constants: Mapping[str, int] = {}
    constant_pointers: frozenset[str] = frozenset()
    blocks: str = ""
    threads: str = ""
    tiles: Mapping[str, Sequence[Term]] = {}
    shares: Mapping[str, Sequence[Term]] = {}
    bounds: Term | None = None
    launches: tuple[HostLaunch, ...] = ()
    shared: str | None = None
    sides: frozenset[str] = frozenset()
    extents: Mapping[str, Sequence[Text]] = {}
    settings: Mapping[str, int] = {}

    def mentions(self, pattern: str) -> bool:
        """Whether the body has a match of the pattern."""
        return re.search(pattern, self.body) is not None


def find_hints(source: str, function: Signature, headers: str = "", beside: str = "") -> Hints:
    """The hints on one of the source's kernels; files `beside` it may launch it."""
    code = syntax.expanded(source)
    root = syntax.parse(code)
    node = _definition(root, function)
    nodes = [node, *_helpers(root, node)]
    body = _text(nodes, code)
    above = definitions(syntax.parse(syntax.expanded(headers)))
    given = [*(d for d in above if not d.owner), *definitions(root)]
    scopes = [Scope(given, n.start_byte + 1, n.end_byte, is_kernel=True) for n in nodes]
    texts = headers, syntax.marked(source), beside
    launches = host.launches("\n".join(map(syntax.expanded, texts)), function)
    sides = frozenset(_sides(function, launches))
    known = {parameter.name for parameter in function.template} | sides
    found = [*_places(nodes, scopes, {*known, *(f"blockDim_{axis}" for axis in "xyz")})]
    bounds = scopes[0].term(function.launch_bounds or "")
    return Hints(
        body=body,
        constants=_constants(scopes, body),
        constant_pointers=frozenset(_pointers_to_const(node)),
        blocks=_axes(body, "blockIdx"),
        threads=_axes(body, "threadIdx"),
        tiles={axis: _distinct(tile for of, tile, _ in found if of == axis) for axis in "xy"},
        shares={axis: _distinct(n for of, _, n in found if of == axis and n) for axis in "xy"},
        bounds=bounds,
        launches=launches,
        shared=_dynamic_shared(body),
        sides=sides,
        extents=dict(_extents(scopes[0], body)),
        settings=_settings(function, launches, scopes[0]),
    )


def _extents(scope: Scope, body: str) -> Iterator[tuple[str, list[Text]]]:
    """The parameters that are arrays of arrays, and their extents."""
    for sides, name in _ARRAY.findall(body):
        texts = [scope.text(side) for side in re.findall(r"\[([^]]+)\]", sides)]
        yield name, [text for text in texts if text is not None]


def _distinct(terms: Iterable[Term | None]) -> list[Term]:
    return list({str(term.text): term for term in terms if term is not None}.values())


def _definition(root: Node, function: Signature) -> Node:
    for node in signature.entries(root):
        if syntax.line_of(signature.name_of(node)) == function.line:
            return node
    raise signature.SourceError("cannot be parsed as CUDA C++", function.line)


def _helpers(root: Node, entry: Node) -> Iterator[Node]:
    """The device functions of the file that the entry calls, directly or not."""
    helpers = {}
    for node in syntax.walk(root):
        if node.type == "function_definition" and "__device__" in signature.words(node):
            name = syntax.declared(node)
            helpers[syntax.text_of(name) if name is not None else ""] = node
    pending = [entry]
    while pending:
        words = set(_WORD.findall(syntax.text_of(pending.pop())))
        for name in words & helpers.keys():
            pending.append(helpers.pop(name))
            yield pending[-1]


def _text(nodes: Sequence[Node], code: str) -> str:
    """The bodies of functions, then the macros that they use."""
    bodies = [syntax.fields(node, "body") for node in nodes]
    text = "\n".join(syntax.text_of(body) for body in bodies if body is not None)
    macros = syntax.defined(code)
    return "\n".join((text, *(macros[name] for name in macros.keys() & {*_WORD.findall(text)})))


def _places(
    nodes: Sequence[Node], scopes: Sequence[Scope], known: set[str]
) -> Iterator[tuple[str, Term | None, Term | None]]:
    """For sums that contain `blockIdx`: its axis, what multiplies it, and what multiplies
    `threadIdx`; of these products, only factors that are `known`."""

    def factor(term: Term, index: str) -> Term | None:
        for names, many in term.products.items():
            if names.count(index) == 1 and many > 0:
                return Term({tuple(name for name in names if name in known): many})
        return None

    for node, scope in zip(nodes, scopes, strict=True):
        pending = [node]
        while pending:
            inner = pending.pop()
            is_sum = inner.type in ("binary_expression", "call_expression", "identifier")
            term = scope.of(inner) if is_sum else None
            if term is None:
                pending.extend(reversed(inner.named_children))
                continue
            for axis in "xy":
                tile = factor(term, f"blockIdx_{axis}")
                if tile is not None and tile.number != 1:
                    yield axis, tile, factor(term, f"threadIdx_{axis}")


def _constants(scopes: Sequence[Scope], body: str) -> dict[str, int]:
    """The macros and constants with whole values that the kernel names."""
    used = {*_WORD.findall(body)}
    terms = {
        name: scope.term(name)
        for scope in scopes
        for name in scope.values
        if name in scope.constants & used
    }
    numbers = {name: term.number for name, term in terms.items() if term is not None}
    return {name: value for name, value in numbers.items() if value and 0 < value <= _MOST}


def _pointers_to_const(entry: Node) -> Iterator[str]:
    for parameter in signature.parameter_nodes(entry):
        name = syntax.declared(parameter)
        before = syntax.text_of(parameter).partition("*")[0]
        if name is not None and re.search(r"\bconst\b", before):
            yield syntax.text_of(name)


def _axes(body: str, index: str) -> str:
    return "".join(axis for axis in "xyz" if re.search(rf"\b{index}\.{axis}\b", body))


def _dynamic_shared(body: str) -> str | None:
    """The element type of dynamic shared memory."""
    match = re.search(
        r"\bextern\s+__shared__\s+(?:__align__\s*\([^()]*\)\s*|alignas\s*\([^()]*\)\s*)?"
        r"([\w ]+?)\s*\b\w+\s*\[\s*\]",
        body,
    )
    return match[1] if match else None


def _sides(function: Signature, launches: Sequence[HostLaunch]) -> Iterator[str]:
    """The parameters that are a block's side, by name or in a launch; one is left for a size."""
    numbers = [p.name for p in function.parameters if not p.pointer]
    passed = {
        name
        for launch in launches
        for name, side in launch.given.items()
        if isinstance(side, int) and name not in launch.settings
    }
    sides = [name for name in numbers if name in passed or _SIDE.fullmatch(name)]
    if len(sides) < len(numbers):
        yield from sides


def _settings(function: Signature, launches: Sequence[HostLaunch], scope: Scope) -> dict[str, int]:
    whole = [p.name for p in function.parameters if not p.pointer and host.is_whole(p)]
    defaults = {name: scope.text(text) for name, text in function.defaults.items()}
    known = {name: value for name, value in defaults.items() if isinstance(value, int)}
    for launch in reversed(launches):
        known |= launch.settings
    return {name: known.get(name, 1) for name in settings(whole, function.defaults)}
