"""The sources that OpenCL compiles: a CUDA C kernel as OpenCL C, plain or clocked block by block.

A prelude of macros gives CUDA's names their meaning; address spaces are written into the kernel's
own lines, which keep their numbers.
"""

from __future__ import annotations

import re
from functools import lru_cache

from matbench.kernelfile.instrument import declaration, line_directive
from matbench.kernelfile.signature import parameter_list, without_comments
from matbench.model import Kernel

_GLOBAL_FUNCTION = re.compile(
    r"\b__global__\b[^;{}()]*?(?:__launch_bounds__\s*\([^)]*\)[^;{}()]*?)?\b(\w+)\s*\("
)
_EXTERN_SHARED = re.compile(
    r"\bextern\s+__shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s*)?"
    r"(?P<type>[\w\s]+?)\s*\b(?P<name>\w+)\s*\[\s*\]\s*;"
)
_PRELUDE = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define kernel matbench_kernel
#define global matbench_global
#define local matbench_local
#define constant matbench_constant
#define private matbench_private
#define half matbench_half
#ifndef MATBENCH_VECTOR_HINT
#define MATBENCH_VECTOR_HINT
#endif
#define __global__ __kernel MATBENCH_VECTOR_HINT
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ __local
#define __constant__ __constant
#define __restrict__ restrict
#define __syncthreads() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define __threadfence() mem_fence(CLK_GLOBAL_MEM_FENCE)
#define threadIdx ((uint3)(get_local_id(0), get_local_id(1), get_local_id(2)))
#define blockIdx ((uint3)(get_group_id(0), get_group_id(1), get_group_id(2)))
#define blockDim ((uint3)(get_local_size(0), get_local_size(1), get_local_size(2)))
#define gridDim ((uint3)(get_num_groups(0), get_num_groups(1), get_num_groups(2)))
#define fmaf(a, b, c) fma((float)(a), (float)(b), (float)(c))
#define __fmaf_rn(a, b, c) fma((float)(a), (float)(b), (float)(c))
#define fabsf(a) fabs((float)(a))
#define fmaxf(a, b) fmax((float)(a), (float)(b))
#define fminf(a, b) fmin((float)(a), (float)(b))
#define sqrtf(a) sqrt((float)(a))
#define __ldg(pointer) (*(pointer))
#define __float_as_uint(a) as_uint((float)(a))
#define __uint_as_float(a) as_float((uint)(a))
#define __float_as_int(a) as_int((float)(a))
#define __int_as_float(a) as_float((int)(a))
#define __longlong_as_double(a) as_double((long)(a))
#define __double_as_longlong(a) as_long((double)(a))
#define make_float2(a, b) ((float2)(a, b))
#define make_float4(a, b, c, d) ((float4)(a, b, c, d))
#define atomicAdd(pointer, value) atomic_add((volatile __global int *)(pointer), value)
"""


def plain_unit(kernel: Kernel) -> tuple[str, bool]:
    """The kernel as OpenCL C, and whether a `__local` argument follows its own.

    That argument is the shared memory that is sized at launch: OpenCL has no `extern __local`.
    """
    unit, dynamic = _translated(kernel)
    return unit, dynamic is not None


def clocked_unit(kernel: Kernel, clock: str) -> tuple[str, bool]:
    """`plain_unit` with an entry `matbench_entry` that reads the clock before and after the kernel.

    `clock` is the expression that reads it. The entry's parameter after the kernel's own points to
    five zeroed 64-bit numbers per block; the first two become its start and end.
    """
    unit, dynamic = _translated(kernel)
    passed = [p.name for p in kernel.parameters]
    declared = [_parameter(declaration(p)) for p in kernel.parameters]
    declared.append("__global ulong *matbench_stamps")
    if dynamic is not None:
        kind, name = dynamic
        passed.append(name)
        declared.append(f"__local {kind} *{name}")
    # A CPU runs a block's work-items in order: the last one to start is the last to end.
    unit += f"""__kernel MATBENCH_VECTOR_HINT void matbench_entry({", ".join(declared)})
{{
    __global ulong *stamp = matbench_stamps + 5 * (get_group_id(0)
        + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2)));
    const size_t thread = get_local_id(0)
        + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
    if (thread == 0) stamp[0] = {clock};
    {kernel.entry}({", ".join(passed)});
    if (thread == get_local_size(0) * get_local_size(1) * get_local_size(2) - 1)
        stamp[1] = {clock};
}}
"""
    return unit, dynamic is not None


def _translated(kernel: Kernel) -> tuple[str, tuple[str, str] | None]:
    """The kernel as OpenCL C, and the type and name of its `extern` shared memory."""
    code = without_comments(kernel.source)
    parameter_list(code, kernel.entry)  # an entry that is no `__global__` function is an error
    shared = _EXTERN_SHARED.search(code)
    if shared is None:
        return _unit(code, kernel.path), None
    kind, name = shared["type"], shared["name"]
    return _unit(code, kernel.path, kernel.entry, f" __local {kind} *{name}"), (kind, name)


@lru_cache(maxsize=64)
def _unit(code: str, path: str, entry: str = "", shared: str = "") -> str:
    """The unit of a source; its `entry` has one more parameter, `shared`."""
    # From the last to the first, so that earlier positions stay true.
    for name in reversed(_GLOBAL_FUNCTION.findall(code)):
        start, end = parameter_list(code, name)
        pieces = [_parameter(piece) for piece in code[start:end].split(",")]
        if name == entry:
            pieces.append(shared)
        code = code[:start] + ",".join(pieces) + code[end:]
    code = _EXTERN_SHARED.sub(lambda match: "\n" * match.group().count("\n"), code)
    code = re.sub(r'\bextern\s+"C"', "", code)
    return f"{_PRELUDE}{line_directive(path)}\n{code}\n"


def _parameter(text: str) -> str:
    if "*" not in text and "[" not in text:
        # OpenCL takes no size_t from outside, and its long has 64 bits.
        return re.sub(r"\bsize_t\b", "ulong", re.sub(r"\blong\s+long\b", "long", text))
    lead = len(text) - len(text.lstrip())
    return f"{text[:lead]}__global {text[lead:]}"
