"""Generates the sources that CUDA compiles: the kernel as it is, with timestamps, or staggered.

Instrumented builds are made by macros before the kernel file and generated text after it. If the
file also launches its kernel, or declares it as C++, the kernel's declaration is rewritten instead.
Lines keep their numbers, so compiler messages point into the kernel file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from matbench.errors import BuildError
from matbench.kernelfile import entry as entries
from matbench.kernelfile import includes, rewriting, signature, syntax
from matbench.kernelfile.entry import Entry
from matbench.kernelfile.signature import TENSOR_MAP
from matbench.kernelfile.syntax import without_comments
from matbench.model import Kernel, Parameter

if TYPE_CHECKING:
    from tree_sitter import Node

#: The name of the kernel as a device function.
_DEVICE_NAME = "matbench_kernel"

#: Names by which a kernel could detect which build it is in.
_TELLTALE = re.compile(
    r"\b(?:MATBENCH|matbench)_\w*|\b(?:ifdef|ifndef)\s+__syncthreads\b|\bdefined\b\W*__syncthreads\b"
)
_CLUSTER = re.compile(r"\b__cluster_dims__\s*\(([^()]*)\)")
#: The launch bounds of an entry (parentheses up to three deep), and what stands before its name.
_BOUNDS = (
    r"\b__launch_bounds__\s*\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
    r"[\w\s]*\b{entry}\s*\("
)

# Each block's slot holds its start and end on two clocks, and its multiprocessor. The stamps must
# not change what they time, so no value stays in a register during the kernel: the start is stored
# at once, and the end reads lane and block again from special registers. (Keeping these few values
# in registers meant fewer loads in flight, and up to twice the time.)
_CUDA_CLOCK = """
struct matbench_stamp { unsigned long long start, end, start_ns, end_ns, unit; };
#define MATBENCH_SPECIAL(name, type, constraint, move, register)                          \\
    static __device__ __forceinline__ type name(void)                                     \\
    { type value; asm volatile(move " %0, %%" register ";" : constraint(value)); return value; }
MATBENCH_SPECIAL(matbench_ns, unsigned long long, "=l", "mov.u64", "globaltimer")
MATBENCH_SPECIAL(matbench_unit, unsigned, "=r", "mov.u32", "smid")
MATBENCH_SPECIAL(matbench_lane, unsigned, "=r", "mov.u32", "laneid")
MATBENCH_SPECIAL(matbench_block_x, unsigned, "=r", "mov.u32", "ctaid.x")
MATBENCH_SPECIAL(matbench_block_y, unsigned, "=r", "mov.u32", "ctaid.y")
MATBENCH_SPECIAL(matbench_block_z, unsigned, "=r", "mov.u32", "ctaid.z")
static __device__ __forceinline__ matbench_stamp *matbench_slot(matbench_stamp *stamps)
{
    return stamps + matbench_block_x() + (size_t)gridDim.x
        * (matbench_block_y() + (size_t)gridDim.y * matbench_block_z());
}
"""

# Each warp sleeps for a different time (up to about 1 µs) wherever warps may drift apart.
_CUDA_STAGGER = """
struct matbench_stamp;
inline __device__ void matbench_stagger(unsigned most_ns)
{
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned hash = (thread / 32 + 1) * 2654435761u ^ (unsigned)clock64() * 2246822519u;
    hash ^= hash >> 15;
    const unsigned wait = __shfl_sync(__activemask(), hash, __ffs(__activemask()) - 1) % most_ns;
#if __CUDA_ARCH__ >= 700
    __nanosleep(wait);
#else
    const long long end = clock64() + wait;
    while (clock64() < end) { }
#endif
}
inline __device__ void matbench_barrier(void) { __syncthreads(); }
#define __syncthreads() (matbench_stagger(500), matbench_barrier(), matbench_stagger(500))
"""


#: Finds the symbol of a C++ entry: the mangled name of this kernel ends with the entry's.
MARK = "matbench_mark"
_MARK = """
template <typename function, function *> __global__ void matbench_mark() {{ }}
template __global__ void matbench_mark<decltype({entry}), &{entry}>();
"""


def plain_unit(kernel: Kernel, params: Mapping[str, int] | None = None) -> str:
    """The translation unit of the unmodified kernel file; a template entry is instantiated."""
    unit = f"{line_directive(kernel.path)}\n{kernel.source}\n"
    if kernel.is_extern_c:
        return unit
    return unit + _MARK.format(entry=entries.written(entries.of(kernel), params or {}))


def clocked_unit(kernel: Kernel, params: Mapping[str, int] | None = None) -> str:
    """A build that reads the clock of each block before and after the whole kernel.

    The last parameter of its entry points to one zeroed `matbench_stamp` per block.
    """
    body = """    if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
        matbench_stamp *stamp = matbench_slot(matbench_stamps);
        stamp->unit = matbench_unit();
        stamp->start_ns = matbench_ns();
        stamp->start = clock64();
    }
    KERNEL;
    if (matbench_lane() == 0) {
        matbench_stamp *stamp = matbench_slot(matbench_stamps);
        atomicMax(&stamp->end, (unsigned long long)clock64());
        atomicMax(&stamp->end_ns, matbench_ns());
    }
"""
    return _wrapped_unit(kernel, params or {}, _CUDA_CLOCK, body)


def staggered_unit(kernel: Kernel, params: Mapping[str, int] | None = None) -> str:
    """A build in which warps drift apart at the start and around every barrier.

    A correct kernel still computes the same result; one that lacks a barrier can no longer pass
    because its warps happen to stay in step.
    """
    body = "    matbench_stagger(4000);\n    KERNEL;\n"
    return _wrapped_unit(kernel, params or {}, _CUDA_STAGGER, body)


def telltale(source: str) -> str | None:
    """A name by which a source could detect which build it is in; None if there is none.

    Instrumented builds must be the same kernel as the plain one.
    """
    found = _TELLTALE.search(without_comments(source))
    return " ".join(found.group().split()) if found else None


def _wrapped_unit(kernel: Kernel, params: Mapping[str, int], prelude: str, body: str) -> str:
    """The kernel as a device function, and a new entry `matbench_entry` whose `body` calls it.

    So the code after the call runs even if the kernel returns early. Cluster dimensions and launch
    bounds move to the new entry. Tensor maps stay in the new entry's parameters; the kernel takes
    references to them.
    """
    device = _rewritten(kernel) or _redefined(kernel)
    declared = "".join(f"{declaration(p)}, " for p in kernel.parameters)
    values = {name: text for name, text in device.bound.items() if name not in params}
    cluster = re.sub(r"\w+", lambda word: values.get(word[0], word[0]), device.cluster)
    cluster = entries.with_values(cluster, params) if device.bound else cluster
    shape = f"__attribute__((cluster_dims({cluster}))) " if cluster else ""
    # Without them the compiler ignores `setmaxnreg`, and may use more registers than there are.
    if device.launch_bounds:
        shape += f"__attribute__((launch_bounds({device.launch_bounds}))) "
    entry = entries.of(kernel)._replace(name=device.name)
    call = f"{entries.written(entry, params)}({', '.join(p.name for p in kernel.parameters)});"
    return f"""{prelude}
{device.unit}
extern "C" __global__ {shape}void matbench_entry({declared}matbench_stamp *matbench_stamps)
{{
{body.replace("KERNEL;", call)}}}
"""


class _Device(NamedTuple):
    """A unit with the kernel as a device function of this name, and what its declaration held."""

    unit: str
    name: str
    cluster: str
    bound: dict[str, str]
    launch_bounds: str = ""


def _redefined(kernel: Kernel) -> _Device:
    """`__global__` redefined to mean a device function throughout the file."""
    unit = f"""#undef __global__
#define __global__ static __device__ __forceinline__
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __cluster_dims__
#define __cluster_dims__(...)
#undef __grid_constant__
#define __grid_constant__ &
{line_directive(kernel.path)}
{kernel.source}
#undef __global__
#define __global__ __attribute__((global))"""
    code, name = without_comments(kernel.source), entries.of(kernel).name
    cluster, bounds = _CLUSTER.search(code), re.search(_BOUNDS.format(entry=name), code)
    return _Device(
        unit, name, cluster[1] if cluster else "", {}, bounds[1].strip() if bounds else ""
    )


def _rewritten(kernel: Kernel) -> _Device | None:
    """The kernel's definition rewritten as a device function; the kernel itself stays declared.

    None if that is not needed, or if no definition is found.
    """
    entry = entries.of(kernel)
    code = syntax.expanded(kernel.source)
    uses = len(re.findall(rf"\b{entry.last_name}\b", code))
    if kernel.is_extern_c and "<<<" not in code and uses == 1:
        return None
    node = _definition(code, entry)
    if node is None and kernel.includes:
        code = syntax.expanded(includes.flattened(kernel))
        node = _definition(code, entry)
    if node is None:
        return None
    if signature.is_specialised(syntax.parse(syntax.skeleton(code)), entry.last_name):
        raise BuildError(
            f"{entry.last_name} has template specialisations, which instrumented builds do not "
            "support"
        )
    function = signature.function(node)
    edits, cluster = rewriting.as_device_function(node, code, _DEVICE_NAME)
    space = entry.name[: -len(entry.last_name)]
    unit = f"{line_directive(kernel.path)}\n{rewriting.applied(code, edits)}"
    return _Device(unit, space + _DEVICE_NAME, cluster, entries.bound(function, entry))


def _definition(code: str, entry: Entry) -> Node | None:
    """The definition of an entry in a text."""
    nodes = signature.entries(syntax.parse(syntax.skeleton(code)))
    wanted = entries.find(map(signature.function, nodes), entry)
    return next((node for node in nodes if signature.function(node) == wanted), None)


def line_directive(path: str) -> str:
    """A directive that line 1 of the kernel file follows; any path is quoted safely."""
    plain = "".join(c if c.isprintable() else "?" for c in path.replace("\n", " "))
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "{escaped}"'


def declaration(parameter: Parameter) -> str:
    """A parameter of the entry as a new entry declares it."""
    if parameter.type == TENSOR_MAP and not parameter.pointer:
        return f"const {TENSOR_MAP} __attribute__((grid_constant)) {parameter.name}"
    return f"{parameter.type} {'*' if parameter.pointer else ''}{parameter.name}"
