"""Host code of a CUDA C++ file: what no kernel can use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matbench.kernelfile import signature, syntax

if TYPE_CHECKING:
    from tree_sitter import Node

#: What means nothing to a kernel, and what does only if the kernel uses it.
OF_HOST = {"using_declaration", "template_instantiation", "namespace_alias_definition"}
_TYPES = {"struct_specifier", "union_specifier", "type_definition", "alias_declaration"}
_SIMPLE = {"primitive_type", "sized_type_specifier", "enum_specifier"}


def is_host(node: Node) -> bool:
    """Whether no kernel can use a function, declared or defined, or a variable.

    A `constexpr` function can compute constants, and constants are the kernel's, too.
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
    """Whether this defines a type, or something of a type that may be the host's."""
    kind = syntax.fields(node, "type")
    if node.type == "declaration":
        return kind is not None and kind.type not in _SIMPLE and not _is_prototype(node)
    is_enum = any(each.type == "enum_specifier" for each in syntax.walk(node))
    return node.type in _TYPES and not is_enum


def _is_prototype(node: Node) -> bool:
    """Whether a declaration is a function's, whatever that returns."""
    below = syntax.fields(node, "declarator")
    while below is not None and below.type != "function_declarator":
        named = [each for each in below.named_children if "declarator" in each.type]
        below = next(iter(named), None)
    return below is not None
