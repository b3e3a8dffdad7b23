"""Parameters of structs and pointers to numbers are replaced by what they consist of."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import QUICK, Matbench, last_run

from matbench.kernelfile import signature
from matbench.kernelfile.unpacking import unpacked

BODY = """
{
    for (int k = 0; k < K; ++k) { }
}
"""
STRUCT = "struct View { float *data; int rows, cols; };\n"
TYPEDEF = "typedef struct { const float *__restrict__ data; size_t cols; } View;\n"


@pytest.mark.parametrize(
    ("before", "parameters", "new", "start"),
    [
        (STRUCT, "View A, int K", "float *A_data, int A_rows, int A_cols, int K",
         "struct View A = {A_data, A_rows, A_cols};"),
        (STRUCT, "const struct View x", "float *x_data, int x_rows, int x_cols",
         "struct View x = {x_data, x_rows, x_cols};"),
        (TYPEDEF, "View a, View b",
         "float *__restrict__ a_data, size_t a_cols, float *__restrict__ b_data, size_t b_cols",
         "View a = {a_data, a_cols}; View b = {b_data, b_cols};"),
        ("", "const float *alpha, float *A, double const *d_beta",
         "float alpha_value, float *A, double d_beta_value",
         "const float *alpha = &alpha_value; const double *d_beta = &d_beta_value;"),
        ("", "float A[M][N], const T b[][2 * N], float (*__restrict__ c)[N][4]",
         "float *A_values, const T *b_values, float *__restrict__ c_values",
         "float (*A)[N] = *(float (*)[M][N])A_values; "
         "const T (*b)[2 * N] = (const T (*)[2 * N])b_values; "
         "float (*c)[N][4] = (float (*)[N][4])c_values;"),
    ],
)  # fmt: skip
def test_parameters_are_unpacked(before: str, parameters: str, new: str, start: str) -> None:
    source = f"{before}__global__ void f({parameters}){BODY}"
    result = unpacked(source)
    assert result == f"{before}__global__ void f({new})" + BODY.replace("{\n", f"{{ {start}\n", 1)
    assert [f.name for f in signature.functions(result)] == ["f"]


@pytest.mark.parametrize(
    "source",
    [
        STRUCT + "__global__ void f(View *A)" + BODY,
        "struct S { float rows[4]; };\n__global__ void f(S A)" + BODY,
        "struct S;\n__global__ void f(S A)" + BODY,
        "__global__ void f(float alpha, float *alphabet)" + BODY,
        STRUCT + "void f(View A)" + BODY,
        "__global__ void f(float *A[4], float B[4], float (&C)[4][4])" + BODY,
    ],
)
def test_other_parameters_stay(source: str) -> None:
    assert unpacked(source) == source


KERNEL = """struct View { int cols; float *data; };
template <typename T>
__global__ void gemm(const View A, const View B, View C, const T *alpha, int M)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= C.cols)
        return;
    T sum = 0;
    for (int k = 0; k < A.cols; ++k)
        sum += A.data[row * A.cols + k] * B.data[k * B.cols + col];
    C.data[row * C.cols + col] = *alpha * sum;
}
"""
TABLE = """
entry = "gemm<float>"
args = ["K", "A", "N", "B", "N", "C", "alpha", "M"]
[launch]
block = [16, 16]
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
"""


def test_a_table_names_what_structs_consist_of(
    matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("views.cu").write_text(KERNEL)
    Path("views.toml").write_text(TABLE)
    matbench("run", "views.cu", "--sizes", "40x50x60", "--alpha", "1.5", *QUICK)
    assert [outcome.status for outcome in last_run()] == ["measured"]
    Path("views.toml").write_text(TABLE.replace('"K", "A"', '"M", "A"'))
    matbench("run", "views.cu", "--sizes", "40x50x60", *QUICK, code=1)
    Path("views.toml").write_text(TABLE.replace('"alpha"', '"A"'))
    message = "views.toml:3: args: alpha_value takes a number, not 'A'"
    assert message in matbench("run", "views.cu", *QUICK, code=2).stderr
