"""Generates the sources that CUDA compiles: the kernel as it is, with timestamps, or staggered.

In instrumented builds the kernel is rewritten as a device function, which generated text calls.
Lines keep their numbers, so compiler messages point into the kernel file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from matbench.errors import BuildError
from matbench.kernelfile import device_part, expressions, includes, signature, syntax
from matbench.kernelfile.tables import FENCE
from matbench.kernelfile.unpacking import unpacked
from matbench.model import Kernel, Parameter

#: The name of the kernel as a device function.
_DEVICE_NAME = "matbench_kernel"

#: Names by which a kernel could detect which build it is in: all must be the same kernel.
TELLTALE = re.compile(
    r"\b(?:MATBENCH|matbench)_\w*|\bdefined\b\W*__syncthreads\b"
    r"|#[ \t]*(?:el)?if(?:n?def)?\b(?:\\\n|[^\n])*\b__syncthreads\b"
)
#: Attributes of a kernel that a device function must not have.
_DRESS = re.compile(
    r"\bstatic\b|\binline\b|\b__forceinline__\b|\b__global__\b"
    r"|\b__(?:launch_bounds|cluster_dims|maxnreg|block_size)__\s*(?=\()"
)
#: What joins two parts of a name.
_JOINS = ("##", "%:%:")

#: What is put before a kernel: what reads clocks, and what lets warps drift apart.
_CLOCK, _STAGGER = (
    Path(__file__).with_name("device_code").joinpath(name).read_text(encoding="utf-8")
    for name in ("clock.cuh", "stagger.cuh")
)
#: Finds the symbol of a C++ entry: the mangled name of this kernel ends with the entry's.
MARK = "matbench_mark"
_MARK = """
template <typename function, function *> __global__ void matbench_mark() {{ }}
template __global__ void matbench_mark<decltype({entry}), &{entry}>();
"""


def plain_unit(kernel: Kernel, params: Mapping[str, int] | None = None) -> str:
    """The translation unit of the unmodified kernel file; a template entry is instantiated."""
    unit = f"{line_directive(kernel.path)}\n{kernel.source}\n"
    sources = (kernel.source, *includes.texts(kernel.includes))
    if any(join in source for source in sources for join in _JOINS):
        # Macros could write a name of the instrumented builds: that is made an error.
        names = set(re.findall(r"\b(?:MATBENCH|matbench)_\w+", _CLOCK + _STAGGER))
        unit = f"#pragma GCC poison {' '.join(sorted({*names, _DEVICE_NAME}))}\n{unit}"
    if kernel.is_extern_c:
        return unit
    values = expressions.constants(kernel.let, params or {})
    return unit + _MARK.format(entry=signature.written(signature.entry_of(kernel), values))


def prepared(kernel: Kernel, *, has_libraries: bool) -> Kernel:
    """The kernel for nvcc: without host code, if that launches kernels, whose parameters may be
    unpacked here, or includes headers of other libraries that may not be there."""
    flat, own_headers = _flat(kernel)
    source = unpacked(flat)
    function = signature.find(signature.functions(source), signature.entry_of(kernel))
    is_host = "<<<" in flat or device_part.host_headers(flat, own_headers)
    if function is None or (source == flat and (has_libraries or not is_host)):
        return kernel
    source = device_part.device_part(source, function.name, None, own_headers)
    return msgspec.structs.replace(kernel, source=source)


def left_out(kernel: Kernel) -> dict[str, str]:
    """The headers that `prepared` leaves out, with their lines."""
    return device_part.host_headers(*_flat(kernel))


def _flat(kernel: Kernel) -> tuple[str, tuple[str, ...]]:
    own_headers = tuple(header.name for header in kernel.includes)
    if FENCE.search(kernel.source):  # whoever wrote a table into it meant its headers, too
        quoted = (text for text in includes.operands(kernel.source) if text.startswith('"'))
        names = filter(None, map(includes.name_in, quoted))
        own_headers += tuple(name for name in names if not device_part.is_of_library(name))
    return includes.flattened(kernel), own_headers


def clocked_unit(kernel: Kernel, params: Mapping[str, int] | None = None) -> str:
    """A build that reads the clock of each block before and after the whole kernel. The last
    parameter of its entry points to one zeroed `matbench_stamp` per block."""
    begin, end = (f"    matbench_{what}(matbench_stamps);" for what in ("begin", "end"))
    body = f"{begin}\n    KERNEL;\n{end}\n"
    return _wrapped_unit(kernel, params or {}, _CLOCK, body)


def staggered_unit(kernel: Kernel, params: Mapping[str, int] | None = None) -> str:
    """A build in which warps drift apart at the start and around every barrier.

    A correct kernel still computes the same result; one that lacks a barrier can no longer pass
    because its warps happen to stay in step.
    """
    body = "    matbench_stagger(4000);\n    KERNEL;\n"
    return _wrapped_unit(kernel, params or {}, _STAGGER, body)


def _wrapped_unit(kernel: Kernel, params: Mapping[str, int], prelude: str, body: str) -> str:
    """The kernel as a device function, and a new entry `matbench_entry` whose `body` calls it.

    So the code after the call runs even if the kernel returns early. Cluster dimensions and launch
    bounds move to the new entry. Tensor maps stay in the new entry's parameters; the kernel takes
    references to them.
    """
    entry = signature.entry_of(kernel)
    for source in (kernel.source, includes.flattened(kernel)):  # with the headers if it is there
        code = syntax.expanded(source)
        nodes = signature.entries(syntax.parse(syntax.skeleton(code)))
        wanted = signature.find(map(signature.function, nodes), entry)
        node = next((node for node in nodes if signature.function(node) == wanted), None)
        if node is not None:
            break
    else:
        raise BuildError(f"no entry `__global__ void {entry.name}(…)`")
    if signature.is_specialised(syntax.parse(syntax.skeleton(code)), entry.last_name):
        what = f"{entry.last_name} has template specialisations"
        raise BuildError(f"{what}, which instrumented builds do not support")
    attributes: dict[str, str] = {}
    code = syntax.applied(code, _as_device_function(node, code, attributes))
    values = signature.bound(signature.function(node), entry)
    params = expressions.constants(kernel.let, params) if values else params
    shape = ""
    # Without launch bounds the compiler ignores `setmaxnreg`, and may use too many registers.
    for attribute in ("cluster_dims", "launch_bounds"):
        if text := attributes.get(f"__{attribute}__"):
            text = signature.with_values(signature.with_types(text, values), params)
            shape += f"__attribute__(({attribute}({text}))) "
    declared = "".join(f"{declaration(p)}, " for p in kernel.parameters)
    space = entry.name.removesuffix(entry.last_name)
    called = signature.written(entry._replace(name=space + _DEVICE_NAME), params)
    call = f"{called}({', '.join(p.name for p in kernel.parameters)});"
    return f"""{prelude}
{line_directive(kernel.path)}
{code}
extern "C" __global__ {shape}void matbench_entry({declared}matbench_stamp *matbench_stamps)
{{
{body.replace("KERNEL;", call)}}}
"""


def _as_device_function(
    node: syntax.Node, code: str, lost: dict[str, str]
) -> Iterator[syntax.Edit]:
    """The edits that turn the kernel defined at `node` into a device function. The attributes that
    it loses, such as `__launch_bounds__`, are added to `lost` with their arguments.

    The kernel stays declared for other code that launches it or takes its address.
    """
    name = signature.name_of(node)
    assert name is not None
    yield name.start_byte, name.end_byte, _DEVICE_NAME
    yield from _declared(node, code, syntax.text_of(name))
    for parameter in signature.parameter_nodes(node):  # tensor maps are passed on by reference
        declarator = syntax.fields(parameter, "declarator")
        for child in parameter.children:
            if syntax.text_of(child) == "__grid_constant__" and declarator is not None:
                yield child.start_byte, child.end_byte, ""
                yield declarator.start_byte, declarator.start_byte, "&"
    head = code[node.start_byte : name.start_byte]
    for match in _DRESS.finditer(head):
        stop = match.end()
        if head[stop : stop + 1] == "(":
            stop = syntax.closing(head, stop)
            lost[match[0].strip()] = head[match.end() + 1 : stop - 1].strip()
        word = "static __device__ __forceinline__" if match[0] == "__global__" else ""
        yield node.start_byte + match.start(), node.start_byte + stop, word


def _declared(node: syntax.Node, code: str, name: str) -> Iterator[syntax.Edit]:
    """Declare the kernel before its definition, which loses its linkage, and remove its explicit
    instantiations."""
    outer = root = node
    for above in syntax.parents(node):
        body = syntax.fields(above, "body") if above.type == "linkage_specification" else None
        is_of_one = body is not None and body.type != "declaration_list"  # `extern "C"` before it
        if outer == root and (above.type == "template_declaration" or is_of_one):
            outer = above
        root = above
    is_declared = False
    for other in syntax.walk(root):
        text = syntax.text_of(other) if other.type == "template_instantiation" else ""
        if re.search(rf"\b{name}\b", text):
            yield other.start_byte, other.end_byte, ""
        within = other.parent if other.type == "function_declarator" else None
        if within is not None and within.type == "declaration":
            named = syntax.declared(other)
            is_declared |= named is not None and syntax.text_of(named) == name
    body = syntax.fields(node, "body")
    end = body.start_byte if body is not None else node.end_byte
    declaration = re.sub(r"\bstatic\b", "", " ".join(code[outer.start_byte : end].split()))
    if "#" not in declaration and not is_declared:
        yield outer.start_byte, outer.start_byte, f"{declaration}; "
    if outer.type == "linkage_specification":
        yield outer.start_byte, outer.named_children[-1].start_byte, ""


def line_directive(path: str) -> str:
    """A directive that line 1 of the kernel file follows; any path is quoted safely."""
    plain = "".join(c if c.isprintable() else "?" for c in path.replace("\n", " "))
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "{escaped}"'


def declaration(parameter: Parameter) -> str:
    """A parameter of the entry as a new entry declares it."""
    if parameter.type == signature.TENSOR_MAP and not parameter.pointer:
        return f"const {signature.TENSOR_MAP} __attribute__((grid_constant)) {parameter.name}"
    return f"{parameter.type} {'*' if parameter.pointer else ''}{parameter.name}"
