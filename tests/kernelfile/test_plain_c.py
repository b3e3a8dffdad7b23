"""C++ as C: what has an equivalent, what has none, and what is not needed."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matbench.errors import MatbenchError
from matbench.kernelfile import catalogue, opencl_c, plain_c, signature
from matbench.kernelfile.plain_c import NeedsCudaError
from matbench.model import Kernel, LaunchRules

SIGNATURE = "(const float *A, const float *B, float *C, int M, int N, int K)"


def in_c(body: str, before: str = "", bound: tuple[tuple[str, str], ...] = ()) -> str:
    """The statements of a kernel as C, and the code before it."""
    template = "template <typename T, int BM> " if bound else ""
    source = f"{before}\n{template}__global__ void mine{SIGNATURE} {{ {body} }}"
    return " ".join(plain_c.translated(source, "mine", bound).split())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("C[0] = static_cast<float>(M);", "C[0] = ((float)(M));"),
        ("C[0] = float(int(A[0]));", "C[0] = ((float)(((int)(A[0]))));"),
        (
            "reinterpret_cast<float4 *>(&C[static_cast<int>(M)])[0].x = 1;",
            "((float4 *)(&C[((int)(M))]))[0].x = 1;",
        ),
        ("constexpr int X = 3, Y = X * 2; float a[Y];", "enum { X = 3, Y = X * 2 }; float a[Y];"),
        ("constexpr float X = 3;", "const float X = 3;"),
        ("const int row = threadIdx.x;", "const int row = threadIdx.x;"),
        ("static_assert(sizeof(int) == 4);", '_Static_assert(sizeof(int) == 4, "static_assert");'),
        ("using real = float; real x = 0;", "typedef float real; real x = 0;"),
        ("if constexpr (sizeof(int) > 3) C[0] = 1;", "if (sizeof(int) > 3) C[0] = 1;"),
        ("float *p = nullptr;", "float *p = 0;"),
        ("C[0] = std::min(M, N);", "C[0] = min(M, N);"),
        ("for (int i = 0; i < M; ++i) C[i] = A[i] < B[i];", "C[i] = A[i] < B[i];"),
    ],
)
def test_what_c_can_say(body: str, said: str) -> None:
    assert said in in_c(body)


def test_the_arguments_of_a_template_take_the_place_of_its_parameters() -> None:
    body = "__shared__ T s[BM]; s[0] = T(BM); C[0] = static_cast<T>(s[0]);\n#pragma unroll BM\n"
    said = in_c(body, "", (("T", "float"), ("BM", "2 * 8")))
    assert "__shared__ float s[(2 * 8)]; s[0] = ((float)((2 * 8))); C[0] = ((float)(s[0]));" in said
    assert "#pragma unroll 2 * 8" in said
    assert "template" not in said


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ("#include <cstdio>\n#include <cuda_runtime.h>\n#include <vector>", ""),
        ('#include "cuda_runtime.h"\n#include <stdio.h>\n#include <sys/time.h>', ""),
        ('#include "helper_cuda.h"\n#include <nowhere/mine.h>', ""),
        ("#ifdef __CUDACC__\n#include <mma.h>\n#endif", "#include <mma.h>"),
        ("int main() { auto f = [&]() { return 3; }; mine<<<1, 2>>>(0); }", ""),
        ("template <class T> struct S { T x; };", ""),
        ("template <class T> __global__ void other(T *x) { }", ""),
        ("using namespace std;", ""),
        ("namespace ns { constexpr int X = 3; }", "enum { X = 3 };"),
        ("const int X = 3;", "enum { X = 3 };"),
        ("static const float X = 3;", "__constant float X = 3;"),
        (
            "struct P { int x; }; __device__ int f(P *p) { return p->x; }",
            "typedef struct P P; struct P { int x; }; __device__ int f(P *p)",
        ),
        ("struct P { int x; };", ""),
        ("float time(void (*f)(float *, int), dim3 grid); float time(void (*f)(int));", ""),
        ("template <class F> void check(F f, const char *name); void *at(int i), *b(char);", ""),
        ("std::vector<float> host; static cudaEvent_t start, stop; float *d_A = nullptr;", ""),
        ("struct T { cudaEvent_t at; }; typedef std::vector<float> V; using W = cudaEvent_t;", ""),
        ("const std::string NAME = name(); static const cudaDataType_t KIND = CUDA_R_32F;", ""),
        ("class Timer { public: Timer() {} void stop(); }; void Timer::stop() { }", ""),
        ("std::ostream &operator<<(std::ostream &to, float4 x) { return to; }", ""),
        ("bool operator==(const dim3 &a, const dim3 &b); int &at(int i) { return x[i]; }", ""),
        ("namespace fs = std::filesystem; extern \"C\" void run(std::vector<float> &v);", ""),
        ("#define F4(p) reinterpret_cast<float4 *>(&(p))[0]", "((float4 *)(&(p)))[0]"),
        ("__host__ __device__ int f(int x) { return x; }", "int f(int x) { return x; }"),
        ('extern "C" { __device__ int f(int x) { return x; } }', "int f(int x) { return x; }"),
    ],
)  # fmt: skip
def test_what_stands_outside_of_the_kernel(before: str, kept: str) -> None:
    said = in_c("C[0] = 1;", before).partition("__global__ void mine")[0].strip("; ")
    kept = kept.rstrip(";")
    assert kept in said
    if not kept:
        assert said == ""


@pytest.mark.parametrize(
    ("what", "body", "before"),
    [
        ("lambda", "auto f = [=](int x) { return x; };", ""),
        ("auto", "auto x = A[0];", ""),
        ("reference", "float &x = C[0];", ""),
        ("initializer", "float4 x = float4{1, 2, 3, 4};", ""),
        ("inline PTX", 'asm volatile("exit;");', ""),
        ("`__shfl_down_sync`", "C[0] = __shfl_down_sync(~0u, A[0], 1);", ""),
        (
            "template `f`",
            "C[0] = f<3>(M);",
            "template <int X> __device__ int f(int x) { return X; }",
        ),
        ("template `S`", "S<3> s;", "template <int X> struct S { };"),
        ("class", "S s;", "class S { int x; };"),
        ("`cg::this_grid`", "cg::this_grid();", ""),
        ("reference", "f(C[0]);", "__device__ void f(float &x) { x = 1; }"),
        ("default argument", "f(C);", "__device__ void f(float *x, int i = 3) { }"),
    ],
)
def test_what_c_cannot_say_is_one_line(what: str, body: str, before: str) -> None:
    with pytest.raises(NeedsCudaError) as refused:
        in_c(body, before)
    assert re.fullmatch(rf"needs CUDA \({re.escape(what)}, line [12]\)", str(refused.value))


@pytest.mark.parametrize(
    ("name", "line", "before"),
    [
        ("cuda_fp16.h", 1, "#include <cuda_fp16.h>"),
        ("mma.h", 2, '#include "helper_cuda.h"\n#include "mma.h"'),
        ("cuda/barrier", 3, "#ifndef M_H\n#define M_H\n#include <cuda/barrier>\n#endif"),
    ],
)
def test_a_header_of_cuda_for_the_device(name: str, line: int, before: str) -> None:
    with pytest.raises(NeedsCudaError) as refused:
        in_c("C[0] = 1;", before)
    assert str(refused.value) == f"needs CUDA ({name}, line {line})"


def test_the_users_headers_stay() -> None:
    source = f'#include "mine.h"\n#include "other.h"\n__global__ void mine{SIGNATURE} {{ }}'
    assert plain_c.translated(source, "mine", (), ("mine.h",)).startswith('#include "mine.h"\n\n_')


def test_a_header_beside_the_kernel_is_read_like_the_kernel(tmp_path: Path) -> None:
    header = tmp_path / "mine.h"
    host = "struct Timer { cudaEvent_t start; }; void check(std::string text);"
    guarded = "#ifndef MINE_H\n#define MINE_H\n#include <cuda_runtime.h>\n{}\n#endif\n"
    header.write_text(guarded.format(f"{host}\n__device__ int three() {{ return 3; }}"))
    (tmp_path / "mine.cu").write_text(
        f'#include "mine.h"\n__global__ void mine{SIGNATURE} {{ C[0] = three(); }}\n'
    )
    given = {"launch": {"block": [1], "grid": [1]}}
    text = opencl_c.plain_unit(catalogue.load(tmp_path / "mine.cu", given=given)).text
    assert "return 3;" in text
    assert not any(word in text for word in ("cuda_runtime", "cudaEvent_t", "std::", "check"))
    header.write_text(guarded.format("#include <cuda_bf16.h>"))
    refused = opencl_c.obstacle(catalogue.load(tmp_path / "mine.cu", given=given))
    assert refused == "needs CUDA (cuda_bf16.h, line 4 of mine.h)"


def test_what_the_preprocessor_may_leave_out_is_its_own_matter() -> None:
    body = '\n#ifdef __CUDACC__\nasm volatile("exit;");\n#else\nC[0] = float(1);\n#endif\n'
    said = in_c(body)
    assert "asm" in said
    assert "C[0] = ((float)(1));" in said


def test_shared_memory_of_inner_scopes_lies_in_the_outermost() -> None:
    source = f"""__global__ void mine{SIGNATURE}
{{
    const int t = threadIdx.x;
    for (int k = 0; k < K; ++k) {{
        if (k > 3) {{
            __shared__ float tile[4]
                                 [4];
            tile[0][0] = A[k];
        }}
    }}
}}
"""
    text = opencl_c.plain_unit(kernel(source)).text.split('#line 1 "mine.cu"\n')[1]
    lines = text.splitlines()
    assert lines[3] == "    __shared__ float tile[4] [4]; for (int k = 0; k < K; ++k) {"
    assert lines[7].strip() == "tile[0][0] = A[k];"
    assert text.count("__shared__") == 1
    helper = "__device__ void f() { if (1) { __shared__ int x; } }\n" + source
    assert opencl_c.obstacle(kernel(helper)) == (
        "needs CUDA (`__shared__` in a device function, line 1)"
    )


def kernel(source: str, entry: str = "mine") -> Kernel:
    return Kernel(
        name="mine",
        launch=LaunchRules(block=(1,), grid=(1,)),
        entry=entry,
        source=source,
        path="mine.cu",
        is_extern_c=False,
    )


SOURCES = [each for each in catalogue.builtin() if each.source]
PIECES = ["{", "}", "(", ")", "<", ">", ";", "template <int X>", "#if", "#endif\n", "/*", '"', "'",
          "namespace", "static_cast<", "auto", "[&]", "::", "#define X(", "\\\n", "__shared__",
          "<<<", "R\"(", "?", "\u00e9", "operator", "enum {", "extern \"C\""]  # fmt: skip


@settings(deadline=10_000)
@given(st.integers(0, 2**32))
def test_a_mutated_source_is_read_or_refused_in_one_line(seed: int) -> None:
    """No traceback and no hang if lines are deleted, doubled or swapped, or words inserted."""
    chance = random.Random(seed)
    origin = chance.choice(SOURCES)
    text = origin.source
    for _ in range(chance.randint(1, 6)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice([0, 1, 1, 8, 60, 300]))
        text = text[:start] + chance.choice(["", *PIECES, text[start:end] * 2]) + text[end:]
    mutated = kernel(text, origin.entry)
    try:
        for found in signature.functions(text):
            assert found.line <= text.count("\n") + 1
        unit = opencl_c.plain_unit(mutated).text
    except MatbenchError as error:
        assert "\n" not in str(error)
    else:
        assert len(unit) > 100
    assert opencl_c.obstacle(mutated) is None or opencl_c.obstacle(mutated).count("\n") == 0  # type: ignore[union-attr]
