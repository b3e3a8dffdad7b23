"""The syntax tree of CUDA C++, made by tree-sitter; what its grammar does not know is blanked out.

Positions in a tree are positions in the text that was parsed: each character counts as one byte.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

#: Comments, and what may hold the signs of one: strings, characters, numbers such as 1'000.
#: What is not closed goes on to the end, so that nothing is looked for twice.
_COMMENT = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'"""
    r"""|(?<!\w)(?:(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?(?:\)(?P=end)"|\Z)|\d(?:'?[\w.])*)""",
    re.DOTALL,
)
#: Attributes that the grammar does not know.
_ATTRIBUTE = re.compile(
    r"\b(?:__(?:cluster_dims|block_size|maxnreg|align)__|alignas)\s*(?=\()"
    r"|\b__(?:noinline|inline_hint|nv_pure|tile_global)__\b|\b__restrict\b(?!__)"
)
#: A macro that stands for the words around a declaration, such as `__global__ static`.
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:[ \t]+([^\n]*?))?[ \t]*$", re.MULTILINE)
_WORDS = re.compile(
    r'(?:\s|extern\s*"C"|\b(?:__(?:global|device|host|forceinline|restrict|shared|constant)__'
    r"|__launch_bounds__\s*\([^()]*\)|const|static|inline|extern|void|volatile)\b)*"
)
_WORD = re.compile(r"[A-Za-z_]\w*")


@functools.lru_cache(maxsize=16)
def without_comments(source: str) -> str:
    """The source with comments blanked and every character where it was."""

    def blank(match: re.Match[str]) -> str:
        text = match.group()
        is_open = text.startswith("/*") and not text[2:].endswith("*/")
        return text if is_open or not text.startswith("/") else blanked(text)

    return _COMMENT.sub(blank, source)


def blanked(text: str) -> str:
    """As many lines, of as many spaces."""
    return re.sub(r"[^\n]", " ", text)


@functools.lru_cache(maxsize=16)
def expanded(source: str) -> str:
    """The source without comments, and words of declarations in place of macros that mean them.

    Lines keep their numbers.
    """
    code = without_comments(source)
    macros = {
        name: words or "" for name, words in _MACRO.findall(code) if _WORDS.fullmatch(words or "")
    }
    if not macros:
        return code
    lines = code.split("\n")
    for number, line in enumerate(lines):
        if not line.lstrip().startswith("#"):
            lines[number] = _WORD.sub(lambda word: macros.get(word[0], word[0]), line)
    return "\n".join(lines)


@functools.cache
def _parser() -> Parser:
    import tree_sitter_cuda
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_cuda.language()))


@functools.lru_cache(maxsize=16)
def parse(code: str) -> Node:
    """The tree of a text without comments."""
    known = _without_attributes(code)
    return _parser().parse("".join(c if c.isascii() else "?" for c in known).encode()).root_node


def _without_attributes(code: str) -> str:
    pieces, end = [], 0
    for found in _ATTRIBUTE.finditer(code):
        if found.start() < end:
            continue
        pieces.append(code[end : found.start()])
        end = closing(code, found.end()) if code[found.end() :][:1] == "(" else found.end()
        pieces.append(blanked(code[found.start() : end]))
    return "".join((*pieces, code[end:]))


def closing(code: str, start: int) -> int:
    """Where what opens with the parenthesis at `start` is over."""
    depth = 0
    for position in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[position], 0)
        if depth == 0:
            return position + 1
    return len(code)


def text_of(node: Node) -> str:
    """The text of a node, on one line."""
    return " ".join((node.text or b"").decode().split())


def line_of(node: Node) -> int:
    """The line of a node, from 1 on."""
    return node.start_point[0] + 1


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, in the order of the text, however deep."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.children))


def fields(node: Node, name: str) -> Node | None:
    """The child of that name."""
    return node.child_by_field_name(name)


def declared(node: Node) -> Node | None:
    """The name within a declarator: `A` of `*A[3]`."""
    while node.type not in ("identifier", "qualified_identifier", "template_function"):
        inner = fields(node, "declarator")
        if inner is None:
            below = [each for each in node.named_children if "declarator" in each.type]
            names = [each for each in node.named_children if each.type == "identifier"]
            inner = next(iter(below or names), None)
        if inner is None:
            return None
        node = inner
    return node


def parents(node: Node) -> Iterator[Node]:
    """What a node lies in, from the inside out."""
    above = node.parent
    while above is not None:
        yield above
        above = above.parent
