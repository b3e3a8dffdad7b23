"""Launches are read where the author wrote them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matbench.features.adopt.arithmetic import Term, combined, number, term_of
from matbench.features.adopt.hints import HostLaunch, launches
from matbench.kernelfile import expressions, signature, syntax

KERNEL = """
template <int BM, int BN> __global__ void tiled(const float *A, float *C, int M, int N, int width)
{{ extern __shared__ float s[]; C[blockIdx.x + blockIdx.y] = s[threadIdx.x]; }}
{before}
void run(float *a, float *c, int rows, int cols) {{ {host} }}
"""


def read(host: str, before: str = "") -> HostLaunch:
    """The only launch of the kernel."""
    source = KERNEL.format(host=host, before=before)
    [function] = signature.functions(source)
    [launch] = launches(syntax.expanded(source), function)
    return launch


def test_a_constant_whose_name_is_that_of_no_size_is_a_setting_at_first() -> None:
    host = "tiled<64, 32><<<1, 8>>>(a, c, rows, cols, 7);"
    source = KERNEL.replace("width", "turns").format(before="", host=host)
    [function] = signature.functions(source)
    first, second = launches(source, function)
    assert (first.settings, second.settings) == ({"turns": 7}, {})
    source = source.replace("int turns", "int turns = 3").replace(", 7)", ")")
    [function] = signature.functions(source)
    assert launches(source, function)[0].settings == {"turns": 3}


CALL = "tiled<64, 32><<<grid, block{more}>>>(a, c, rows, cols, 7);"
CEIL = "(cols + 31) / 32, (rows + 63) / 64"
GRID = ("ceil_div(N, 32)", "ceil_div(M, 64)")


@pytest.mark.parametrize(
    ("before", "host", "grid", "block"),
    [
        ("", f"dim3 grid({CEIL}); dim3 block(16, 8);", GRID, (16, 8)),
        ("", f"dim3 grid = dim3({CEIL}, 1); dim3 block{{128}};", GRID, (128,)),
        ("", f"const auto grid = dim3{{{CEIL}, 1u}}; int block = 4 * 32;", GRID, (128,)),
        ("", f"dim3 grid; grid = {{{CEIL}}}; dim3 block(1); block.y = 2;", GRID, (1, 2)),
        ("", "dim3 grid(1); grid.x = (31 + cols) / 32; grid.y = (rows - 1 + 64) / 64;"
         " int block(8);", GRID, (8,)),
        ("#define TN 32\n#define TM (2 * TN)",
         "dim3 grid((cols - 1) / TN + 1, rows / TM); dim3 block(TN, TM / 4);",
         ("(N - 1) // 32 + 1", "M // 64"), (32, 16)),
        ("#define CDIV(a, b) \\\n  (((a) + (b) - 1) / (b))\nenum { TN = 1 << 5 };",
         "dim3 grid(CDIV(cols, TN), CDIV(rows, 64)), block(TN);", GRID, (32,)),
        ("int div_ceil(int a, int b) { return a % b ? a / b + 1 : a / b; }",
         "dim3 grid(div_ceil(cols, 32), div_ceil(rows, 64)), block(8);", GRID, (8,)),
        ("struct S { static constexpr int kN = 0x20; };\ntemplate <typename T> constexpr T up(T a,"
         " T b) { return (a + b - 1) / b; }",
         "dim3 grid(up<int>(cols, S::kN), up(rows, 64)), block(S::kN * sizeof(double));",
         GRID, (256,)),
        ("", "auto up = [&](int n, int d) { return (n + d - 1) / d; }; int x = up(cols, 32);"
         " dim3 grid(x, up(rows, 64)), block(std::min(512, 256) / 2);",
         GRID, (128,)),
        ("", "dim3 grid((cols + 31) >> 5, (rows + 63) / (1 << 6)), block(1 << 3);", GRID, (8,)),
        ("", "dim3 grid(ceil((float)cols / 32), std::ceil(rows / 64.0f)), block(32, 32, 1);",
         GRID, (32, 32)),
        ("", "dim3 grid(at::cuda::ATenCeilDiv(cols, 32), div_up(rows, 64)), block((unsigned)8);",
         GRID, (8,)),
        ("", "int block = 8, grid = cols % 32 ? cols / 32 + 1 : cols / 32;",
         ("(N // 32 + 1 if N % 32 else N // 32)",), (8,)),
        ("", f"bool wide = 2 > 1; dim3 grid({CEIL}), block(wide ? 64 : 32);", GRID, (64,)),
        ("", f"dim3 grid(({CEIL.split(',')[0]}) - (rows + cols)), block(8);",
         ("ceil_div(N, 32) - M - N",), (8,)),
        ("int block = 5;\nvoid other() { int block = 6; }", f"dim3 grid({CEIL});", GRID, (5,)),
        ("", f"dim3 grid({CEIL}), block(threads_of(rows));", GRID, (None,)),
        ("", f"dim3 grid({CEIL}), block(loop); int loop = loop + 1;", GRID, (None,)),
    ],
)  # fmt: skip
def test_grid_and_block_are_read(
    before: str, host: str, grid: tuple[Any, ...], block: tuple[Any, ...]
) -> None:
    found = read(host + CALL.format(more=""), before)
    assert (found.grid, found.block) == (grid, block)
    assert found.template == (64, 32)


@pytest.mark.parametrize(
    ("host", "shared"),
    [
        (CALL.format(more=""), 0),
        (CALL.format(more=", 2 * 64 * sizeof(float), stream"), 512),
        ("size_t bytes = (64 + 32) * 8 * sizeof(half);" + CALL.format(more=", bytes"), 1536),
        ("cudaFuncSetAttribute(tiled<64, 32>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);"
         + CALL.format(more=", bytes_of(rows)"), 65536),
        (CALL.format(more=", bytes_of(rows)"), None),
        ("int bytes = init();" + CALL.format(more=", bytes") + "} int init() {"
         " int bytes = std::max(64 * 32, 16) * sizeof(float); cudaFuncSetAttribute(tiled<64, 32>,"
         " cudaFuncAttributeMaxDynamicSharedMemorySize, bytes); return bytes;", 8192),
    ],
)  # fmt: skip
def test_shared_memory_is_read(host: str, shared: int | None) -> None:
    assert read("dim3 grid(1), block(2);" + host).shared == shared


@pytest.mark.parametrize(
    ("before", "called"),
    [
        ("", "const uint TM = 64, TN = 32; tiled<TM, TN>"),
        ("", "constexpr int TM = 64, TN(TM / 2); auto kernel = &tiled<TM, TN>; kernel"),
        ("template <int TM, int TN> void go(float *a, float *c, int rows, int cols) {"
         " tiled<TM, TN><<<dim3(cols / TN, rows / TM), TM * TN / 8>>>(a, c, rows, cols, 1); }",
         "go<64, 32>(a, c, rows, cols); other"),
    ],
)  # fmt: skip
def test_template_arguments_by_name_stay_names(before: str, called: str) -> None:
    host = f"{called}<<<dim3(cols / TN, rows / TM), TM * TN / 8>>>(a, c, rows, cols, 1);"
    found = read(host, before)
    assert found.template == (64, 32)
    assert (found.grid, found.block) == (("N // BN", "M // BM"), ("BM * BN // 8",))


@pytest.mark.parametrize(
    ("host", "grid", "given"),
    [
        ("const int w = 8; f<<<cols / w, w>>>(a, c, rows, cols, w);", ("N // 8",), {"width": 8}),
        ("int rows = 512; f<<<rows / 8, 8>>>(a, c, rows, cols, 3);", ("M // 8",), {}),
        ("f<<<cols / 8, 8>>>(a, c, rows, cols, cols / 2);", ("N // 8",), {"width": "N // 2"}),
        ("int m = A.size(0); f<<<A.size(0) / 8, 8>>>(a, c, m, cols, 3);", ("M // 8",), {}),
        ("f<<<cols / 8, 8>>>(a, c, (int)rows, static_cast<int>(cols), 3);", ("N // 8",), {}),
        ("AT_DISPATCH(t, \"f\", ([&] { f<<<cols / 8, 8>>>(a, c, rows, cols, 3); }));",
         ("N // 8",), {}),
        ("f<<<cols / 8, 8>>>(a, cols);", (), {}),
    ],
)  # fmt: skip
def test_arguments_have_its_names(host: str, grid: tuple[str, ...], given: dict[str, Any]) -> None:
    found = read(host.replace("f<<<", "tiled<1, 2><<<"))
    assert (found.grid, found.given) == (grid, given)


def test_what_follows_a_launch_does_not_count() -> None:
    host = f"dim3 grid({CEIL}); int block = 8;{CALL.format(more='')} block = 9; grid = 1;"
    assert (read(host).grid, read(host).block) == (GRID, (8,))


def test_a_size_that_is_also_a_leading_dimension_is_a_size() -> None:
    source = """__global__ void f(const float *A, int lda, float *C, int N) { C[0] = A[lda]; }
    void run(float *a, float *c, int n) { f<<<n / 8, 8>>>(a, n, c, n); }"""
    [function] = signature.functions(source)
    assert launches(source, function)[0].grid == ("N // 8",)


def test_a_definition_that_depends_on_itself_ends() -> None:
    doubled = "".join(f"int x{n} = x{n + 1} + x{n + 1};" for n in range(23))
    host = f"{doubled} int y = y * y + y * y; dim3 z(z.x); dim3 grid(z.x + y, x0);"
    assert read(host + "int block = 8;" + CALL.format(more="")).grid == (None, None)


@st.composite
def terms(draw: st.DrawFn, depth: int = 3) -> tuple[Term, str]:
    """A term, and the same in Python with C's whole-number division."""
    if depth == 0 or draw(st.booleans()):
        name = draw(st.sampled_from(["M", "N", "K", ""]))
        some = draw(st.integers(1, 40))
        return (term_of(name), name) if name else (number(some), str(some))
    (a, left), (b, right) = draw(terms(depth - 1)), draw(terms(depth - 1))
    sign = draw(st.sampled_from(["+", "+", "-", "*", "/", "%", "<", "=="]))
    made = combined(a, sign, b)
    return (made, f"(({left}) {sign.replace('/', '//')} ({right}))") if made else (a, left)


@given(terms(), st.integers(1, 99), st.integers(1, 99), st.integers(1, 99))
def test_terms_have_values_of_their_parts(pair: tuple[Term, str], M: int, N: int, K: int) -> None:
    term, python = pair
    values = {"M": M, "N": N, "K": K}
    try:
        meant = int(expressions.evaluate(python, values))
    except expressions.ExpressionError:
        return
    assert int(expressions.evaluate(str(term.text), values)) == meant
