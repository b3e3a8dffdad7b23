"""What `matbench adopt` says of a file's own launch, of settings, and of what no GPU can launch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support import toml
from support.cli import QUICK, Matbench, last_run
from support.foreign import DYNAMIC, PARAMETERS, WHOLE, plain
from support.kernels import text_of

from matbench.model import DeviceInfo

pytestmark = pytest.mark.usefixtures("few_sizes")

ABC = "a, b, c, m, n, k"
LONG = pytest.mark.long
ON_16 = plain(rows="16", columns="16")


def adopted(
    path: Path, text: str, matbench: Matbench, *words: str
) -> tuple[list[str], list[str], dict[str, Any]]:
    """The warnings and notes for a file with that text, and its table."""
    path.write_text(text)
    output = matbench("adopt", path, *words).stdout
    warnings, notes = (re.findall(f"^{k}: (.*)", output, re.MULTILINE) for k in ("warning", "note"))
    return warnings, notes, toml.table(path.with_suffix(".toml"))


@pytest.mark.parametrize(
    ("kernel", "launch", "passed", "mistake"),
    [
        (ON_16, "dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)", ABC, None),
        (ON_16, "dim3((m + 15) / 16, (n + 15) / 16), dim3(16, 16)", ABC,
         "exchanges M and N in its grid: right only where M = N"),
        pytest.param(
            plain().replace(PARAMETERS, ", ".join(reversed(PARAMETERS.split(", ")))),
         "dim3((m + 31) / 32, (n + 7) / 8), dim3(32, 8)", "k, n, m, c, b, a",
         "exchanges M and N in its grid: right only where M = N", marks=LONG),
        (ON_16, "dim3(n / 16, m / 16), dim3(16, 16)", ABC,
         "rounds its grid down: right only for whole tiles"),
        (ON_16, "dim3((m + 15) / 16, (n + 15) / 16), dim3(16, 16)", "a, b, c, n, m, k",
         "passes (n, m, k) for (M, N, K); are sizes exchanged?"),
        # A product of column-major matrices, one of squares, and a launch for one size.
        *(
            pytest.param(ON_16, f"dim3({grid}), dim3(16, 16)", passed, None, marks=LONG)
            for grid, passed in (
                ("(m + 15) / 16, (n + 15) / 16", "b, a, c, n, m, k"),
                ("(n + 15) / 16, (n + 15) / 16", "a, b, c, n, n, n"),
                ("(n + 15) / 16, 4", "a, b, c, 64, n, k"),
            )
        ),
        (ON_16, "dim3((n + 31) / 32, (m + 31) / 32), dim3(16, 16)", ABC,
         "is wrong; right are block 16, 16 and grid ceil_div(N, 16), ceil_div(M, 16)"),
        (plain(), "dim3((n + 63) / 64, (m + 63) / 64), dim3(64, 64)", ABC,
         "needs 4,096 threads per block; no NVIDIA GPU allows more than 1,024"),
        (DYNAMIC, "dim3((n + 7) / 8, (m + 7) / 8), dim3(8, 8)", ABC,
         "asks for no dynamic shared memory; the kernel needs 512 bytes"),
    ],
)  # fmt: skip
def test_what_the_files_own_launch_does_wrong_is_said(
    kernel: str, launch: str, passed: str, mistake: str | None, tmp_path: Path, matbench: Matbench
) -> None:
    host = "void go(float *a, float *b, float *c, int m, int n, int k)\n{\n"
    path = tmp_path / "own.cu"
    text = f"{kernel}{host}    mm<<<{launch}>>>({passed});\n}}\n"
    warnings, _, table = adopted(path, text, matbench)
    line = text[: text.index("<<<")].count("\n") + 1
    assert warnings == ([f"{path}:{line}: the launch {mistake}"] if mistake else [])
    assert "where" not in table["launch"]


@pytest.mark.parametrize(
    ("default", "value", "origin"),
    [(" = 2", "", "2"), pytest.param("", ", 3", "3", marks=LONG), ("", ", times", "1")],
)
def test_a_number_that_the_result_does_not_depend_on_is_that_of_the_launch(
    default: str, value: str, origin: str, tmp_path: Path, matbench: Matbench
) -> None:
    path = tmp_path / "repeated.cu"
    kernel = ON_16.replace("int K)", f"int K, int repeat{default})").replace("for (", LOOP, 1)
    grid = "dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)"
    host = "void go(float *a, float *b, float *c, int m, int n, int k, int times)"
    launch = f"{host} {{ mm<<<{grid}>>>({ABC}{value}); }}\n"
    warnings, notes, table = adopted(path, kernel + launch, matbench)
    assert table["args"] == ["A", "B", "C", "M", "N", "K", origin]
    assert notes == [f"the result does not depend on repeat, which is {origin}"]
    assert path.with_suffix(".toml").read_text().startswith(f"# {notes[0]}\n")
    assert not warnings


LOOP = "for (int r = 0; r < repeat; ++r, sum = r < repeat ? 0.0f : sum)\n    for ("
TUNED = text_of("tuned.cu")


def test_formulas_fit_a_second_value_even_at_one_size(tmp_path: Path, matbench: Matbench) -> None:
    path = tmp_path / "tuned.cu"
    _, _, table = adopted(path, TUNED, matbench)
    assert table["launch"]["block"] == ["block_size_x", "block_size_y"]
    settings = ("tile_size_x=4", "tile_size_y=1", "block_size_y=8")
    words = [word for setting in settings for word in ("--set", setting)]
    matbench("run", path, "--sizes", "256", *words, *QUICK)
    assert {outcome.status for outcome in last_run()} == {"measured"}


def test_a_formula_that_fits_once_is_a_number(tmp_path: Path, matbench: Matbench) -> None:
    text = plain(f"tile_size == 16 && {WHOLE}", rows="tile_size", columns="tile_size")
    warnings, _, table = adopted(tmp_path / "one.cu", text, matbench)
    assert not warnings
    assert table["sweep"] == {"tile_size": [16]}
    assert table["launch"]["block"] == [16, 16]
    assert table["launch"]["grid"] == ["ceil_div(N, 16)", "ceil_div(M, 16)"]


def test_another_kernels_launch_does_not_count(tmp_path: Path, matbench: Matbench) -> None:
    """Neither of one in the file, nor of one in a file that it includes."""
    launch = "void go(float *a, int n) { mm<<<n, 384>>>(a, a, a, n, n, n); }\n"
    (tmp_path / "first.cu").write_text(plain(rows="8", columns="8") + launch)
    (tmp_path / "main.cu").write_text(f'#include "first.cu"\n{launch}')
    warnings, _, table = adopted(tmp_path / "second.cu", plain(), matbench)
    assert table["launch"]["block"] == [16, 16]
    assert not warnings
    (tmp_path / "other.cu").write_text(f'#include "second.cu"\n{launch}')
    warnings, _, _ = adopted(tmp_path / "second.cu", plain(), matbench, "--force")
    assert warnings[0].startswith(f"{tmp_path / 'other.cu'}:2: the launch is wrong; right are")


LARGE = ON_16.replace(
    "if (",
    "__shared__ double all[80][80]; all[threadIdx.x][threadIdx.y] = K; __syncthreads();\n    "
    "K = all[threadIdx.y][threadIdx.x] * all[K % 16][K % 16] / all[K % 80 / 5][7];\n    if (",
    1,
)


@pytest.mark.parametrize(
    ("text", "reason", "status"),
    [
        (plain(rows="64", columns="64"), "needs 4,096 threads per block", "skipped"),
        (LARGE, "mm needs 51,200 bytes of static shared memory per block", "failed"),
    ],
)  # fmt: skip
def test_what_no_gpu_can_launch_is_refused_on_a_cpu(
    text: str, reason: str, status: str, tmp_path: Path, matbench: Matbench, device: DeviceInfo
) -> None:
    if device.backend == "cuda":
        pytest.skip("the GPU refuses it in words of its own")
    path = tmp_path / "large.cu"
    path.write_text(text)
    reason = (
        f"{reason}; no NVIDIA GPU allows more than {'1,024' if 'threads' in reason else '49,152'}"
    )
    assert reason in matbench("adopt", path, code=1).stdout
    side = 64 if status == "skipped" else 16
    grid = f'grid = ["ceil_div(N, {side})", "ceil_div(M, {side})"]'
    args = 'args = ["A", "B", "C", "M", "N", "K"]'
    path.with_suffix(".toml").write_text(f"{args}\n[launch]\nblock = [{side}, {side}]\n{grid}\n")
    matbench("run", path, "--sizes", "100", *QUICK, code=None)
    assert {outcome.status for outcome in last_run()} == {status}
    checked = matbench("check", path, code=None).output
    assert reason in " ".join(checked.split())


@pytest.mark.parametrize(
    ("signature", "body", "args", "where"),
    [
        ("const float *A, const float *x, float *y, int rows, int cols",
         "if (i < rows) { float s = 0; for (int k = 0; k < cols; ++k) s += A[i * cols + k] * x[k];"
         " y[i] = s; }", "A B C M K", ["N == 1"]),
        pytest.param("const float *x, const float *W, float *out, int k, int n",
         "if (i < n) { float s = 0; for (int p = 0; p < k; ++p) s += x[p] * W[p * n + i];"
         " out[i] = s; }", "A B C K N", ["M == 1"], marks=LONG),
        pytest.param("const float *A, const float *x, float *y, int n",
         "float s = 0; for (int k = 0; k < n; ++k) s += A[i * n + k] * x[k]; y[i] = s; }"
         " void go(float *a, int n) { f<<<n / 64, 64>>>(a, a, a, n);",
         "A B C K", ["N == 1", "M == K", "M % 64 == 0"], marks=LONG),
        ("const float *u, const float *v, float *out, int m, int n",
         "int j = blockIdx.y * blockDim.y + threadIdx.y;"
         " if (j < m && i < n) out[j * n + i] = u[j] * v[i];", "A B C M N", ["K == 1"]),
    ],
)  # fmt: skip
def test_a_size_may_be_1(
    signature: str, body: str, args: str, where: list[str], tmp_path: Path, matbench: Matbench
) -> None:
    path = tmp_path / "vector.cu"
    index = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
    _, _, table = adopted(path, f"__global__ void f({signature}) {{ {index} {body} }}\n", matbench)
    assert table["args"] == args.split()
    assert table["launch"]["where"] == where
    size = {"N": "256x1x256", "M": "1x96x33", "K": "40x96x1"}[where[0][0]]
    matbench("run", path, "--sizes", size, *QUICK)
    assert {outcome.status for outcome in last_run()} == {"measured"}
