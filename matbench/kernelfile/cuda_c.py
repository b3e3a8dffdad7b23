"""Reads just enough of CUDA C to launch a kernel, to clock it and to run it through OpenCL.

The source itself is never edited by hand: the signature of the entry is read here, and both the
instrumented build and the OpenCL build are made from it by macros and generated text that keep
every line where it was, so that a compiler's message names the kernel file's own line.
"""

from __future__ import annotations

import re

from matbench.errors import MatbenchError
from matbench.model import Parameter

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
_QUALIFIERS = {
    "const", "volatile", "restrict", "__restrict__", "__restrict", "struct", "__grid_constant__"
}  # fmt: skip
_GLOBAL_FUNCTION = re.compile(
    r"\b__global__\b[^;{}()]*?(?:__launch_bounds__\s*\([^)]*\)[^;{}()]*?)?\b(\w+)\s*\("
)
_CLUSTER = re.compile(r"\b__cluster_dims__\s*\(([^()]*)\)")
_EXTERN_SHARED = re.compile(
    r"\bextern\s+__shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s*)?"
    r"(?P<type>[\w\s]+?)\s*\b(?P<name>\w+)\s*\[\s*\]\s*;"
)


#: What an entry can take by value, in C's words and in NumPy's.
SCALARS = {
    "int": "int32", "unsigned": "uint32", "unsigned int": "uint32", "float": "float32",
    "double": "float64", "size_t": "uint64", "long": "int64", "unsigned long": "uint64",
    "long long": "int64", "unsigned long long": "uint64", "short": "int16", "char": "int8",
}  # fmt: skip


#: What describes a matrix to the copy engine (TMA), passed by value as `__grid_constant__`.
TENSOR_MAP = "CUtensorMap"
_TENSOR_MAP_ARGUMENT = re.compile(r"\s*tensor_map\s*\(\s*(\w+)\s*,([^,]+),([^,]+)\)\s*")


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


class SourceError(MatbenchError):
    """Something the source lacks; `line` counts from 1, None: it is nowhere."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.line = line


def without_comments(source: str) -> str:
    """The source with comments blanked and every character where it was."""

    def blank(match: re.Match[str]) -> str:
        text = match.group()
        if text.startswith('"'):
            return text
        return "\n".join(" " * len(line) for line in text.split("\n"))

    return _COMMENT.sub(blank, source)


def _entry_span(code: str, entry: str) -> tuple[int, int]:
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


def parameters(source: str, entry: str) -> tuple[Parameter, ...]:
    """The parameters of the entry, in order."""
    code = without_comments(source)
    start, end = _entry_span(code, entry)
    text = code[start:end].strip()
    if text in ("", "void"):
        return ()
    return tuple(_parameter(piece, _line(code, start)) for piece in text.split(","))


def line_of(source: str, entry: str, index: int) -> int:
    """The line on which a parameter of the entry is named."""
    code = without_comments(source)
    start, end = _entry_span(code, entry)
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


def _line_directive(path: str) -> str:
    """Tells the compiler that the kernel file begins here, whatever its path is made of."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'#line 1 "{escaped}"'


def cuda_unit(source: str, path: str) -> str:
    """The translation unit that CUDA compiles: the kernel file as it is."""
    return f"{_line_directive(path)}\n{source}\n"


# Each block's slot holds its start and end by two clocks, and its multiprocessor. The stamps must
# not change what they time, so no register carries them through the kernel: the start is stored
# at once, and the end reads lane and block anew from special registers. (Kept over the kernel,
# those few values cost it registers: fewer loads in flight, up to twice the time.)
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


def _wrapped_unit(
    prelude: str, source: str, path: str, entry: str, args: tuple[Parameter, ...], body: str
) -> str:
    """The kernel as a device function, and a new entry `matbench_entry` whose `body` calls it.

    So an early `return` of the kernel still meets what comes after it. Clusters are the entry's,
    and tensor maps stay where the launch put them: the kernel is given references.
    """
    declared = "".join(_declaration(p) + ", " for p in args)
    cluster = _CLUSTER.search(without_comments(source))
    shape = f"__attribute__((cluster_dims({cluster[1]}))) " if cluster else ""
    call = f"{entry}({', '.join(p.name for p in args)});"
    return f"""{prelude}
#undef __global__
#define __global__ static __device__ __forceinline__
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __cluster_dims__
#define __cluster_dims__(...)
#undef __grid_constant__
#define __grid_constant__ &
{_line_directive(path)}
{source}
#undef __global__
#define __global__ __attribute__((global))
extern "C" __global__ {shape}void matbench_entry({declared}matbench_stamp *matbench_stamps)
{{
{body.replace("KERNEL;", call)}}}
"""


def cuda_clocked_unit(source: str, path: str, entry: str, args: tuple[Parameter, ...]) -> str:
    """A second build that clocks each block around the whole kernel.

    The last parameter of its entry points to one zeroed `matbench_stamp` a block.
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
    return _wrapped_unit(_CUDA_CLOCK, source, path, entry, args, body)


# Each warp sleeps for a time of its own (up to about 1 µs) where it could run ahead of others.
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


def cuda_staggered_unit(source: str, path: str, entry: str, args: tuple[Parameter, ...]) -> str:
    """A build in which warps drift apart before and after every barrier, and at the start.

    A right kernel computes the same; one that lacks a barrier no longer gets by on the luck that
    its warps keep step.
    """
    body = "    matbench_stagger(4000);\n    KERNEL;\n"
    return _wrapped_unit(_CUDA_STAGGER, source, path, entry, args, body)


def _declaration(parameter: Parameter) -> str:
    if parameter.type == TENSOR_MAP and not parameter.pointer:
        return f"const {TENSOR_MAP} __attribute__((grid_constant)) {parameter.name}"
    return f"{parameter.type} {'*' if parameter.pointer else ''}{parameter.name}"


# OpenCL C is CUDA C under other names; this prelude gives them.
_OPENCL_PRELUDE = """
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
#define make_float2(a, b) ((float2)(a, b))
#define make_float4(a, b, c, d) ((float4)(a, b, c, d))
#define atomicAdd(pointer, value) atomic_add((volatile __global int *)(pointer), value)
"""


def opencl_unit(source: str, path: str, entry: str) -> tuple[str, bool]:
    """The kernel as OpenCL C, and whether a `__local` argument follows its own.

    Pointers among the entry's parameters get `__global`; shared memory that is sized at launch
    becomes that argument, for OpenCL has no `extern __local`.
    """
    body, dynamic = _opencl_body(source, entry)
    return f"{_OPENCL_PRELUDE}{_line_directive(path)}\n{body}\n", dynamic is not None


def opencl_clocked_unit(
    source: str, path: str, entry: str, args: tuple[Parameter, ...], clock: str
) -> tuple[str, bool]:
    """The OpenCL twin of `cuda_clocked_unit`; `clock` is the expression that reads it."""
    body, dynamic = _opencl_body(source, entry)
    passed = [p.name for p in args] + ([dynamic[1]] if dynamic else [])
    declared = [_opencl_parameter(_declaration(p)) for p in args]
    declared.append("__global ulong *matbench_stamps")
    declared += [f"__local {dynamic[0]} *{dynamic[1]}"] if dynamic else []
    # A CPU runs a block's work-items in order: the last one to start is the last to end.
    return (
        f"""{_OPENCL_PRELUDE}{_line_directive(path)}
{body}
__kernel MATBENCH_VECTOR_HINT void matbench_entry({", ".join(declared)})
{{
    __global ulong *stamp = matbench_stamps + 5 * (get_group_id(0)
        + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2)));
    const size_t thread = get_local_id(0)
        + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
    if (thread == 0) stamp[0] = {clock};
    {entry}({", ".join(passed)});
    if (thread == get_local_size(0) * get_local_size(1) * get_local_size(2) - 1)
        stamp[1] = {clock};
}}
""",
        dynamic is not None,
    )


def _opencl_body(source: str, entry: str) -> tuple[str, tuple[str, str] | None]:
    """The source with its address spaces spelled out, and the type and name of `extern` memory."""
    code = without_comments(source)
    shared = _EXTERN_SHARED.search(code)
    _entry_span(code, entry)
    # From the last to the first, so that earlier positions stay true.
    for name in reversed(_GLOBAL_FUNCTION.findall(code)):
        start, end = _entry_span(code, name)
        pieces = [_opencl_parameter(piece) for piece in code[start:end].split(",")]
        if shared and name == entry:
            pieces.append(f" __local {shared['type']} *{shared['name']}")
        code = code[:start] + ",".join(pieces) + code[end:]
    code = _EXTERN_SHARED.sub(lambda match: "\n" * match.group().count("\n"), code)
    code = re.sub(r'\bextern\s+"C"', "", code)
    return code, (shared["type"], shared["name"]) if shared else None


def _opencl_parameter(parameter: str) -> str:
    if "*" not in parameter and "[" not in parameter:
        # OpenCL takes no size_t from outside, and its long has 64 bits.
        return re.sub(r"\bsize_t\b", "ulong", re.sub(r"\blong\s+long\b", "long", parameter))
    lead = len(parameter) - len(parameter.lstrip())
    return f"{parameter[:lead]}__global {parameter[lead:]}"
