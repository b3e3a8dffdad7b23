"""What the text of a kernel shows that may be why it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.paths import FOREIGN

from matbench.kernelfile import catalogue, signature, suspicions
from matbench.model import Kernel, LaunchRules

#: Bodies of kernels with helpers, and what is said; the body's first line is line 6.
DIVERGENT = {
    "if (col < N) { __syncthreads(); }": "`__syncthreads()` at mine.cu:6 is under",
    "bool in = col < N;\nif (in)\n wait();": "`wait()` at mine.cu:8 is under a condition (line 7)",
    "if (me() < N) BARRIER;": "`BARRIER` at mine.cu:6 is under",
    "if (col >= N)\n    return;\nSYNC();": "`SYNC()` at mine.cu:8 is missed by threads that leave",
    "for (int k = threadIdx.x; k < N; k += 8)\n    SYNC();": "`SYNC()` at mine.cu:7 is under",
    "int k = col;\nwhile (k++ < N) { __syncthreads_or(1); }": "`__syncthreads_or()` at mine.cu:7",
    "for (int k = 0; k < N; ++k) { if (k > col) break; SYNC(); }": "`SYNC()` at mine.cu:6 is",
    "for (;;) { SYNC(); if (col > 3) continue; A[0] = 1; }": "`SYNC()` at mine.cu:6 is missed",
    "if (col < N) cg::this_thread_block().sync();": "`cg::this_thread_block().sync()` at mine.cu:6",
}
DIVERGENT |= {
    f"if ({of_a_thread} < 3) SYNC();": "`SYNC()` at mine.cu:6 is under"
    for of_a_thread in ("thread_rank()", "thread_index().x", "laneid", "lane_id()")
}
UNSET = {
    "float sum;\nfor (int k = 0; k < N; ++k) sum += A[k];\nA[0] = sum;": "`sum` at mine.cu:6",
    "float r[2][2];\nr[0][1] += A[0];": "`r` at mine.cu:6",
    "double s;\ns = fma(A[0], A[1], s);": "`s` at mine.cu:6",
    "float4 v;\nv.x -= A[0];": "`v` at mine.cu:6",
    "int count;\ncount++;": "`count` at mine.cu:6",
    "int last;\nA[0] = last++;": "`last` at mine.cu:6",
}
UNSUSPICIOUS = [
    "if (blockIdx.x > 2) SYNC();",
    "for (int s = blockDim.x / 2; s > 0; s /= 2) { if (col < s) A[col] = 1; SYNC(); }",
    "SYNC(); if (col >= N) return;",
    "while (__syncthreads_or(col < N)) A[0] = 1;",
    "for (int k = 0; k < N; ++k) { switch (col) { case 1: break; } SYNC(); }",
    "float sum; if (N) sum = 1; else sum = 2; sum += 3;",
    "float r[4]; memset(r, 0, 16); r[1] += 2;",
    "float r[4]; clear(&r[0]); r[1] += 2;",
    "float r[2]; for (int i = 0; i < 2; ++i) r[i] = 0; r[1] += r[0];",
    "float sum; load(sum); sum += 1; float zero[2] = {}; zero[0] += 1;",
    "__shared__ float s[4]; s[col] += 1;",
]


def said(body: str, told: tuple[str, ...] = ()) -> list[str]:
    source = (
        "#define SYNC() __syncthreads()\n#define BARRIER __syncthreads()\n"
        "__device__ int me() { return threadIdx.x; }\n__device__ void wait() { __syncthreads(); }\n"
        "__global__ void mine(float *A, int N) { const int col = threadIdx.x;\n"
        f"{body}\n}}\n"
    )
    launch = LaunchRules(block=(1,), grid=(1,))
    kernel = Kernel(name="mine", launch=launch, source=source, path="a/mine.cu", entry="mine")
    return list(suspicions.suspicions(kernel, told))


@pytest.mark.parametrize(("body", "words"), DIVERGENT.items())
def test_a_barrier_that_not_all_threads_reach_is_named(body: str, words: str) -> None:
    [found] = said(body)
    assert found.startswith(words)
    assert found.endswith("that not all threads of a block may meet")


@pytest.mark.parametrize(("body", "words"), UNSET.items())
def test_a_sum_that_nothing_clears_is_named_once(body: str, words: str) -> None:
    assert said(body) == [f"{words} is added to, but never set"]
    name = words.split("`")[1]
    assert said(body, (f"mine.cu:7: variable '{name}' is uninitialized",)) == []


@pytest.mark.parametrize("body", UNSUSPICIOUS)
def test_what_is_right_is_not_suspected(body: str) -> None:
    assert said(body) == []


def test_no_right_kernel_is_suspected() -> None:
    files = [*catalogue.kernels_folder().rglob("*.cu"), *FOREIGN.glob("*.cu")]
    assert len(files) > 60
    launch = LaunchRules(block=(1,), grid=(1,))
    for file in files:
        source = file.read_text()
        for function in signature.functions(source):
            kernel = Kernel(
                name="k", launch=launch, source=source, path=str(file), entry=function.name
            )
            assert list(suspicions.suspicions(kernel)) == []


def test_a_kernel_in_a_header_is_read_there(tmp_path: Path) -> None:
    (tmp_path / "kernel.cuh").write_text(
        "__global__ void mine(float *A, float *B, float *C)\n{\n    if (threadIdx.x < 3)\n"
        "        __syncthreads();\n}\n"
    )
    (tmp_path / "mine.cu").write_text(
        '// /// matbench\n// args = ["A", "B", "C"]\n// [launch]\n// block = [32]\n// grid = [1]\n'
        "// ///\n"
        '#include "kernel.cuh"\n'
    )
    [found] = suspicions.suspicions(catalogue.load(tmp_path / "mine.cu"))
    assert found.startswith("`__syncthreads()` at kernel.cuh:4 is under a condition (line 3)")
