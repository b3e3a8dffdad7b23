"""The entry of a kernel: its signature in the source, and how front matter names it."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from matbench.kernelfile import expressions, syntax
from matbench.kernelfile.syntax import SourceError as SourceError
from matbench.model import BYTES, STORAGE, Kernel, Parameter

#: The types that an entry can take by value, with NumPy's names for them.
SCALARS = {
    "int": "int32", "unsigned": "uint32", "unsigned int": "uint32", "float": "float32",
    "double": "float64", "size_t": "uint64", "long": "int64", "unsigned long": "uint64",
    "long long": "int64", "unsigned long long": "uint64", "short": "int16", "char": "int8",
    "unsigned short": "uint16", "signed char": "int8", "unsigned char": "uint8",
    "bool": "bool", "__half": "float16", "__nv_bfloat16": "bfloat16",
}  # fmt: skip
#: Other spellings of types.
_SAME = {
    "int32_t": "int", "uint32_t": "unsigned", "int64_t": "long long", "uint": "unsigned",
    "uint64_t": "unsigned long long", "long int": "long", "unsigned long int": "unsigned long",
    "long long int": "long long", "long unsigned int": "unsigned long", "signed": "int",
    "unsigned long long int": "unsigned long long", "signed int": "int", "int16_t": "short",
    "int8_t": "signed char", "uint8_t": "unsigned char", "uchar": "unsigned char",
    "ptrdiff_t": "long", "half": "__half", "nv_bfloat16": "__nv_bfloat16", "uint16_t":
    "unsigned short", "ushort": "unsigned short", "ulong": "unsigned long", "ssize_t": "long",
    **dict.fromkeys(("intmax_t", "intptr_t", *(f"int_fast{n}_t" for n in (16, 32, 64))), "long"),
    **dict.fromkeys(("uintmax_t", "uintptr_t", *(f"uint_fast{n}_t" for n in (16, 32, 64))),
                    "unsigned long"),
}  # fmt: skip
_SAME |= {
    name.replace("int", "int_least"): kind
    for name, kind in _SAME.items()
    if re.fullmatch(r"u?int\d+_t", name)
}
_QUALIFIED = re.compile(r"(?:typename )?(?:(?:\w+)?::)+(?=\w+$)")
#: Describes a matrix to the Tensor Memory Accelerator; passed by value as `__grid_constant__`.
TENSOR_MAP = "CUtensorMap"


class TemplateParameter(msgspec.Struct, frozen=True):
    """A parameter of a template: `kind` is `int`, `bool`, `typename` …"""

    kind: str
    name: str
    default: str | None = None


class Signature(msgspec.Struct, frozen=True):
    """A `__global__` function as the source declares it; its name includes its namespaces.

    `launch_bounds` is the text of the first argument of `__launch_bounds__`; `defaults` and `lines`
    are those of parameters.
    """

    name: str
    parameters: tuple[Parameter, ...]
    template: tuple[TemplateParameter, ...] = ()
    launch_bounds: str | None = None
    line: int = 1
    is_extern_c: bool = False
    defaults: Mapping[str, str] = {}
    lines: tuple[int, ...] = ()


@functools.lru_cache(maxsize=64)
def functions(source: str) -> list[Signature]:
    """The `__global__` functions that a source defines, in order of appearance."""
    root = syntax.parse(syntax.skeleton(syntax.expanded(source)))
    definitions = [*map(function, entries(root))]
    if not definitions and root.has_error:
        errors = (node for node in syntax.walk(root) if node.is_error or node.is_missing)
        wrong = next(errors, root)
        raise SourceError("cannot be parsed as CUDA C++", syntax.line_of(wrong))
    return definitions


def entries(root: syntax.Node) -> list[syntax.Node]:
    """The definitions of `__global__` functions in a tree, without template specialisations."""
    kernels = [node for node in syntax.outside(root) if _is_global(node)]
    return [node for node in kernels if "<" not in (syntax.text_of(name_of(node)) or "<")]


def host_functions(source: str) -> list[Signature]:
    """The functions on the host that a source defines, without `main` and those of classes."""
    root = syntax.parse(syntax.skeleton(syntax.expanded(source)))
    return [function(node) for node in syntax.outside(root) if _is_on_host(node)]


def _is_on_host(node: syntax.Node) -> bool:
    if node.type != "function_definition" or {"__global__", "__device__"} & words(node):
        return False
    is_plain = re.fullmatch(r"(?!main$)[^<~:]+", syntax.text_of(name_of(node)))
    above = " ".join(outer.type for outer in syntax.parents(node))
    return is_plain is not None and "class" not in above and "struct" not in above


def _is_global(node: syntax.Node) -> bool:
    return node.type == "function_definition" and "__global__" in words(node)


def is_specialised(root: syntax.Node, name: str) -> bool:
    named = map(name_of, filter(_is_global, syntax.outside(root)))
    return any(syntax.text_of(node).replace(" ", "").startswith(f"{name}<") for node in named)


def words(node: syntax.Node) -> set[str]:
    """The words before a function's name and parameters: `__global__`, `static`, …"""
    kept = [
        c for c in node.children if "declarator" not in c.type and c.type != "compound_statement"
    ]
    return {word for child in kept for word in syntax.text_of(child).split()}


def _declarator(node: syntax.Node) -> syntax.Node | None:
    """The part of a definition that holds the name and the parameters."""
    declarator = syntax.fields(node, "declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = syntax.fields(declarator, "declarator")
    return declarator


def name_of(node: syntax.Node) -> syntax.Node | None:
    """The name of the function that a node defines."""
    return syntax.declared(_declarator(node))


def untemplated(node: syntax.Node) -> syntax.Node:
    """What a template declares, or the node if it is none."""
    while node.type == "template_declaration" and node.named_children:
        node = node.named_children[-1]
    return node


def definition_of(node: syntax.Node) -> syntax.Node | None:
    """The function, or function template, that a top-level node defines."""
    node = untemplated(node)
    return node if node.type == "function_definition" and name_of(node) is not None else None


def qualified_name(node: syntax.Node) -> str:
    """The name of the function defined by a node, with its namespaces."""
    outer = [above for above in syntax.parents(node) if above.type == "namespace_definition"]
    names = [*(syntax.fields(space, "name") for space in outer[::-1]), name_of(node)]
    return "::".join(syntax.text_of(name).replace(" ", "") for name in names if name is not None)


def function(node: syntax.Node) -> Signature:
    name = name_of(node)
    assert name is not None
    template: tuple[TemplateParameter, ...] = ()
    is_extern_c = 'extern "C"' in syntax.text_of(node)[: name.start_byte - node.start_byte]
    for above in syntax.parents(node):
        if above.type == "template_declaration" and not template:
            template = _template(above)
        elif above.type == "linkage_specification":
            is_extern_c = is_extern_c or b'"C"' in (above.text or b"")[:16]
    bounds = [inner for inner in syntax.walk(node) if inner.type == "launch_bounds"][:1]
    pairs = [(_declared(parameter), parameter) for parameter in parameter_nodes(node)]
    given = {one.name: syntax.fields(parameter, "default_value") for one, parameter in pairs}
    return Signature(
        name=qualified_name(node),
        parameters=tuple(one for one, _ in pairs),
        template=template,
        launch_bounds=next((syntax.text_of(n.named_children[0]) for n in bounds), None),
        line=syntax.line_of(name),
        is_extern_c=is_extern_c,
        defaults={name: syntax.text_of(text) for name, text in given.items() if text is not None},
        lines=tuple(syntax.line_of(syntax.fields(p, "declarator") or p) for _, p in pairs),
    )


def parameter_nodes(node: syntax.Node) -> list[syntax.Node]:
    """The declarations of a function's parameters; none for `(void)`."""
    parameters = syntax.fields(_declarator(node), "parameters")
    kinds = ("parameter_declaration", "optional_parameter_declaration")
    nodes = [child for child in (parameters.children if parameters else ()) if child.type in kinds]
    if len(nodes) == 1 and syntax.text_of(nodes[0]) == "void":
        return []
    return nodes


def _template(node: syntax.Node) -> tuple[TemplateParameter, ...]:
    listed = syntax.fields(node, "parameters")
    template = []
    for declared in listed.named_children if listed is not None else ():
        given = (syntax.fields(declared, f"default_{what}") for what in ("type", "value"))
        default = next(filter(None, given), None)
        value = syntax.text_of(default) or None
        if "type_parameter" in declared.type:
            names = (c for c in declared.named_children if c.type == "type_identifier")
            name = syntax.text_of(next(names, None))
            template.append(TemplateParameter("typename", name, value))
        else:
            parameter = _declared(declared)
            template.append(TemplateParameter(parameter.type, parameter.name, value))
    return tuple(template)


def _declared(node: syntax.Node) -> Parameter:
    """A parameter as declared; the type of a pointer to a pointer ends in `*`."""
    declarator = syntax.fields(node, "declarator")
    declaring = itertools.takewhile(lambda child: child.type != "=", node.children)
    dress = ("type_qualifier", "attribute_specifier", "ERROR", "struct")
    kinds = [child for child in declaring if child.type not in dress and child != declarator]
    kind = " ".join(map(syntax.text_of, kinds)).removeprefix("::").removeprefix("std::")
    shape = syntax.text_of(declarator)
    stars = shape.count("*") + shape.count("[")
    return Parameter(
        type=_SAME.get(kind, kind) + " *" * (stars - 1) + " &" * shape.count("&"),
        name=syntax.text_of(syntax.declared(declarator)),
        pointer=stars > 0,
    )


def bits_of_16(kind: str, value: float) -> int | None:
    """The bits of a number as `__half` or `__nv_bfloat16`; None if it would be rounded."""
    import ml_dtypes
    import numpy as np

    narrow = np.float16 if SCALARS[kind] == "float16" else ml_dtypes.bfloat16
    with np.errstate(over="ignore"):
        kept = np.float64(value).astype(narrow)
    return int(kept.view(np.uint16)) if float(kept) == value else None


def is_known(parameter: Parameter) -> bool:
    """Whether matbench can pass an argument of this type."""
    known = {*STORAGE, *BYTES} if parameter.pointer else {*SCALARS, TENSOR_MAP}
    return parameter.type in known


def checked(parameters: Iterable[Parameter], line: int) -> None:
    """Refuse parameters that matbench cannot pass arguments to."""
    for parameter in parameters:
        kind, name = parameter.type, parameter.name
        if not name:
            raise SourceError(f"a parameter of type `{kind}` has no name", line)
        if kind.endswith("*"):
            raise SourceError(f"{name} is a pointer to a pointer; buffers must be flat", line)
        if not parameter.pointer and kind not in SCALARS and kind != TENSOR_MAP:
            known = ", ".join((*SCALARS, TENSOR_MAP))
            raise SourceError(f"{name} has type `{kind}`; supported are {known}", line)


def resolved(kind: str, types: Mapping[str, str]) -> str:
    """A type with its aliases replaced, whatever namespaces and classes they are in."""
    for _ in range(8):
        if kind in STORAGE:
            break
        bare = _QUALIFIED.sub("", kind)
        kind = types.get(bare, bare)
    return _SAME.get(kind, kind)


def aliases(*sources: str) -> dict[str, str]:
    """The type aliases that texts define: `typedef`, `using`, `#define`; the last counts."""
    meanings = {}
    roots = (syntax.parse(syntax.skeleton(syntax.expanded(source))) for source in sources)
    for node in (node for root in roots for node in syntax.outside(root)):
        if node.type not in ("alias_declaration", "preproc_def", "type_definition"):
            continue
        kind = syntax.fields(node, "type") or syntax.fields(node, "value")
        name = syntax.fields(node, "declarator") or syntax.fields(node, "name")
        if kind is not None and name is not None:
            meanings[syntax.text_of(name)] = syntax.text_of(kind)
    return meanings


def pieces(text: str, opening: str = "([<", closing: str = ")]>") -> tuple[str, ...]:
    """A text split at commas outside parentheses and other brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in opening) - (character in closing)
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(piece.strip() for piece in parts)


# The entry of a kernel as front matter names it: `sgemm`, `ns::sgemm<float, BM, 2 * BN>`


_ENTRY = re.compile(r"((?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*(?:<(.*)>)?", re.DOTALL)
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
#: The characters allowed in a template argument: none that ends it, or the line.
_ARGUMENT = re.compile(r"[\w\s:*+/%()<>=!&|,.?-]+")


class Entry(NamedTuple):
    """A function's name with its namespaces, and its template arguments."""

    name: str
    arguments: tuple[str, ...]

    @property
    def last_name(self) -> str:
        return self.name.rpartition("::")[2]

    @property
    def names(self) -> set[str]:
        return {name for argument in self.arguments for name in _NAME.findall(argument)}


def entry_named(text: str) -> Entry | None:
    """The entry that a text names; None if it is not one."""
    if (match := _ENTRY.fullmatch(text.strip())) is None:
        return None
    arguments = pieces(match[2]) if match[2] and match[2].strip() else ()
    if not all(argument and _ARGUMENT.fullmatch(argument) for argument in arguments):
        return None
    return Entry(match[1].removeprefix("::"), arguments)


def entry_of(kernel: Kernel) -> Entry:
    """The entry of a kernel; library routines have none."""
    return entry_named(kernel.entry) or Entry(kernel.entry, ())


def as_text(entry: Entry) -> str:
    """The entry as front matter names it."""
    return f"{entry.name}<{', '.join(entry.arguments)}>" if entry.arguments else entry.name


def written(entry: Entry, values: Mapping[str, int]) -> str:
    """The entry in C++, with the constants' values in place of their names."""
    arguments = tuple(with_values(argument, values) for argument in entry.arguments)
    return as_text(entry._replace(arguments=arguments))


def with_values(text: str, values: Mapping[str, object]) -> str:
    """A text, such as a template argument, with values in place of their names."""
    return _NAME.sub(lambda name: str(values.get(name[0], name[0])), text)


def with_types(text: str, bound: Mapping[str, str]) -> str:
    """A text with template parameters replaced by what they are bound to: types and values."""
    in_place = {
        name: value if re.fullmatch(r"[\w ]+", value) else f"({value})"
        for name, value in bound.items()
    }
    return with_values(text, in_place)


def macros(kernel: Kernel, params: Mapping[str, int]) -> dict[str, int]:
    """The constants that are passed as macros: those that are no template arguments.

    `-DBM=64` would break `template <int BM>`.
    """
    arguments, values = entry_of(kernel).names, expressions.constants(kernel.let, params)
    return {name: value for name, value in values.items() if name not in arguments}


def find(functions: Iterable[Signature], entry: Entry) -> Signature | None:
    same = [function for function in functions if function.name == entry.name]
    same = same or [function for function in functions if function.name.endswith(f"::{entry.name}")]
    templates = [function for function in same if bool(function.template) == bool(entry.arguments)]
    return next(iter(templates or same), None)


def bound(function: Signature, entry: Entry) -> dict[str, str]:
    """The values of the entry's template parameters."""
    if entry.arguments and not function.template:
        raise SourceError(f"{function.name} is not a template", function.line)
    given = dict(zip((p.name for p in function.template), entry.arguments, strict=False))
    if len(entry.arguments) > len(function.template):
        taken = f"{function.name} takes {len(function.template)}"
        raise SourceError(f"{len(entry.arguments)} template arguments; {taken}", None)
    for parameter in function.template:
        if parameter.name not in given:
            if parameter.default is None:
                how = f'specify `{parameter.name}`, as in entry = "{suggested(function)}"'
                raise SourceError(f"{function.name} is a template; {how}", function.line)
            given[parameter.name] = parameter.default
    return given


def suggested(function: Signature) -> str:
    """An entry with the names of the template parameters as arguments."""
    needed = [parameter.name for parameter in function.template if parameter.default is None]
    types = {parameter.name for parameter in function.template if parameter.kind == "typename"}
    named = ["float" if name in types else name for name in needed]
    return f"{function.name}<{', '.join(named)}>" if named else function.name


def called(function: Signature, entry: Entry, aliases: Mapping[str, str]) -> Signature:
    """The function with template parameters and aliases replaced in its parameters' types."""
    types = {**aliases, **bound(function, entry)}
    parameters = tuple(
        msgspec.structs.replace(parameter, type=resolved(parameter.type, types))
        for parameter in function.parameters
    )
    return msgspec.structs.replace(function, parameters=parameters)
