"""Generates OpenCL sources from a CUDA C++ kernel: as it is, or with timestamps for each block.

A prelude of macros defines CUDA's names; address spaces are inserted into the kernel's own lines,
which keep their numbers. The compiler takes the result as OpenCL C, or as C++ for OpenCL.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from matbench.kernelfile import expressions, includes, signature, syntax
from matbench.kernelfile.device_part import NeedsCudaError, device_part
from matbench.kernelfile.instrument import line_directive
from matbench.kernelfile.signature import SourceError
from matbench.kernelfile.unpacking import unpacked
from matbench.model import Kernel

#: Argument types that OpenCL forbids or defines differently, and their replacements.
_TYPES = {
    "size_t": "ulong", "long long": "long", "unsigned long long": "unsigned long", "bool": "uchar",
}  # fmt: skip
_PRELUDE = Path(__file__).with_name("device_code").joinpath("opencl.h").read_text(encoding="utf-8")


class Unit(NamedTuple):
    """A kernel as OpenCL C or C++.

    `dynamic` is the type and name of dynamic shared memory: a `__local` argument after the kernel's
    own, because OpenCL has no `extern __local`. `macros` are the constants passed as macros.
    """

    text: str
    entry: str
    dynamic: tuple[str, str] | None
    macros: dict[str, int]


def unit(kernel: Kernel, params: Mapping[str, int], clock: str | None = None) -> Unit:
    """The kernel for OpenCL; `SourceError` if only CUDA has what it uses.

    With the expression that reads a `clock`, the entry becomes `matbench_entry`, which reads it
    before and after the kernel. It has one more parameter, which points to five zeroed 64-bit
    numbers per block; the first two become its start and end.
    """
    entry = signature.entry_of(kernel)
    source = unpacked(includes.flattened(kernel))
    function = signature.find(signature.functions(source), entry)
    if function is None:
        raise SourceError(f"no entry `__global__ void {entry.name}(…)`", None)
    constants = expressions.constants(kernel.let, params)
    given = signature.bound(function, entry).items()
    bound = tuple((name, signature.with_values(text, constants)) for name, text in given)
    own_headers = tuple(header.name for header in kernel.includes)
    code = device_part(source, function.name, bound, own_headers)
    text, dynamic = _unit(code, Path(kernel.path).name, entry.last_name)
    macros = signature.macros(kernel, params)
    if clock is None:
        return Unit(text, entry.last_name, dynamic, macros)
    passed = [p.name for p in kernel.parameters]
    typed = [(p, _TYPES.get(p.type, p.type)) for p in kernel.parameters]
    declared = [
        f"__global {kind} *{p.name}" if p.pointer else f"{kind} {p.name}" for p, kind in typed
    ]
    declared.append("__global ulong *matbench_stamps")
    if dynamic is not None:
        kind, name = dynamic
        passed.append(name)
        declared.append(f"__local {kind} *{name}")
    text = f"""#define MATBENCH_CLOCK {clock}
{text}__kernel MATBENCH_VECTOR_HINT void matbench_entry({", ".join(declared)})
{{
    matbench_begin(matbench_stamps);
    {function.name}({", ".join(passed)});
    matbench_end(matbench_stamps);
}}
"""
    return Unit(text, "matbench_entry", dynamic, macros)


@lru_cache(maxsize=64)
def _unit(code: str, path: str, entry: str) -> tuple[str, tuple[str, str] | None]:
    """The unit of a source, and the dynamic shared memory that its `entry` takes."""
    edits: list[syntax.Edit] = []
    dynamic: tuple[str, str] | None = None
    functions = signature.entries(syntax.parse(syntax.skeleton(code)))
    for node in syntax.walk(syntax.parse(code)):
        if node.type == "declaration" and "__shared__" in signature.words(node):
            if "extern" in signature.words(node):
                kind, name = (syntax.fields(node, part) for part in ("type", "declarator"))
                dynamic = dynamic or (syntax.text_of(kind), syntax.text_of(syntax.declared(name)))
                edits.append((node.start_byte, node.end_byte, ""))
            else:
                edits += _hoisted(node, code, functions)
    types = signature.aliases(code)
    for function in functions:
        parameters = signature.parameter_nodes(function)
        for parameter in parameters:
            edits += _passed(parameter, types)
        if dynamic is not None and parameters and signature.qualified_name(function) == entry:
            end = parameters[-1].end_byte
            edits.append((end, end, f", __local {dynamic[0]} *{dynamic[1]}"))
    text = syntax.applied(code, edits)
    return f"{_PRELUDE}{line_directive(path)}\n{text}\n", dynamic


def _hoisted(node: syntax.Node, code: str, functions: list[syntax.Node]) -> list[syntax.Edit]:
    """Move shared memory that is declared in an inner scope to the kernel's outermost scope."""
    above = list(syntax.parents(node))
    function = next((outer for outer in above if outer.type == "function_definition"), None)
    if function is None or above[0] == syntax.fields(function, "body"):
        return []
    if all(function.start_byte != kernel.start_byte for kernel in functions):
        raise NeedsCudaError("`__shared__` in a device function", code, node)
    outermost = above[above.index(function) - 2]
    if outermost.type == "compound_statement" and len(above) < 3:
        return []
    text = " ".join(code[node.start_byte : node.end_byte].split())
    start = outermost.start_byte
    return [(start, start, f"{text} "), (node.start_byte, node.end_byte, "")]


def _passed(parameter: syntax.Node, types: Mapping[str, str]) -> list[syntax.Edit]:
    """Edits of a kernel's parameter: pointers get the global address space."""
    start, text = parameter.start_byte, syntax.text_of(parameter)
    if "*" in text or "[" in text:
        return [(start, start, "__global ")]
    kind = syntax.fields(parameter, "type")
    new = _TYPES.get(signature.resolved(syntax.text_of(kind), types)) if kind is not None else None
    return [(kind.start_byte, kind.end_byte, new)] if kind is not None and new else []
