"""Syntax trees of CUDA C++ by tree-sitter, and edits of the text at positions in them.

Constructs that its grammar lacks are blanked out. Positions in a tree are positions in the parsed
text; each character counts as one byte.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from matbench.errors import MatbenchError, UsageError

if TYPE_CHECKING:
    from tree_sitter import Node as Node
    from tree_sitter import Parser

#: Comments, and tokens that may look like them: strings, characters, numbers such as 1'000, quotes
#: that begin none. An unclosed token extends to the end, so that no text is searched twice.
_COMMENT = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)|/\*.*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'"""
    r"""|\\["']|(?<!\w)(?:(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?(?:\)(?P=end)"|\Z)|\d(?:'?[\w.])*)""",
    re.DOTALL,
)
#: Attributes that the grammar does not know.
_ATTRIBUTE = re.compile(
    r"\b(?:__(?:cluster_dims|block_size|maxnreg|align)__|alignas)\s*(?=\()"
    r"|^[ \t]*#[ \t]*\\\n[^\n]*"  # a directive that is continued at once
    r"|\b__(?:noinline|inline_hint|nv_pure|tile_global)__\b|\b__restrict\b(?!__)",
    re.MULTILINE,
)
#: A fast test for any of them.
_ATTRIBUTES = re.compile(r"__(?:[cbmant]|inl|res)|alignas|#[ \t]*\\\n")
#: A macro that stands for the words around a declaration, such as `__global__ static`.
_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:[ \t]+([^\n]{0,200}?))?[ \t]*$", re.MULTILINE
)
#: A macro with parameters.
FUNCTION = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(?P<macro>\w+)\((?P<names>[^()]*)\)(?P<body>(?:\\\n|[^\n])*)",
    re.MULTILINE,
)
_WORDS = re.compile(
    r'(?:\s|extern\s*"C"|\b(?:__(?:global|device|host|forceinline|restrict|shared|constant)__'
    r"|__launch_bounds__\s*\([^()]*\)|const|static|inline|extern|void|volatile)\b)*"
)
_MARK = re.compile(r'^#line (\d+) "(.*)"\n', re.MULTILINE)
#: The deepest tree, the most levels of namespaces and conditions around a definition, and the most
#: functions of a file: to find all parents of a node takes the square of its depth.
_DEEPEST, _MOST_LEVELS, _MOST_FUNCTIONS = 1000, 100, 5000
#: The most macros that define kernels, with their uses, and the most characters that a source may
#: become.
_MOST_MACROS, _MOST_EXPANDED = 500, 2_000_000
#: Time limit for parsing, in seconds, and how many bytes the parser gets at a time.
_MOST_S = 1.0
_PIECE = 2048
#: Tokens that delimit function bodies. A directive is one token, so that the braces in a multi-line
#: macro are not taken for a function's.
_TOKEN = re.compile(
    r'^[ \t]*#(?:\\\n|[^\n])*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|\\["\']'
    r"|\)\s*(?:noexcept\s*)?\{|[{}]",
    re.MULTILINE,
)
WORD = re.compile(r"[A-Za-z_]\w*")
#: A macro at file scope and what it takes, which need not be C++: `BENCHMARK_TEMPLATE(f, float);`.
_REGISTERED = re.compile(r"""([;}>")]\s*\n[A-Z][A-Z\d]*_\w*\()([^(){};]{0,400})(?=\))""")


#: Start and end of a text, and its replacement.
Edit = tuple[int, int, str]


class SourceError(MatbenchError):
    """An error in a source; `line` counts from 1, None if it concerns no single line."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.line = line


@contextmanager
def located(file: object) -> Iterator[None]:
    """Raise a `SourceError` in this block as a `UsageError` that names the file and the line."""
    try:
        yield
    except SourceError as error:
        raise UsageError(f"{file}:{error.line or 1}: {error}") from None


@functools.lru_cache(maxsize=16)
def without_comments(source: str) -> str:
    """The source with comments blanked; all other characters keep their positions."""
    return _COMMENT.sub(lambda match: blanked(match[0]) if match["comment"] else match[0], source)


@functools.lru_cache(maxsize=16)
def skeleton(code: str) -> str:
    """A text without comments, with function bodies blanked: macros in a body cannot confuse the
    parser about the code around it."""
    pieces, start, depth = [], 0, 0
    for token in _TOKEN.finditer(code):
        first, last = token[0][0], token[0][-1]
        if depth == 0 and first == ")":
            pieces.append(code[start : token.end()])
            start, depth = token.end(), 1
        elif depth > 0 and (first in "{})"):
            depth += 1 if last == "{" else -1
            if depth == 0:
                pieces.append(blanked(code[start : token.start()]))
                start = token.start()
    return "".join((*pieces, code[start:]))


def only(code: str, node: Node) -> Node:
    """The tree of only that part of a text where a node of another tree is."""
    start, end = node.start_byte, node.end_byte
    return parse(blanked(code[:start]) + code[start:end])


def blanked(text: str) -> str:
    return re.sub(r"[^\n]+", lambda line: " " * len(line[0]), text)


@functools.lru_cache(maxsize=16)
def expanded(source: str) -> str:
    """The source without comments, with macros that stand for declaration keywords expanded. Lines
    keep their numbers."""
    code = without_comments(source)
    macros = {name: words for name, words in defined(code).items() if _WORDS.fullmatch(words)}
    code = _with_functions(code)
    if not macros:
        return code
    lines = code.split("\n")
    for number, line in enumerate(lines):
        if not line.lstrip().startswith("#"):
            lines[number] = WORD.sub(lambda word: macros.get(word[0], word[0]), line)
    require_few(sum(map(len, lines)))
    return "\n".join(lines)


def require_few(characters: int, macros: int = 0) -> None:
    """`SourceError` if a source becomes far too large."""
    if characters > _MOST_EXPANDED or macros > _MOST_MACROS:
        raise SourceError("its macros or structs expand to too much", None)


def defined(code: str) -> dict[str, str]:
    """The macros without parameters that a text defines."""
    return dict(_MACRO.findall(code))


def _with_functions(code: str) -> str:
    """Expand macros that define or launch kernels, such as `DEFINE(sgemm, float)`."""
    macros = 0
    for definition in list(FUNCTION.finditer(code)):
        names = [name.strip() for name in definition["names"].split(",")]
        body = definition["body"].replace("\\\n", "\n")
        if "__global__" not in body and "<<<" not in body:
            continue
        require_few(len(code), macros)
        call = re.compile(rf"^[ \t]*{definition['macro']}[ \t]*(?=\()", re.MULTILINE)
        at, macros = 0, macros + 5  # to search for each takes long
        while use := call.search(code, at):
            end = closing(code, use.end())
            given = [argument.strip() for argument in code[use.end() + 1 : end - 1].split(",")]
            values = dict(zip(names, given, strict=False))
            expansion = WORD.sub(lambda word: values.get(word[0], word[0]), body)  # noqa: B023
            expansion = " ".join(re.sub(r"\s*##\s*", "", expansion).split())
            lines = "\n" * code.count("\n", use.start(), end)
            code = f"{code[: use.start()]}{expansion}{lines}{code[end:]}"
            at, macros = use.start() + len(expansion), macros + 1
            require_few(len(code), macros)
    return code


@functools.cache
def _parser() -> Parser:
    import tree_sitter_cuda
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_cuda.language()))


@functools.lru_cache(maxsize=16)
def parse(code: str) -> Node:
    """The tree of a text without comments; an empty tree if parsing takes too long. `SourceError`
    if it is too deep."""
    if _ATTRIBUTES.search(code):
        edits = []
        for match in _ATTRIBUTE.finditer(code):
            start, end = match.span()
            end = closing(code, end) if code[end : end + 1] == "(" else end
            edits.append((start, end, blanked(code[start:end])))
        code = applied(code, edits)
    code = _REGISTERED.sub(lambda macro: macro[1] + blanked(macro[2]), code)
    text = code.encode("ascii", errors="replace")  # a byte for each character
    until = time.thread_time() + _MOST_S
    try:
        tree = _parser().parse(
            lambda at, _: text[at : at + _PIECE],
            progress_callback=lambda *_: time.thread_time() > until,
        )
    except ValueError:  # stopped
        return _parser().parse(b"").root_node
    cursor = tree.walk()
    while cursor.depth <= _DEEPEST:
        if not cursor.goto_first_child():
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return tree.root_node
    line = cursor.node and line_of(cursor.node)
    raise SourceError(f"nested more than {_DEEPEST:,} levels deep", line)


def closing(code: str, start: int) -> int:
    """The position after the parenthesis that closes the one at `start`."""
    depth = 0
    for position in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[position], 0)
        if depth == 0:
            return position + 1
    return len(code)


def applied(code: str, edits: Iterable[Edit]) -> str:
    """The text after its edits, with as many lines; an edit inside another one is ignored."""
    pieces, end = [], 0
    for start, stop, text in sorted(edits, key=lambda edit: (edit[0], edit[1] > edit[0], -edit[1])):
        if start < end:
            continue
        lost = code.count("\n", start, stop) - text.count("\n")
        pieces += [code[end:start], text, "\n" * lost]
        end = stop
    return "".join((*pieces, code[end:]))


def marked(text: str, file: str = "") -> str:
    """A text of several, after a directive that says which file it is of."""
    return f'#line 1 "{file}"\n{text}'


def place_of(code: str, node: Node) -> tuple[str, int]:
    """The file and the line that a node is at, by the directives above it; no file without any."""
    above = code[: node.start_byte]
    marks = [("1", "", 0), *((m[1], m[2], m.end()) for m in _MARK.finditer(above))]
    line, file, start = marks[-1]
    return file, above.count("\n", start) + int(line)


def text_of(node: Node | None) -> str:
    """The text of a node, on one line; none has an empty one."""
    return " ".join((node.text or b"").decode().split()) if node is not None else ""


def line_of(node: Node) -> int:
    """The line of a node, counted from 1."""
    return node.start_point[0] + 1


def walk(node: Node) -> Iterator[Node]:
    """A node and all its descendants in text order; not recursive, so depth is unlimited."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.children))


#: Nodes that define macros.
MACROS = ("preproc_def", "preproc_function_def")
#: Nodes that are not searched for definitions of functions or types.
_LEAVES = {
    "function_definition", "declaration", "expression_statement", "type_definition", *MACROS,
    "preproc_include", "preproc_call", "alias_declaration",
}  # fmt: skip


def outside(node: Node) -> Iterator[Node]:
    """The nodes of a tree outside functions and declarations, in text order."""
    pending, functions = [(node, 0)], 0
    while pending:
        node, level = pending.pop()
        functions += node.type == "function_definition"
        if level > _MOST_LEVELS or functions > _MOST_FUNCTIONS:
            most = f"{_MOST_LEVELS} levels deep, or {_MOST_FUNCTIONS:,} functions"
            raise SourceError(f"more than {most}", line_of(node))
        yield node
        if node.type not in _LEAVES:
            pending.extend((child, level + 1) for child in reversed(node.named_children))


def fields(node: Node | None, name: str) -> Node | None:
    """The part of a node by its name in the grammar; none of none."""
    return node.child_by_field_name(name) if node is not None else None


def declared(node: Node | None) -> Node | None:
    """The name within a declarator: `A` in `*A[3]`."""
    while node and node.type not in ("identifier", "qualified_identifier", "template_function"):
        inner = [child for child in node.named_children if "declarator" in child.type]
        names = [child for child in node.named_children if child.type == "identifier"]
        node = fields(node, "declarator") or next(iter(inner or names), None)
    return node


def parents(node: Node) -> Iterator[Node]:
    """The ancestors of a node, from the inside out."""
    above = node.parent
    while above is not None:
        yield above
        above = above.parent
