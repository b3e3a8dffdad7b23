"""Kernels whose parameters no argument can be passed for, with what those consist of instead.

`Matrix A`, a struct of numbers and pointers, becomes `int A_width, …, float *A_elements`; a pointer
to alpha or beta becomes the number, and arrays of arrays (`float A[N][N]`, `float (*A)[N]`) the
pointer to their first element. The body then begins with what the parameters were. Lines keep their
numbers.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator

from matbench.kernelfile import signature, syntax

_FACTOR = re.compile(r"(?:\w+_)?(?:alpha|beta)(?:_\w+)?", re.IGNORECASE)
#: What the source may have to unpack.
_ANY = re.compile(r"struct|alpha|beta|\]\s*\[|\)\s*\[", re.IGNORECASE)
#: A number or a pointer among the fields of a struct.
_PLAIN = re.compile(r"[*\s]*(?:__restrict__ )?\w+")
#: `float A[M][N]`, whose first extent may be missing, and `float (*A)[N]`.
_ARRAYS = re.compile(
    r"(?P<kind>[\w:<>, ]+?) ?(?:(?P<name>\w+) ?(?P<first>\[[^]]*\])"
    r"|\( ?\*(?P<words>[\w ]*?)(?P<at>\w+) ?\)) ?(?P<inner>(?: ?\[[^]]+\])+)"
)


@functools.lru_cache(maxsize=64)
def unpacked(source: str) -> str:
    """The source with its kernels' parameters unpacked; the same if there is nothing to unpack."""
    if not _ANY.search(source):
        return source
    code = syntax.expanded(source)
    root = syntax.parse(syntax.skeleton(code))
    structs = dict(_structs(root))
    edits: list[syntax.Edit] = []
    size = 0
    for edit in itertools.chain.from_iterable(_edits(n, structs) for n in signature.entries(root)):
        edits.append(edit)
        syntax.require_few(size := size + len(edit[2]))
    return syntax.applied(code, edits) if edits else source


def _structs(root: syntax.Node) -> Iterator[tuple[str, tuple[str, list[tuple[str, str]]]]]:
    """The structs of numbers and pointers: how each is written, and its fields' types and names."""
    for node in syntax.walk(root):
        body = syntax.fields(node, "body") if node.type == "struct_specifier" else None
        if body is None or node.parent is None:
            continue
        is_typedef = node.parent.type == "type_definition"
        named = (node.parent, "declarator") if is_typedef else (node, "name")
        written = syntax.text_of(syntax.fields(*named))
        members = [m for m in body.named_children if syntax.fields(m, "declarator") is not None]
        fields = [
            (syntax.text_of(syntax.fields(member, "type")), syntax.text_of(declarator))
            for member in members
            for declarator in member.children_by_field_name("declarator")
        ]
        is_plain = all(kind and _PLAIN.fullmatch(text) for kind, text in fields)
        if written and fields and is_plain and {m.type for m in members} == {"field_declaration"}:
            yield written, (written if is_typedef else f"struct {written}", fields)


def _edits(
    node: syntax.Node, structs: dict[str, tuple[str, list[tuple[str, str]]]]
) -> Iterator[syntax.Edit]:
    body = syntax.fields(node, "body")
    start: list[str] = []
    for parameter in signature.parameter_nodes(node):
        kind, declarator = syntax.fields(parameter, "type"), syntax.fields(parameter, "declarator")
        name = syntax.declared(declarator)
        if kind is None or declarator is None or name is None:
            continue
        of, named = syntax.text_of(kind).removeprefix("struct "), syntax.text_of(name)
        if of in structs and declarator.type == "identifier":
            written, fields = structs[of]
            parts = [(k, re.sub(r"(\w+)$", rf"{named}_\1", text)) for k, text in fields]
            given = ", ".join(re.sub(r".*?(\w+)$", r"\1", text) for _, text in parts)
            start.append(f"{written} {named} = {{{given}}};")
            new = ", ".join(f"{k} {text}" for k, text in parts)
            yield parameter.start_byte, parameter.end_byte, new
        elif declarator.type == "pointer_declarator" and _FACTOR.fullmatch(named):
            start.append(f"const {of} *{named} = &{named}_value;")
            yield parameter.start_byte, parameter.end_byte, f"{of} {named}_value"
        elif arrays := _ARRAYS.fullmatch(syntax.text_of(parameter)):
            element, inner, first = arrays["kind"], arrays["inner"], arrays["first"] or "[]"
            is_whole = first != "[]"  # then the text keeps its first extent, too
            values = f"({element} (*){first * is_whole}{inner}){named}_values"
            start.append(f"{element} (*{named}){inner} = {'*' * is_whole}{values};")
            new = f"{element} *{arrays['words'] or ''}{named}_values"
            yield parameter.start_byte, parameter.end_byte, new
    if start and body is not None:
        yield body.start_byte + 1, body.start_byte + 1, f" {' '.join(start)}"
