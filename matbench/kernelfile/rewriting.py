"""Edits of a source at positions in its syntax tree; lines keep their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from matbench.kernelfile import signature, syntax

if TYPE_CHECKING:
    from tree_sitter import Node

#: Start and end of a text, and its replacement.
Edit = tuple[int, int, str]

_CLUSTER = re.compile(r"\b__cluster_dims__\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
#: Attributes of a kernel that a device function must not have.
_DRESS = re.compile(
    r"\bstatic\b|\binline\b|\b__forceinline__\b|\b__global__\b"
    r"|\b__(?:launch_bounds|maxnreg|block_size)__\s*(?=\()"
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


def as_device_function(node: Node, code: str, name: str) -> tuple[list[Edit], str]:
    """Edits that turn a kernel into a device function `name`, and the kernel's cluster dimensions.

    The kernel stays declared for other code that launches it or takes its address.
    """
    outer = node
    for above in syntax.parents(node):
        if above.type == "template_declaration" or _is_one_linkage(above):
            outer = above
        else:
            break
    body = syntax.fields(node, "body")
    start, end = outer.start_byte, body.start_byte if body is not None else node.end_byte
    edits: list[Edit] = []
    declaration = re.sub(r"\bstatic\b", "", " ".join(code[start:end].split()))
    own_name = signature.name_of(node)
    text = code[own_name.start_byte : own_name.end_byte]
    if "#" not in declaration and not _is_declared_before(node, text):
        edits.append((start, start, f"{declaration}; "))
    if _is_one_linkage(outer):
        edits.append((start, outer.named_children[-1].start_byte, ""))
    edits.append((own_name.start_byte, own_name.end_byte, name))
    head = code[node.start_byte : own_name.start_byte]
    for found in _DRESS.finditer(head):
        stop = found.end()
        if head[stop : stop + 1] == "(":
            stop = syntax.closing(head, stop)
        is_global = found[0] == "__global__"
        word = "static __device__ __forceinline__" if is_global else ""
        edits.append((node.start_byte + found.start(), node.start_byte + stop, word))
    cluster = _CLUSTER.search(head)
    if cluster is not None:
        begin = node.start_byte
        edits.append((begin + cluster.start(), begin + cluster.end(), ""))
    for parameter in signature.parameter_nodes(node):
        for child in parameter.children:
            inner = syntax.fields(parameter, "declarator")
            if syntax.text_of(child) == "__grid_constant__" and inner is not None:
                edits.append((child.start_byte, child.end_byte, ""))
                edits.append((inner.start_byte, inner.start_byte, "&"))
    return [*edits, *_instantiations(node, text)], cluster[1].strip() if cluster else ""


def _is_one_linkage(node: Node) -> bool:
    """Whether this is `extern "C"` for a single function."""
    body = syntax.fields(node, "body") if node.type == "linkage_specification" else None
    return body is not None and body.type != "declaration_list"


def _root(node: Node) -> Node:
    return next(iter(list(syntax.parents(node))[-1:]), node)


def _is_declared_before(node: Node, name: str) -> bool:
    """Whether the function also has a declaration besides its definition."""
    for other in syntax.walk(_root(node)):
        if other.type == "function_declarator" and other.parent is not None:
            declared = syntax.declared(other)
            is_same = declared is not None and syntax.text_of(declared) == name
            if is_same and other.parent.type == "declaration":
                return True
    return False


def _instantiations(node: Node, name: str) -> list[Edit]:
    """Removes explicit instantiations of the kernel, which no longer exists."""
    return [
        (each.start_byte, each.end_byte, "")
        for each in syntax.walk(_root(node))
        if each.type == "template_instantiation" and re.search(rf"\b{name}\b", syntax.text_of(each))
    ]
