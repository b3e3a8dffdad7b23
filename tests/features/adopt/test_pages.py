"""What `matbench adopt` says of kernels, their mistakes and the files around them, and the tables
that it writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.cli import Matbench
from support.golden import paged
from support.kernels import DYNAMIC, PARAMETERS, WHOLE, plain, text_of
from support.paths import FOREIGN

pytestmark = pytest.mark.usefixtures("few_sizes")


class Files(NamedTuple):
    """A kernel, those files that are beside it, and further words of the command."""

    text: str
    beside: dict[str, str] = {}  # noqa: RUF012 - never changed
    words: tuple[str, ...] = ()


Kernels = dict[str, str | Files]


def foreign(name: str, *changed: tuple[str, str]) -> str:
    text = (FOREIGN / name).read_text(encoding="utf-8")
    for old, new in changed:
        assert old in text
        text = text.replace(old, new)
    return text


def given(*keys: str) -> tuple[str, ...]:
    return tuple(word for key in keys for word in ("--front-matter", key))


UNNAMED = text_of("unnamed.cu")
NO_SIZES_FIRST = plain().replace("int M, int N, int K", "int N, int M, int K")
SQUARES = text_of("launch-of-squares.cu")
SIZED_AT_LAUNCH = text_of("sized-at-launch.cu")
OF_384_THREADS = "void go(float *a, int n) { mm<<<n, 384>>>(a, a, a, n, n, n); }\n"
STAGED = text_of("staged.cu")
LEAVING = "float sum = 0; if (row >= M || col >= N) return;"
#: Strides, and types that conditions choose.
STRIDES = text_of("strides.h")
ROUNDED = text_of("as-bf16.cu")
ON_16 = plain(rows="16", columns="16")
REPEATED = ON_16.replace(
    "for (", "for (int r = 0; r < repeat; ++r, sum = r < repeat ? 0.0f : sum)\n    for (", 1
)
EXCHANGED = plain().replace(PARAMETERS, ", ".join(reversed(PARAMETERS.split(", "))))


def staged(rounded: str = "+ T - 1", slot: str = "0", used: str = "0") -> str:
    return STAGED.replace("ROUNDED", rounded).replace("SLOT", slot).replace("USED", used)


def sized_at_launch(name: str) -> str:
    text = re.sub(r"\b[MNK]\b", "n", DYNAMIC.replace("int M, int N, int K", "int n, int side"))
    return re.sub(r"\bside\b", name, text.replace("side = blockDim.x, ", ""))


def launched(kernel: str, grid: str, block: str, passed: str = "a, b, c, m, n, k") -> str:
    """A kernel with a launch of its own."""
    host = "void go(float *a, float *b, float *c, int m, int n, int k, int times)"
    return f"{kernel}{host}\n{{\n    mm<<<dim3({grid}), dim3({block})>>>({passed});\n}}\n"


def repeated(default: str, value: str) -> str:
    kernel = REPEATED.replace("int K)", f"int K, int repeat{default})")
    grid = "(n + 15) / 16, (m + 15) / 16"
    return launched(kernel, grid, "16, 16", f"a, b, c, m, n, k{value}")


def vector(signature: str, body: str) -> str:
    index = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
    return f"__global__ void f({signature}) {{ {index} {body} }}\n"


ARGUMENTS: Kernels = {
    "a result that no name tells": UNNAMED,
    "a constant without a formula that holds": "template <int SIDE>\n"
    + plain(f"SIDE == 16 && {WHOLE}", rows="SIDE", columns="SIDE"),
    "a formula that fits once": plain(
        f"tile_size == 16 && {WHOLE}", rows="tile_size", columns="tile_size"
    ),
    "a launch of squares": NO_SIZES_FIRST + SQUARES,
    "a launch of squares, which alone are right": NO_SIZES_FIRST.replace(
        WHOLE, f"{WHOLE} && M == N && N == K"
    )
    + SQUARES,
    "a block of three sides": foreign(
        "textbook.cu", ("threadIdx.y", "(threadIdx.y + threadIdx.z)")
    ),
    "a tile that is sized at launch": sized_at_launch("tileWidth"),
    "a tile that the launch sizes": sized_at_launch("w") + SIZED_AT_LAUNCH,
    "inputs that are rounded": ROUNDED + re.sub(r"([AB]\[.*?\])", r"as_bf16(\1)", plain()),
    "matrix times vector": vector(
        "const float *A, const float *x, float *y, int rows, int cols",
        "if (i < rows) { float s = 0; for (int k = 0; k < cols; ++k) s += A[i * cols + k] * x[k];"
        " y[i] = s; }",
    ),
    "an outer product": vector(
        "const float *u, const float *v, float *out, int m, int n",
        "int j = blockIdx.y * blockDim.y + threadIdx.y;"
        " if (j < m && i < n) out[j * n + i] = u[j] * v[i];",
    ),
    "one large size": foreign("fixed-sizes.cu", ("N_SIZE 160", "N_SIZE 4096")),
}
#: Of one size, which the build may choose, as it must the tile.
BUILT = """
#ifndef WIDTH
#define WIDTH 4096
#endif
__global__ void built(float *C, const float *A, const float *B) {
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < WIDTH; k++) sum += A[row * WIDTH + k] * B[k * WIDTH + column];
    C[row * WIDTH + column] = sum;
}
"""
FILES: Kernels = {
    "constants of nobody": plain(rows="block_size_y", columns="block_size_x"),
    "constants of an includer": Files(
        plain(rows="block_size_y", columns="block_size_x"),
        {
            "main.cu": "#define block_size_x 24\n#define block_size_y (block_size_x / 2)\n"
            '#include "mine.cu"\n'
            "void go(float *a, int n) { mm<<<n, n>>>(a, a, a, n, n, n); }\n"
        },
    ),
    "constants of another header of the main file": Files(
        plain(width="(N * ONE)"),
        {
            "one.h": "const int ONE = 1;\n",
            "main.cu": '#include "one.h"\n#include "mine.cu"\n'
            "void go() { mm<<<dim3(8, 8), dim3(16, 16)>>>(); }",
        },
    ),
    "a header in a usual folder": Files(
        '#include "width.h"\n' + plain(width="WIDE"), {"../include/width.h": "#define WIDE N\n"}
    ),
    "a launch of another kernel of its name": Files(
        plain(),
        {
            "first.cu": plain(rows="8", columns="8") + OF_384_THREADS,
            "main.cu": f'#include "first.cu"\n{OF_384_THREADS}',
        },
    ),
    "a launch in a file that includes it": Files(
        plain(), {"other.cu": f'#include "mine.cu"\n{OF_384_THREADS}'}
    ),
    "sizes that are strides of a header": Files(
        '#include "strides.h"\n'
        + plain(width="NJ").replace("* K + k", "* NK + k").replace("float", "REAL"),
        {"strides.h": STRIDES},
    ),
    "keys that are given": Files(
        foreign("pitched-double.cu"),
        words=given(
            "args=A,8*lda,B,ldb,C,8*ldc,M,N,K",
            "name=mine",
            "launch.block=8,8",
            "launch.where=N % 2 == 0",
            "entry=pitched",
        ),
    ),
    "a swept constant that is given": Files(
        foreign("sgemm-shared.cuh"), words=given("sweep.BLOCKSIZE=16")
    ),
    "a constant of a template": Files(foreign("sgemm-shared.cuh"), words=("--set", "BLOCKSIZE=8")),
    "constants of the build": Files(BUILT, words=("--set", "WIDTH=64", "--set", "TILE=8")),
    "a constant that is not there": Files(BUILT, words=("--set", "WIDE=64")),
    "a constant of the file": Files(
        BUILT.replace("#ifndef WIDTH", "#if 1"), words=("--set", "WIDTH=64")
    ),
    "a constant without a value": Files(BUILT, words=("--set", "WIDTH")),
}
RESTRICTIONS: Kernels = {
    "a leading dimension that is wrong": Files(
        '#include "width.h"\n' + plain(WHOLE, "WIDE"),
        {"headers/width.h": "#define WIDE K\n"},
        given("include_dirs=headers"),
    ),
    "rows that are not checked": plain("col < N"),
    "one row too many": plain("row <= M && col < N", rows="block_size_y", columns="block_size_x"),
    "K, of which it reads beyond the edge": staged()
    .replace(" && k + x < K", "")
    .replace(" && k + y < K", ""),
    "K in pairs of tiles": staged(slot="t & 1", used="(k + T < K ? here : 1)"),
    "K, of which one is left out": staged("+ T - 2"),
    "K, rounded down": staged(""),
    "a barrier that not all threads reach": staged().replace("float sum = 0;", LEAVING),
}
LAUNCHES: Kernels = {
    "a launch that is right": launched(ON_16, "(n + 15) / 16, (m + 15) / 16", "16, 16"),
    "a launch that exchanges M and N": launched(ON_16, "(m + 15) / 16, (n + 15) / 16", "16, 16"),
    "a launch that rounds down": launched(ON_16, "n / 16, m / 16", "16, 16"),
    "a launch that exchanges sizes": launched(
        ON_16, "(m + 15) / 16, (n + 15) / 16", "16, 16", "a, b, c, n, m, k"
    ),
    "a launch that is wrong": launched(ON_16, "(n + 31) / 32, (m + 31) / 32", "16, 16"),
    "a launch of too many threads": launched(plain(), "(n + 63) / 64, (m + 63) / 64", "64, 64"),
    "a launch without shared memory": launched(DYNAMIC, "(n + 7) / 8, (m + 7) / 8", "8, 8"),
    "repetitions by default": repeated(" = 2", ""),
    "repetitions of the caller": repeated("", ", times"),
}  # fmt: skip
EMPTY = "__global__ void f(float *a, float *b, float *c) {}\n"
REFUSED: Kernels = {
    "no kernel": "int main() {}\n",
    "no text": "\0\n",
    "nested too deep": f"__global__ void d() {{ {'{' * 30000}{'}' * 30000} }}\n",
    "another entry": Files(EMPTY, words=("--entry", "g")),
    **{
        key: Files(EMPTY, words=given(key))
        for key in ("args=A,B", "launch=x", "std=98", "include_dirs=gone")
    },
}
LONG: Kernels = {
    "a launch of squares, which alone are right": foreign(
        "swizzled.cu", ("col < N)", "col < N && M == N && N == K)")
    ),
    "a launch that exchanges M and N, of a kernel that does": launched(
        EXCHANGED, "(m + 31) / 32, (n + 7) / 8", "32, 8", "k, n, m, c, b, a"
    ),
    "a launch for column-major matrices": launched(
        ON_16, "(m + 15) / 16, (n + 15) / 16", "16, 16", "b, a, c, n, m, k"
    ),
    "a launch of squares": launched(
        ON_16, "(n + 15) / 16, (n + 15) / 16", "16, 16", "a, b, c, n, n, n"
    ),
    "a launch for 64 rows": launched(ON_16, "(n + 15) / 16, 4", "16, 16", "a, b, c, 64, n, k"),
    "repetitions of the launch": repeated("", ", 3"),
    "vector times matrix": vector(
        "const float *x, const float *W, float *out, int k, int n",
        "if (i < n) { float s = 0; for (int p = 0; p < k; ++p) s += x[p] * W[p * n + i];"
        " out[i] = s; }",
    ),
    "a square matrix times a vector": vector(
        "const float *A, const float *x, float *y, int n",
        "float s = 0; for (int k = 0; k < n; ++k) s += A[i * n + k] * x[k]; y[i] = s; }"
        " void go(float *a, int n) { f<<<n / 64, 64>>>(a, a, a, n);",
    ),
}


PAGES = {
    "arguments": ARGUMENTS, "files": FILES, "restrictions": RESTRICTIONS, "launches": LAUNCHES,
    "refused": REFUSED,
    "long": LONG,
}  # fmt: skip


@pytest.mark.parametrize("which", [*list(PAGES)[:-1], pytest.param("long", marks=pytest.mark.long)])
def test_pages(which: str, tmp_path: Path, matbench: Matbench, file_regression: Any) -> None:
    """Only few sizes are tried here, at which a smaller grid than the right one may do."""
    found = {}
    for number, (name, files) in enumerate(PAGES[which].items()):
        text, beside, words = files if isinstance(files, Files) else Files(files)
        folder = tmp_path / str(number)
        for at, content in {"mine.cu": text, **beside}.items():
            (folder / at).parent.mkdir(parents=True, exist_ok=True)
            (folder / at).write_text(content, encoding="utf-8")
        done = matbench("adopt", folder / "mine.cu", *words, code=None)
        said = done.stdout.partition("wrote ")[0] + (done.stderr if done.exit_code == 2 else "")
        said = said.replace(f"{folder}/", "").replace(str(folder), "FOLDER")
        said = re.sub(r": reference: .*;", ": …;", said)  # the figures are the device's
        table = folder / "mine.toml"
        written = table.read_text(encoding="utf-8") if table.exists() else ""
        found[name] = f"{said}\n{written}".rstrip()
    file_regression.check(paged(found), encoding="utf-8")
