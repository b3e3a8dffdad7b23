"""Generates OpenCL sources from a CUDA C++ kernel: as it is, or with timestamps for each block.

A prelude of macros defines CUDA's names; address spaces are inserted into the kernel's own lines,
which keep their numbers. The compiler takes the result as OpenCL C, or as C++ for OpenCL.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from matbench.errors import MatbenchError
from matbench.kernelfile import entry as entries
from matbench.kernelfile import expressions, includes, signature, syntax
from matbench.kernelfile.device_part import NeedsCudaError, device_part
from matbench.kernelfile.instrument import line_directive
from matbench.kernelfile.signature import SourceError
from matbench.kernelfile.unpacking import unpacked
from matbench.model import Kernel

if TYPE_CHECKING:
    from tree_sitter import Node

#: Argument types that OpenCL forbids or defines differently, and their replacements.
_TYPES = {
    "size_t": "ulong", "long long": "long", "unsigned long long": "unsigned long", "bool": "uchar",
}  # fmt: skip
# Inline assembly could change the worker's process. The compiler refuses it in whatever macros
# write it, and no directive can undo that.
_PRELUDE = """
#pragma GCC poison asm __asm __asm__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define kernel matbench_kernel
#define global matbench_global
#define local matbench_local
#define constant matbench_constant
#define half matbench_half
#ifdef __OPENCL_CPP_VERSION__
#define MATBENCH_OVERLOADABLE
#define __restrict__ __restrict
#else
#define MATBENCH_OVERLOADABLE __attribute__((overloadable))
#define __restrict__ restrict
#define private matbench_private
#endif
#ifndef MATBENCH_VECTOR_HINT
#define MATBENCH_VECTOR_HINT
#endif
#define __global__ __kernel MATBENCH_VECTOR_HINT
#define __device__
#define __host__
#define __noinline__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define alignas(bytes) __attribute__((aligned(bytes)))
#define assert(condition)
#define MATBENCH_INTEGERS(bits, kind, fast) \\
typedef kind int##bits##_t, int_least##bits##_t; typedef fast int_fast##bits##_t; \\
typedef u##kind uint##bits##_t, uint_least##bits##_t; typedef u##fast uint_fast##bits##_t;
MATBENCH_INTEGERS(8, char, char)
MATBENCH_INTEGERS(16, short, long)
MATBENCH_INTEGERS(32, int, long)
MATBENCH_INTEGERS(64, long, long)
typedef long intmax_t, ssize_t;
typedef ulong uintmax_t;
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT32_MAX UINT_MAX
#define INT64_MAX LONG_MAX
#define INT64_MIN LONG_MIN
#define UINT64_MAX ULONG_MAX
#define SIZE_MAX ULONG_MAX
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ __local
#define __constant__ __constant
#define __syncthreads() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define __threadfence() mem_fence(CLK_GLOBAL_MEM_FENCE)
#define MATBENCH_UINT3(of) ((uint3)((uint)of(0), (uint)of(1), (uint)of(2)))
#define blockDim MATBENCH_UINT3(get_local_size)
#ifdef MATBENCH_REORDERED
static uint matbench_thread(uint axis)
{
    const ulong place = get_local_id(axis), count = get_local_size(axis);
    const ulong order = get_global_offset(axis) >> 62;
    if (order == 0) return place;
    return order == 1 ? count - 1 - place : (place + count / 2) * 1000003 % count;
}
static uint matbench_block(uint axis) { return get_global_offset(axis) & 0x7fffffff; }
static uint matbench_blocks(uint axis) { return get_global_offset(axis) >> 31 & 0x7fffffff; }
#define threadIdx MATBENCH_UINT3(matbench_thread)
#define blockIdx MATBENCH_UINT3(matbench_block)
#define gridDim MATBENCH_UINT3(matbench_blocks)
#else
#define threadIdx MATBENCH_UINT3(get_local_id)
#define blockIdx MATBENCH_UINT3(get_group_id)
#define gridDim MATBENCH_UINT3(get_num_groups)
#endif
#define fmaf(a, b, c) fma((float)(a), (float)(b), (float)(c))
#define __fmaf_rn(a, b, c) fma((float)(a), (float)(b), (float)(c))
#define fabsf(a) fabs((float)(a))
#define fmaxf(a, b) fmax((float)(a), (float)(b))
#define fminf(a, b) fmin((float)(a), (float)(b))
#define sqrtf(a) sqrt((float)(a))
#define ldexpf(a, exponent) ldexp((float)(a), (int)(exponent))
#define __ldg(pointer) (*(pointer))
#define __float_as_uint(a) as_uint((float)(a))
#define __uint_as_float(a) as_float((uint)(a))
#define __float_as_int(a) as_int((float)(a))
#define __int_as_float(a) as_float((int)(a))
#define __longlong_as_double(a) as_double((long)(a))
#define __double_as_longlong(a) as_long((double)(a))
#define make_float2(a, b) ((float2)(a, b))
#define make_float4(a, b, c, d) ((float4)(a, b, c, d))
#define atomicAdd(pointer, value) matbench_add(pointer, value)
#define MATBENCH_ADDS(space) \\
static int MATBENCH_OVERLOADABLE matbench_add(volatile space int *place, int value) \\
{ return atomic_add(place, value); } \\
static uint MATBENCH_OVERLOADABLE matbench_add(volatile space uint *place, uint value) \\
{ return atomic_add(place, value); } \\
static float MATBENCH_OVERLOADABLE matbench_add(volatile space float *place, float value) \\
{ \\
    uint found = as_uint(*place), before; \\
    do { \\
        before = found; \\
        const uint sum = as_uint(as_float(before) + value); \\
        found = atomic_cmpxchg((volatile space uint *)place, before, sum); \\
    } while (found != before); \\
    return as_float(found); \\
}
MATBENCH_ADDS(__global)
MATBENCH_ADDS(__local)
"""


class Unit(NamedTuple):
    """A kernel as OpenCL C or C++.

    `dynamic` is the type and name of dynamic shared memory: a `__local` argument after the kernel's
    own, because OpenCL has no `extern __local`. `macros` are the constants passed as macros.
    """

    text: str
    entry: str
    dynamic: tuple[str, str] | None
    macros: dict[str, int]


def obstacle(kernel: Kernel) -> str | None:
    """What in a kernel only CUDA has, in one line; other errors show in the build."""
    try:
        unit(kernel, {})
    except NeedsCudaError as error:
        return str(error)
    except MatbenchError:
        pass
    return None


def unit(kernel: Kernel, params: Mapping[str, int], clock: str | None = None) -> Unit:
    """The kernel for OpenCL; `SourceError` if only CUDA has what it uses.

    With the expression that reads a `clock`, the entry becomes `matbench_entry`, which reads it
    before and after the kernel. It has one more parameter, which points to five zeroed 64-bit
    numbers per block; the first two become its start and end.
    """
    entry = entries.entry_of(kernel)
    source = unpacked(includes.flattened(kernel) if kernel.includes else kernel.source)
    function = entries.find(signature.functions(source), entry)
    if function is None:
        raise SourceError(f"no entry `__global__ void {entry.name}(…)`", None)
    constants = expressions.constants(kernel.let, params)
    bound = tuple(
        (name, entries.with_values(text, constants))
        for name, text in entries.bound(function, entry).items()
    )
    own_headers = tuple(header.name for header in kernel.includes)
    code = device_part(source, function.name, bound, own_headers)
    text, dynamic = _unit(code, kernel.path, entry.last_name)
    macros = entries.macros(kernel, params)
    if clock is None:
        return Unit(text, entry.last_name, dynamic, macros)
    passed = [p.name for p in kernel.parameters]
    declared = [
        f"__global {kind} *{p.name}" if p.pointer else f"{kind} {p.name}"
        for p in kernel.parameters
        for kind in (_TYPES.get(p.type, p.type),)
    ]
    declared.append("__global ulong *matbench_stamps")
    if dynamic is not None:
        kind, name = dynamic
        passed.append(name)
        declared.append(f"__local {kind} *{name}")
    # A CPU runs a block's work-items in order, so the last one to start is the last to end.
    text += f"""__kernel MATBENCH_VECTOR_HINT void matbench_entry({", ".join(declared)})
{{
    __global ulong *stamp = matbench_stamps + 5 * (get_group_id(0)
        + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2)));
    const size_t thread = get_local_id(0)
        + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
    if (thread == 0) stamp[0] = {clock};
    {function.name}({", ".join(passed)});
    if (thread == get_local_size(0) * get_local_size(1) * get_local_size(2) - 1)
        stamp[1] = {clock};
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
            declared = syntax.fields(node, "declarator")
            name = syntax.declared(declared) if declared is not None else None
            kind = syntax.fields(node, "type")
            if "extern" in signature.words(node):
                if dynamic is None and name is not None and kind is not None:
                    dynamic = syntax.text_of(kind), syntax.text_of(name)
                edits.append((node.start_byte, node.end_byte, ""))
            else:
                edits += _hoisted(node, code, functions)
    types = signature.aliases(code)
    for function in functions:
        for parameter in signature.parameter_nodes(function):
            edits += _passed(parameter, code, types)
        if dynamic is not None and signature.qualified_name(function) == entry:
            end = signature.end_of_parameters(function)
            comma = ", " if signature.parameter_nodes(function) else ""
            edits.append((end, end, f"{comma}__local {dynamic[0]} *{dynamic[1]}"))
    text = syntax.applied(code, edits)
    return f"{_PRELUDE}{line_directive(path)}\n{text}\n", dynamic


def _hoisted(node: Node, code: str, functions: list[Node]) -> list[syntax.Edit]:
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
    return [
        (outermost.start_byte, outermost.start_byte, f"{text} "),
        (node.start_byte, node.end_byte, ""),
    ]


def _passed(parameter: Node, code: str, types: Mapping[str, str]) -> list[syntax.Edit]:
    """Edits of a kernel's parameter: pointers get the global address space."""
    start, end = parameter.start_byte, parameter.end_byte
    text = code[start:end]
    if "*" in text or "[" in text:
        return [(start, start, "__global ")]
    kind = syntax.fields(parameter, "type")
    new = _TYPES.get(signature.resolved(syntax.text_of(kind), types)) if kind is not None else None
    return [(kind.start_byte, kind.end_byte, new)] if kind is not None and new else []
