"""The signature of a kernel's entry: what it is called, and what it takes."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import msgspec

from matbench.errors import MatbenchError
from matbench.kernelfile import syntax
from matbench.kernelfile.syntax import without_comments
from matbench.model import Parameter

if TYPE_CHECKING:
    from tree_sitter import Node

_NAME = re.compile(r"[A-Za-z_]\w*")
_QUALIFIERS = {
    "const", "volatile", "restrict", "__restrict__", "__restrict", "struct", "__grid_constant__"
}  # fmt: skip
_TENSOR_MAP_ARGUMENT = re.compile(r"\s*tensor_map\s*\(\s*(\w+)\s*,([^,]+),([^,]+)\)\s*")

#: The types that an entry can take by value, and NumPy's names for them.
SCALARS = {
    "int": "int32", "unsigned": "uint32", "unsigned int": "uint32", "float": "float32",
    "double": "float64", "size_t": "uint64", "long": "int64", "unsigned long": "uint64",
    "long long": "int64", "unsigned long long": "uint64", "short": "int16", "char": "int8",
}  # fmt: skip
#: Describes a matrix to the copy engine (TMA); passed by value as `__grid_constant__`.
TENSOR_MAP = "CUtensorMap"


class SourceError(MatbenchError):
    """Something that the source lacks; `line` counts from 1, None: no line is to blame."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.line = line


class TemplateParameter(msgspec.Struct, frozen=True):
    """A parameter of a template: `kind` is `int`, `bool`, `typename` …"""

    kind: str
    name: str
    default: str | None = None


class Function(msgspec.Struct, frozen=True):
    """A `__global__` function as the source declares it, its namespaces in its name.

    `launch_bounds` is the text of the first argument of `__launch_bounds__`.
    """

    name: str
    parameters: tuple[Parameter, ...]
    template: tuple[TemplateParameter, ...] = ()
    launch_bounds: str | None = None
    line: int = 1
    is_extern_c: bool = False


@functools.lru_cache(maxsize=64)
def functions(source: str) -> list[Function]:
    """The `__global__` functions that a source defines, in order of appearance."""
    root = syntax.parse(syntax.expanded(source))
    found = [_function(node) for node in entries(root)]
    if not found and root.has_error:
        wrong = next(node for node in syntax.walk(root) if node.is_error or node.is_missing)
        raise SourceError("not CUDA C++ that can be read", syntax.line_of(wrong))
    return found


def entries(root: Node) -> list[Node]:
    """The definitions of `__global__` functions in a tree, but no specialisations of templates."""
    return [node for node in syntax.walk(root) if _is_entry(node)]


def _is_entry(node: Node) -> bool:
    if node.type != "function_definition" or "__global__" not in words(node):
        return False
    name = _named(node)
    return name is not None and "<" not in syntax.text_of(name)


def words(node: Node) -> set[str]:
    """The words before a function's name and parameters: `__global__`, `static`, …"""
    return {
        word
        for child in node.children
        if "declarator" not in child.type and child.type != "compound_statement"
        for word in syntax.text_of(child).split()
    }


def _declarator(node: Node) -> Node | None:
    """The part of a definition that holds the name and the parameters."""
    found = syntax.fields(node, "declarator")
    while found is not None and found.type != "function_declarator":
        found = syntax.fields(found, "declarator")
    return found


def _named(node: Node) -> Node | None:
    declarator = _declarator(node)
    return syntax.declared(declarator) if declarator is not None else None


def _function(node: Node) -> Function:
    name, declarator = _named(node), _declarator(node)
    assert name is not None and declarator is not None
    spaces: list[str] = []
    template: tuple[TemplateParameter, ...] = ()
    is_extern_c = 'extern "C"' in syntax.text_of(node)[: name.start_byte - node.start_byte]
    for above in syntax.parents(node):
        if above.type == "template_declaration" and not template:
            template = _template(above)
        elif above.type == "linkage_specification":
            is_extern_c = is_extern_c or '"C"' in syntax.text_of(above)[:16]
        elif above.type == "namespace_definition":
            space = syntax.fields(above, "name")
            if space is not None:
                spaces.insert(0, syntax.text_of(space).replace(" ", ""))
    bounds = next((each for each in syntax.walk(node) if each.type == "launch_bounds"), None)
    listed = syntax.fields(declarator, "parameters")
    return Function(
        name="::".join((*spaces, syntax.text_of(name).replace(" ", ""))),
        parameters=tuple(_declared(each) for each in _listed(listed)),
        template=template,
        launch_bounds=_bounds(bounds) if bounds is not None else None,
        line=syntax.line_of(name),
        is_extern_c=is_extern_c,
    )


def _listed(parameters: Node | None) -> list[Node]:
    """The declarations of a parameter list; `(void)` has none."""
    kinds = ("parameter_declaration", "optional_parameter_declaration")
    found = [each for each in (parameters.children if parameters else ()) if each.type in kinds]
    if len(found) == 1 and syntax.text_of(found[0]) == "void":
        return []
    return found


def _bounds(node: Node) -> str | None:
    values = [each for each in node.named_children]
    return syntax.text_of(values[0]) if values else None


def _template(node: Node) -> tuple[TemplateParameter, ...]:
    listed = syntax.fields(node, "parameters")
    found = []
    for each in listed.named_children if listed is not None else ():
        default = syntax.fields(each, "default_type") or syntax.fields(each, "default_value")
        value = syntax.text_of(default) if default is not None else None
        if "type_parameter" in each.type:
            names = [c for c in each.named_children if c.type == "type_identifier"]
            name = syntax.text_of(names[0]) if names else ""
            found.append(TemplateParameter("typename", name, value))
        else:
            parameter = _declared(each)
            found.append(TemplateParameter(parameter.type, parameter.name, value))
    return tuple(found)


def _declared(node: Node) -> Parameter:
    """A parameter as its declaration has it; a pointer to a pointer has a type that ends in `*`."""
    declarator = syntax.fields(node, "declarator")
    name = syntax.declared(declarator) if declarator is not None else None
    kinds = [each for each in node.children if not _is_qualifier(each) and each != declarator]
    for index, each in enumerate(kinds):
        if each.type == "=":
            kinds = kinds[:index]
            break
    kind = " ".join(map(syntax.text_of, kinds)).removeprefix("std::")
    shape = syntax.text_of(declarator) if declarator is not None else ""
    stars = shape.count("*") + shape.count("[")
    return Parameter(
        type=kind + " *" * (stars - 1) + " &" * shape.count("&"),
        name=syntax.text_of(name) if name is not None else "",
        pointer=stars > 0,
    )


def _is_qualifier(node: Node) -> bool:
    return node.type in ("type_qualifier", "attribute_specifier", "ERROR", "struct")


def tensor_map(text: str) -> tuple[str, str, str] | None:
    """The matrix of an argument `tensor_map(A, 128, 64)`, and its box's rows and columns."""
    found = _TENSOR_MAP_ARGUMENT.fullmatch(text)
    return (found[1], found[2].strip(), found[3].strip()) if found else None


def holds(kind: str, value: int | float) -> bool:
    """Whether a parameter of this type can take the value as it is."""
    whole = re.fullmatch(r"(u?)int(\d+)", SCALARS[kind])
    if whole is None:
        return abs(value) < 2.0**128  # about where float32 ends
    bits = int(whole[2]) - (not whole[1])
    return value == int(value) and (0 if whole[1] else -(2**bits)) <= value < 2**bits


def parameters(source: str, entry: str) -> tuple[Parameter, ...]:
    """The parameters of the entry, in order."""
    code = without_comments(source)
    start, end = parameter_list(code, entry)
    text = code[start:end].strip()
    if text in ("", "void"):
        return ()
    return tuple(_parameter(piece, _line(code, start)) for piece in text.split(","))


def line_of(source: str, entry: str, index: int) -> int:
    """The line on which a parameter of the entry is named."""
    code = without_comments(source)
    start, end = parameter_list(code, entry)
    pieces = code[start:end].split(",")[: index + 1]
    return _line(code, start + len(",".join(pieces).rstrip()))


def _parameter(text: str, line: int) -> Parameter:
    words = _NAME.findall(text)
    if len(words) < 2:
        raise SourceError(f"parameter `{text.strip()}` has no name", line)
    if text.count("*") > 1:
        raise SourceError(f"{words[-1]} is a pointer to a pointer; buffers are flat", line)
    kind = " ".join(word for word in words[:-1] if word not in _QUALIFIERS)
    pointer = "*" in text or "[" in text
    if not pointer and kind not in SCALARS and kind != TENSOR_MAP:
        known = ", ".join((*SCALARS, TENSOR_MAP))
        raise SourceError(f"{words[-1]} is a `{kind}`; known are {known}", line)
    return Parameter(type=kind, name=words[-1], pointer=pointer)


def parameter_list(code: str, entry: str) -> tuple[int, int]:
    """Where the entry's parameter list starts and ends, between its parentheses."""
    pattern = rf"\b__global__\b[^;{{}}]*?\b{re.escape(entry)}\s*\("
    found = re.search(pattern, code)
    if found is None:
        raise SourceError(f"no entry `__global__ void {entry}(…)`", None)
    start = found.end()
    depth = 1
    for position in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[position], 0)
        if depth == 0:
            break
    else:
        raise SourceError(f"the parameter list of {entry} is not closed", _line(code, start))
    if not re.search(r'\bextern\s+"C"', code[: found.start()]) and not re.match(
        r'__global__\s+extern\s+"C"', code[found.start() :]
    ):
        line = _line(code, found.start())
        raise SourceError(f'entry {entry} must be declared `extern "C"`', line)
    return start, position


def _line(code: str, position: int) -> int:
    return code.count("\n", 0, position) + 1
