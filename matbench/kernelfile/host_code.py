"""Recognises host code in a CUDA C++ file, which no kernel can use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matbench.kernelfile import signature, syntax

if TYPE_CHECKING:
    from tree_sitter import Node

#: Nodes that never matter to a kernel, and those that matter only if it uses them.
OF_HOST = {"using_declaration", "template_instantiation", "namespace_alias_definition"}
_TYPES = {"struct_specifier", "union_specifier", "type_definition", "alias_declaration"}
_SIMPLE = {"primitive_type", "sized_type_specifier", "enum_specifier"}


def is_host(node: Node) -> bool:
    """Whether a node declares or defines a function or variable that no kernel can use.

    Kernels can use constants, and `constexpr` functions can compute them.
    """
    while node.type == "template_declaration" and node.named_children:
        node = node.named_children[-1]
    words = signature.words(node)
    if node.type == "function_definition" or (node.type == "declaration" and _is_prototype(node)):
        return not words & {"__global__", "__device__", "constexpr"}
    kind = syntax.fields(node, "type")
    if node.type != "declaration" or kind is None or syntax.fields(kind, "body") is not None:
        return False
    return not words & {"__device__", "__constant__", "__shared__", "constexpr", "const"}


def is_type(node: Node) -> bool:
    """Whether this defines a type, or a variable of a type that may be host-only."""
    kind = syntax.fields(node, "type")
    if node.type == "declaration":
        return kind is not None and kind.type not in _SIMPLE and not _is_prototype(node)
    is_enum = any(inner.type == "enum_specifier" for inner in syntax.walk(node))
    return node.type in _TYPES and not is_enum


def _is_prototype(node: Node) -> bool:
    """Whether a declaration is that of a function, whatever its return type."""
    below = syntax.fields(node, "declarator")
    while below is not None and below.type != "function_declarator":
        named = [child for child in below.named_children if "declarator" in child.type]
        below = next(iter(named), None)
    return below is not None
