"""Edits of a source at positions in its syntax tree; lines keep their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from matbench.kernelfile import signature, syntax

if TYPE_CHECKING:
    from tree_sitter import Node

#: Start and end of a text, and its replacement.
Edit = tuple[int, int, str]

#: Attributes of a kernel that a device function must not have.
_DRESS = re.compile(
    r"\bstatic\b|\binline\b|\b__forceinline__\b|\b__global__\b"
    r"|\b__(?:launch_bounds|cluster_dims|maxnreg|block_size)__\s*(?=\()"
)


def applied(code: str, edits: Iterable[Edit]) -> str:
    """The text after its edits; an edit inside another one is ignored."""
    pieces, end = [], 0
    for start, stop, text in sorted(edits, key=lambda edit: (edit[0], edit[1] > edit[0], -edit[1])):
        if start < end:
            continue
        # Keep the number of lines.
        lost = code.count("\n", start, stop) - text.count("\n")
        pieces += [code[end:start], text, "\n" * lost]
        end = stop
    return "".join((*pieces, code[end:]))


def as_device_function(node: Node, code: str, name: str) -> tuple[list[Edit], dict[str, str]]:
    """The edits that turn the kernel defined at `node` into a device function `name`, and the
    attributes that it loses, such as `__launch_bounds__`, with their arguments.

    The kernel stays declared for other code that launches it or takes its address.
    """
    own_name = signature.name_of(node)
    text = code[own_name.start_byte : own_name.end_byte]
    edits = [
        *_declared(node, code, text),
        (own_name.start_byte, own_name.end_byte, name),
        *_references(node),
        *_instantiations(node, text),
    ]
    lost = {}
    head = code[node.start_byte : own_name.start_byte]
    for match in _DRESS.finditer(head):
        stop = match.end()
        if head[stop : stop + 1] == "(":
            stop = syntax.closing(head, stop)
            lost[match[0].strip()] = head[match.end() + 1 : stop - 1].strip()
        word = "static __device__ __forceinline__" if match[0] == "__global__" else ""
        edits.append((node.start_byte + match.start(), node.start_byte + stop, word))
    return edits, lost


def _declared(node: Node, code: str, name: str) -> Iterator[Edit]:
    """Declare the kernel before its definition, which loses its linkage."""
    outer = node
    for above in syntax.parents(node):
        if above.type != "template_declaration" and not _is_one_linkage(above):
            break
        outer = above
    body = syntax.fields(node, "body")
    end = body.start_byte if body is not None else node.end_byte
    declaration = re.sub(r"\bstatic\b", "", " ".join(code[outer.start_byte : end].split()))
    if "#" not in declaration and not _is_declared_before(node, name):
        yield outer.start_byte, outer.start_byte, f"{declaration}; "
    if _is_one_linkage(outer):
        yield outer.start_byte, outer.named_children[-1].start_byte, ""


def _references(node: Node) -> Iterator[Edit]:
    """Tensor maps, `__grid_constant__` in a kernel, are passed on by reference."""
    for parameter in signature.parameter_nodes(node):
        declarator = syntax.fields(parameter, "declarator")
        for child in parameter.children:
            if syntax.text_of(child) == "__grid_constant__" and declarator is not None:
                yield child.start_byte, child.end_byte, ""
                yield declarator.start_byte, declarator.start_byte, "&"


def _is_one_linkage(node: Node) -> bool:
    """Whether this is `extern "C"` for a single function."""
    body = syntax.fields(node, "body") if node.type == "linkage_specification" else None
    return body is not None and body.type != "declaration_list"


def _root(node: Node) -> Node:
    return [node, *syntax.parents(node)][-1]


def _is_declared_before(node: Node, name: str) -> bool:
    """Whether the function also has a declaration besides its definition."""
    declared = [
        syntax.declared(other)
        for other in syntax.walk(_root(node))
        if other.type == "function_declarator"
        and other.parent
        and other.parent.type == "declaration"
    ]
    return any(other is not None and syntax.text_of(other) == name for other in declared)


def _instantiations(node: Node, name: str) -> list[Edit]:
    """Removes explicit instantiations of the kernel, which no longer exists."""
    return [
        (inner.start_byte, inner.end_byte, "")
        for inner in syntax.walk(_root(node))
        if inner.type == "template_instantiation"
        and re.search(rf"\b{name}\b", syntax.text_of(inner))
    ]
