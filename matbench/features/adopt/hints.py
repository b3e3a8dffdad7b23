"""What a kernel's text, and the host code around it, reveal about its launch.

A launch in host code is evaluated as far as it is known: constants become numbers, and what is
passed to the kernel gets the name of the parameter. With `kernel<<<grid, 256>>>(…, n)`, where the
parameter is `N`, `dim3 grid(CEIL_DIV(n, 32))` is `ceil_div(N, 32)`. All of it is guessed from the
text, so callers verify it by trial.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from matbench.features.adopt.arithmetic import Term, Text, term_of
from matbench.features.adopt.names import implied, size_of
from matbench.features.adopt.scope import ITEM_BYTES, Scope, bare, definition_of, definitions, last
from matbench.kernelfile import signature, syntax

if TYPE_CHECKING:
    from tree_sitter import Node

    from matbench.kernelfile.signature import Signature

#: A parameter that is the width of a tile.
_SIDE = re.compile(r"(?:block|tile)(?:_?(?:size|dim|width|side))?", re.IGNORECASE)
#: How the body of a kernel with array parameters begins, as they are unpacked.
_ARRAY = re.compile(r"\(\*\)((?: ?\[[^]]+\])+)\)(\w+_values)\b")
_DYNAMIC = re.compile(
    r"\bextern\s+__shared__\s+(?:__align__\s*\([^()]*\)\s*|alignas\s*\([^()]*\)\s*)?"
    r"([\w ]+?)\s*\b\w+\s*\[\s*\]"
)
_VECTORS = re.compile(r"(?i)float[24]\b|double2\b|half2\b|int4\b|wmma|mma_sync")
#: No constant above this is the side of a tile.
_MOST = 1 << 20
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


class Hints(NamedTuple):
    """What the text of one kernel reveals.

    `tiles` has what multiplies `blockIdx`, and `shares` what then multiplies `threadIdx`, for each
    axis; `blocks` and `threads` are the axes of `blockIdx` and `threadIdx` in use. `constants` are
    those of the file that the kernel names. `shared` is the element type of dynamic shared memory.
    `sides` are the parameters that take the side of a block, and `settings` others that are no
    sizes by name: with what a launch passes, or else the default, or 1. `extents` are those of
    array parameters; the first one may be missing. `is_wide`: it reads several numbers at once.
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
    is_wide: bool = False

    def mentions(self, pattern: str) -> bool:
        """Whether the body has a match of the pattern."""
        return re.search(pattern, self.body) is not None


def find_hints(source: str, function: Signature, headers: str = "", beside: str = "") -> Hints:
    """The hints on one of the source's kernels; files `beside` it may launch it."""
    code = syntax.expanded(source)
    root = syntax.parse(code)
    entry = definition_of(root, function)
    if entry is None:
        raise signature.SourceError("cannot be parsed as CUDA C++", function.line)
    nodes = [entry, *_helpers(root, entry)]
    text = "\n".join(syntax.text_of(syntax.fields(node, "body")) for node in nodes)
    macros = syntax.defined(code)
    words = {*syntax.WORD.findall(text)}
    body = "\n".join((text, *(macros[name] for name in macros.keys() & words)))
    called = (m["body"] for m in syntax.FUNCTION.finditer(code) if m["macro"] in words)
    used = {*syntax.WORD.findall(body)}
    above = definitions(syntax.parse(syntax.expanded(headers)))
    given = [*(d for d in above if not d.owner), *definitions(root)]
    calls = [call for node in nodes for call in syntax.walk(node) if call.type == "call_expression"]
    scopes = [Scope(given, node) for node in nodes]
    for scope in scopes[1:]:
        scope.values |= _called_with(signature.function(scope.node), calls)
    texts = headers, syntax.marked(source), beside
    found = launches("\n".join(map(syntax.expanded, texts)), function)
    # A block's side, by name or in a launch; one parameter is left for a size.
    numbers = [p.name for p in function.parameters if not p.pointer]
    launched = ((n, one) for one in found for n in one.given if n not in one.settings)
    passed = {name for name, one in launched if isinstance(one.given[name], int)}
    sides = frozenset(name for name in numbers if name in passed or _SIDE.fullmatch(name))
    sides = sides if len(sides) < len(numbers) else frozenset()
    names = {*(p.name for p in function.template), *sides, *(f"blockDim_{axis}" for axis in "xyz")}
    places = [*_places(scopes, names)]
    defaults = ((name, scopes[0].text(text)) for name, text in function.defaults.items())
    known = {name: value for name, value in defaults if isinstance(value, int)}
    for launch in reversed(found):
        known |= launch.settings
    values = {n: s.text(n) for s in scopes for n in s.values if n in s.constants & used}
    declared = {syntax.declared(p): syntax.text_of(p) for p in signature.parameter_nodes(entry)}
    constant = (name for name, text in declared.items() if re.match(r"[^*]*\bconst\b", text))
    return Hints(
        body=body,
        constants={n: v for n, v in values.items() if isinstance(v, int) and 0 < v <= _MOST},
        constant_pointers=frozenset(map(syntax.text_of, constant)),
        blocks="".join(axis for axis in "xyz" if re.search(rf"\bblockIdx\.{axis}\b", body)),
        threads="".join(axis for axis in "xyz" if re.search(rf"\bthreadIdx\.{axis}\b", body)),
        tiles={axis: _distinct(tile for of, tile, _ in places if of == axis) for axis in "xy"},
        shares={axis: _distinct(n for of, _, n in places if of == axis) for axis in "xy"},
        bounds=scopes[0].term(function.launch_bounds or ""),
        launches=found,
        shared=match[1] if (match := _DYNAMIC.search(body)) else None,
        sides=sides,
        extents={
            name: [t for t in map(scopes[0].text, re.findall(r"\[([^]]+)\]", sides)) if t]
            for sides, name in _ARRAY.findall(body)
        },
        settings={name: known.get(name, 1) for name in _settings(function)},
        is_wide=any(map(_VECTORS.search, (body, *called))),
    )


def _helpers(root: Node, entry: Node) -> Iterator[Node]:
    """The device functions of the file that the entry calls, directly or not."""
    helpers = {}
    for node in syntax.walk(root):
        if node.type == "function_definition" and "__device__" in signature.words(node):
            helpers[syntax.text_of(syntax.declared(node))] = node
    pending = [entry]
    while pending:
        words = syntax.WORD.findall(syntax.text_of(pending.pop()))
        for name in {*words} & helpers.keys():
            pending.append(helpers.pop(name))
            yield pending[-1]


def _places(scopes: Sequence[Scope], known: set[str]) -> Iterator[tuple[str, Term, Term | None]]:
    """For sums that contain `blockIdx`: its axis, what multiplies it, and what multiplies
    `threadIdx`; of these products, only factors that are `known`."""

    def factor(term: Term, index: str) -> Term | None:
        for names, many in term.products.items():
            if names.count(index) == 1 and many > 0:
                return Term({tuple(name for name in names if name in known): many})
        return None

    for scope in scopes:
        pending = [scope.node]
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


def _distinct(terms: Iterable[Term | None]) -> list[Term]:
    return list({str(term.text): term for term in terms if term is not None}.values())


# -- launches --------------------------------------------------------------------------------------


def launches(code: str, function: Signature) -> tuple[HostLaunch, ...]:
    """The launches of a kernel in a text without comments, each once: at first constants that are
    no sizes by the names of their parameters are settings, then all are sizes."""
    if "<<<" not in code:
        return ()
    root = syntax.parse(code)
    kinds = ("call_expression", "template_instantiation")
    calls = [node for node in syntax.walk(root) if node.type in kinds]
    scope_at = partial(Scope, [*definitions(root)])
    distinct: dict[str, HostLaunch] = {}
    for settings in (_settings(function), []):
        for call in calls:
            launch = _launch(call, calls, scope_at, function, settings)
            if launch is not None:
                file, line = syntax.place_of(code, call)
                distinct.setdefault(repr(launch), launch._replace(file=file, line=line))
    return tuple(distinct.values())[:_MOST_LAUNCHES]


def _launch(
    call: Node, calls: Sequence[Node], scope_at: Callable[[Node], Scope], function: Signature,
    settings: Sequence[str],
) -> HostLaunch | None:  # fmt: skip
    """What a call says in terms of the kernel's parameters, if it launches the function."""
    configurations = [n for n in call.named_children if n.type == "kernel_call_syntax"]
    if not configurations:
        return None
    scope = scope_at(call)
    outer = scope.function
    if outer and outer.parent and outer.parent.type == "template_declaration":
        around = signature.function(outer)  # with what another function gives it
        unknown = {p.name: "" for p in around.template if p.default is None}
        scope.values |= _called_with(around, calls) or unknown
    called = syntax.text_of(syntax.fields(call, "function"))
    called = scope.values.get(called, called).removeprefix("&")
    if last(called) != last(function.name):
        return None
    grid, block, *more = map(syntax.text_of, configurations[0].named_children)
    template = _template(scope, function, called)
    listed = syntax.fields(call, "arguments")
    nodes = [bare(node) for node in (listed.named_children if listed is not None else ())]
    order = [parameter.name for parameter in function.parameters]
    is_complete = {*order[len(nodes) :]} <= function.defaults.keys() and len(nodes) <= len(order)
    passed = dict(zip(order, nodes, strict=False)) if is_complete else {}
    given, constants = _arguments(scope, function, passed, block, settings) if passed else ({}, {})
    shared = scope.text(more[0]) if more else 0
    for setting in calls if shared is None else ():  # then what the kernel is allowed
        text, listed = syntax.text_of(setting), syntax.fields(setting, "arguments")
        is_limit = text.startswith("cudaFuncSetAttribute") and _LIMIT in text
        if is_limit and last(called) in text and listed is not None:
            shared = scope_at(setting).text(syntax.text_of(listed.named_children[-1]))
            break
    plane = scope.sides(grid) if passed else ()
    words = {name: syntax.text_of(node) for name, node in passed.items()}
    return HostLaunch(template, plane, scope.sides(block), shared, given, constants, words)


def _called_with(function: Signature, calls: Sequence[Node]) -> dict[str, str]:
    """The template arguments of the first call or instantiation of a function, if there is one."""
    for call in calls:
        declared = syntax.fields(syntax.fields(call, "declarator") or call, "declarator")
        called = syntax.text_of(syntax.fields(call, "function") or declared)
        if last(called) == last(function.name):
            given = _template_arguments(called)
            return dict(zip((p.name for p in function.template), given, strict=False))
    return {}


def _template(scope: Scope, function: Signature, called: str) -> tuple[Text | None, ...]:
    """The template arguments; from now on, names among them are the template's parameters, except
    those of 0, which no sweep has."""
    pairs = [*zip(function.template, _template_arguments(called), strict=False)]
    values = [scope.text(text) for _, text in pairs]
    arguments: list[Text | None] = []
    for (parameter, text), value in zip(pairs, values, strict=True):
        known = value if isinstance(value, int) else None
        if parameter.kind in _TYPES:
            kind = scope.values.get(text, text)
            arguments.append(kind if kind in ITEM_BYTES or kind == "float" else None)
        elif parameter.kind == "bool":
            arguments.append(str(bool(known)).lower() if known is not None else None)
        else:
            arguments.append(known)
            if text.isidentifier() and known != 0:
                scope.known.setdefault(text, term_of(parameter.name))
    return tuple(arguments)


def _template_arguments(called: str) -> tuple[str, ...]:
    """The template arguments of `kernel<64, 64>`."""
    inside = called.partition("<")[2].removesuffix(">")
    return signature.pieces(inside) if inside else ()


def _arguments(
    scope: Scope, function: Signature, passed: Mapping[str, Node], block: str,
    settings: Sequence[str],
) -> tuple[dict[str, Text], dict[str, int]]:  # fmt: skip
    """The parameters that take a constant or an expression, and those of them that are settings;
    what others take gets their name.

    A constant is a size, unless it is a setting or the block has it as a side.
    """
    whole = _whole(function)
    pairs = [(name, passed[name]) for name in sorted(whole, key=_is_stride) if name in passed]
    given: dict[str, Text] = {}
    constants: dict[str, int] = {}
    for name, node in pairs:
        text = syntax.text_of(node)
        value = scope.text(text)
        if isinstance(value, int) and len(given) + 1 < len(pairs):
            kept, scope.known = scope.known, {**scope.known, text: term_of(name)}
            is_side = any(name in str(side).split() for side in scope.sides(block))
            scope.known = kept
            if is_side or name in settings:
                given[name] = value
                constants |= {} if is_side else {name: value}
                continue
        is_expression = node.type in ("binary_expression", "call_expression")
        if isinstance(value, str) and is_expression and not _is_stride(name):
            given[name] = value
        while text and text not in scope.known:
            scope.known[text] = term_of(name)
            text = scope.values.get(text, "")
    for name in {*whole} - passed.keys():
        value = scope.text(function.defaults[name])
        if isinstance(value, int):
            given[name] = constants[name] = value
    return given, constants


def _whole(function: Signature) -> list[str]:
    """The parameters that are whole numbers."""
    scalars = [p for p in function.parameters if not p.pointer]
    return [p.name for p in scalars if "int" in signature.SCALARS.get(p.type, "")]


def _settings(function: Signature) -> list[str]:
    """Those that are no sizes by their names, if others are, and those with defaults."""
    sizes = {name: size_of(name) or implied(name, is_batched=True) for name in _whole(function)}
    are_told = not {*sizes.values()} <= {None, "K"}
    return [n for n, of in sizes.items() if n in function.defaults or (are_told and not of)]


def _is_stride(name: str) -> bool:
    return name.lower().startswith(("ld", "stride"))
