"""What the text of a kernel reveals about its launch: constants, tiles, axes, launches.

All of it is guessed from the text, so callers verify it by trial.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from matbench.errors import MatbenchError
from matbench.features.adopt import launches as host
from matbench.features.adopt.launches import HostLaunch
from matbench.kernelfile import expressions, signature, syntax

if TYPE_CHECKING:
    from tree_sitter import Node

    from matbench.kernelfile.signature import Function

#: A factor of a product: a name, a number, or an expression in parentheses.
_FACTOR = r"(?:\((?:[^()]|\([^()]*\))*\)|[\w.]+)"
_CAST = re.compile(
    r"\((?:\s*(?:const|unsigned|signed|int|long|short|size_t|uint|uint32_t|int64_t)\b)+\s*\)"
    r"|\b(?:static_cast|reinterpret_cast)\s*<[^<>]*>"
)
_INDEX = r"(?:blockIdx|threadIdx)\.[xyz]"
_CONSTANT = re.compile(
    r"\b(?:constexpr|const|static)\s+(?:(?:const|static|constexpr|unsigned|int|uint|long|size_t|auto"
    r"|std::size_t|u?int\d+_t)\s+)+(\w+\s*(?:=[^;,]+|\{[^{}]*\})(?:,\s*\w+\s*=[^;,]+)*)[;,]"
)
_NUMBER = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b")
#: A parameter that is the width of a tile.
_SIDE = re.compile(r"(?:block|tile)(?:_?(?:size|dim|width|side))?", re.IGNORECASE)
#: How much of a body is read: hints come early or not at all.
_MOST_TEXT = 50_000
_MOST_NAMES = 100
#: No constant above this is the side of a tile.
_MOST = 1 << 20


class Hints(NamedTuple):
    """What the text of one kernel reveals.

    `tiles` has the factors of `blockIdx` for each axis in use; `blocks` and `threads` are the axes
    of `blockIdx` and `threadIdx` in use. `constants` are those of the file and of the body.
    `rows_along` is the grid axis that runs along rows, judging by names, and `sides` are the
    parameters that take the side of a block.
    """

    body: str = ""
    constants: Mapping[str, int] = {}
    constant_pointers: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    blocks: str = ""
    threads: str = ""
    tiles: Mapping[str, tuple[str, ...]] = {}
    launches: tuple[HostLaunch, ...] = ()
    shared: str | None = None
    rows_along: str | None = None
    sides: frozenset[str] = frozenset()

    def mentions(self, pattern: str) -> bool:
        """Whether the body has a match of the pattern."""
        return re.search(pattern, self.body) is not None


def find_hints(source: str, function: Function, beside: str = "") -> Hints:
    """The hints on one of the source's kernels; files `beside` it may launch it."""
    code = syntax.expanded(source)
    node = _definition(code, function)
    text = _with_helpers(code, node)[:_MOST_TEXT]
    body = _plain(_indices_expanded(text, code))
    constants = _constants(code, text)
    launches = host.launches(f"{code}\n{syntax.expanded(beside)}", function)
    sides = frozenset(_sides(function, launches))
    names = {parameter.name for parameter in function.template} | constants.keys() | sides
    pointers = [parameter.name for parameter in function.parameters if parameter.pointer]
    return Hints(
        body=body,
        constants=constants,
        constant_pointers=frozenset(_pointers_to_const(node)),
        written=frozenset(name for name in pointers if _is_written(body, name)),
        blocks=_axes(body, "blockIdx"),
        threads=_axes(body, "threadIdx"),
        tiles={axis: _tiles(body, axis, names) for axis in _axes(body, "blockIdx")},
        launches=launches,
        shared=_dynamic_shared(body),
        rows_along=_rows_along(text),
        sides=sides,
    )


def symbolic(text: str, values: Mapping[str, int | str], kept: frozenset[str]) -> int | str | None:
    """A constant expression of C as an expression of front matter, with constants as numbers but
    `kept` names unchanged; None if it is not such an expression."""
    values = {name: value for name, value in values.items() if name not in kept}
    expression = _NUMBER.sub(lambda number: str(int(number[1], 0)), _plain(text))
    for _ in range(8):  # constants may depend on others
        expression = re.sub(
            r"[A-Za-z_][\w.]*",
            lambda w: f"({values[w[0]]})" if w[0] in values else w[0],
            expression,
        )
    expression = re.sub(r"(?<!/)/(?!/)", "//", expression)
    try:
        names = expressions.names_in(expression, kept)
    except MatbenchError:
        return None
    if names:
        return re.sub(r"\((\w+)\)", r"\1", expression).strip()
    return _number(expression)


def _number(text: str) -> int | None:
    try:
        number = expressions.whole(text, {})
    except MatbenchError:
        return None
    return number if 0 < number <= _MOST else None


def _definition(code: str, function: Function) -> Node:
    for node in signature.entries(syntax.parse(code)):
        if syntax.line_of(signature.name_of(node)) == function.line:
            return node
    raise signature.SourceError("cannot be parsed as CUDA C++", function.line)


def _with_helpers(code: str, entry: Node) -> str:
    """The body of the entry and of the device functions in the file that it calls."""
    helpers = {}
    for node in syntax.walk(syntax.parse(code)):
        if node.type == "function_definition" and "__device__" in signature.words(node):
            name, body = syntax.declared(node), syntax.fields(node, "body")
            if name is not None and body is not None:
                helpers[syntax.text_of(name)] = syntax.text_of(body)
    body = syntax.fields(entry, "body")
    text = syntax.text_of(body) if body is not None else ""
    for _ in range(3):
        called = [name for name in helpers if re.search(rf"\b{re.escape(name)}\b", text)]
        if not called:
            break
        text += " ".join(helpers.pop(name) for name in called)
    return text


def _indices_expanded(text: str, code: str) -> str:
    """The text with macros that stand for an index, such as `TX`, expanded."""
    for name, meaning in syntax.defined(code).items():
        if re.search(_INDEX, meaning):
            text = re.sub(rf"\b{name}\b", meaning.replace("\\", r"\\"), text)
    return text


def _plain(text: str) -> str:
    """The text without casts and parentheses around an index; names for an index are replaced."""
    text = _CAST.sub("", text)
    text = re.sub(rf"\(\s*({_INDEX})\s*\)", r"\1", text)
    for name, index in re.findall(rf"\b(\w+)\s*[=({{]\s*({_INDEX})\s*[;,)}}]", text)[:_MOST_NAMES]:
        text = re.sub(rf"(?<![\w.>]){name}\b(?!\s*[=({{]\s*{re.escape(index)})", index, text)
    return text


def _constants(code: str, body: str) -> dict[str, int]:
    """Macros and constants with integer values; those of the body take precedence."""
    texts = syntax.defined(code)
    for declared in _CONSTANT.findall(code) + _CONSTANT.findall(body):
        for declaration in declared.split(","):
            name, _, value = declaration.partition("=" if "=" in declaration else "{")
            texts[name.strip()] = value.strip(" }")
    numbers: dict[str, int] = {}
    for _ in range(4):
        for name, text in list(texts.items())[-3 * _MOST_NAMES :]:  # the body's own come last
            number = symbolic(text, dict(numbers), frozenset()) if len(text) < 200 else None
            if isinstance(number, int):
                numbers[name.strip()] = number
    return numbers


def _pointers_to_const(entry: Node) -> Iterator[str]:
    for parameter in signature.parameter_nodes(entry):
        name = syntax.declared(parameter)
        before = syntax.text_of(parameter).partition("*")[0]
        if name is not None and re.search(r"\bconst\b", before):
            yield syntax.text_of(name)


def _is_written(body: str, name: str) -> bool:
    """Whether the body stores through a pointer, or through one derived from it."""
    names = {name}
    for _ in range(2):
        for known in tuple(names):
            derived = r"\*\s*(?:const\s+|__restrict__\s+)*(\w+)\s*=\s*[^;=]{0,200}?"
            names |= set(re.findall(rf"{derived}(?<![\w\[]){known}\b", body))
    inside = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]"
    stored = r"\s*(?:\.[xyzw]\s*|\)\s*(?:\[0\]\s*)?)*(?:[-+*]?=(?!=)|\+\+)"
    return any(
        re.search(rf"(?<![\w.])\*?{name}\s*{inside}{stored}", body)
        or re.search(rf"\*\s*\(?\s*{name}\b[^;=]{{0,200}}?{stored}", body)
        or re.search(rf"\batomicAdd\s*\(\s*&?\s*\(?\s*{name}\b", body)
        for name in names
    )


def _axes(body: str, index: str) -> str:
    return "".join(axis for axis in "xyz" if re.search(rf"\b{index}\.{axis}\b", body))


def _tiles(body: str, axis: str, known: set[str]) -> tuple[str, ...]:
    """Products of constants that multiply `blockIdx` along an axis: what one block covers."""
    index = rf"\bblockIdx\.{axis}\b"
    thread = rf"threadIdx\.{axis}"
    tiles: dict[str, None] = {}

    def keep(factors: list[str]) -> None:
        used = []
        for factor in factors:
            if not all(
                w in known or w.startswith("blockDim.") or w.isdigit() for w in _words(factor)
            ):
                break
            used.append(factor)
        if used:
            tiles.setdefault(" * ".join(used))

    sides = (
        rf"{index}\s*\*\s*({_FACTOR})\s*\+\s*{thread}",
        rf"({_FACTOR})\s*\*\s*{index}\s*\+\s*{thread}",
        rf"{thread}\s*\+\s*{index}\s*\*\s*({_FACTOR})",
    )
    for side in sides:  # each thread computes several neighbours
        for size, many in re.findall(rf"\(\s*{side}\s*\)\s*\*\s*({_FACTOR})", body):
            keep([size, many])
        for many, size in re.findall(rf"({_FACTOR})\s*\*\s*\(\s*{side}\s*\)", body):
            keep([size, many])
    for after in re.findall(rf"{index}((?:\s*\*\s*{_FACTOR}){{1,6}})", body):
        keep(re.findall(_FACTOR, after))
    for before in re.findall(rf"((?:{_FACTOR}\s*\*\s*){{1,6}}){index}", body):
        keep(re.findall(_FACTOR, before)[::-1])
    return tuple(tiles)


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z_][\w.]*|\d+", text)


def _rows_along(body: str) -> str | None:
    rows = re.search(r"\b\w*row\w*\s*[={(][^;=]{0,200}?\bblockIdx\.([xy])", body, re.IGNORECASE)
    columns = re.search(r"\b\w*col\w*\s*[={(][^;=]{0,200}?\bblockIdx\.([xy])", body, re.IGNORECASE)
    if rows is not None and (columns is None or rows[1] != columns[1]):
        return rows[1]
    return None


def _dynamic_shared(body: str) -> str | None:
    """The element type of dynamic shared memory."""
    match = re.search(
        r"\bextern\s+__shared__\s+(?:__align__\s*\([^()]*\)\s*|alignas\s*\([^()]*\)\s*)?"
        r"([\w ]+?)\s*\b\w+\s*\[\s*\]",
        body,
    )
    return match[1] if match else None


def _sides(function: Function, launches: Sequence[HostLaunch]) -> Iterator[str]:
    """The parameters that are a block's side, by name or in a launch; one is left for a size."""
    numbers = [p.name for p in function.parameters if not p.pointer]
    passed = {n for launch in launches for n, side in launch.given.items() if isinstance(side, int)}
    sides = [name for name in numbers if name in passed or _SIDE.fullmatch(name)]
    if len(sides) < len(numbers):
        yield from sides
