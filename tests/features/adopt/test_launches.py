"""Launches are read where the author wrote them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from pytest_regressions.file_regression import FileRegressionFixture
from support.golden import answered

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


CALL = "tiled<64, 32><<<grid, block>>>(a, c, rows, cols, 7);"


def told(question: str) -> str:
    """What is read of the launch in host code, whose last line is in the function that launches."""
    *before, host = question.splitlines()
    found = read(host if "<<<" in host else host + CALL, "\n".join(before))
    parts = {
        name: getattr(found, name) for name in ("template", "grid", "block", "shared", "given")
    }
    usual = HostLaunch._field_defaults
    said = {name: part for name, part in parts.items() if part != usual[name]}
    return "; ".join(f"{name} {part}" for name, part in said.items())


def test_launches_are_read(file_regression: FileRegressionFixture) -> None:
    table = Path(__file__).with_name("launches.txt")
    file_regression.check(answered(table, told), fullpath=table, encoding="utf-8")


def test_a_size_that_is_also_a_leading_dimension_is_a_size() -> None:
    source = """__global__ void f(const float *A, int lda, float *C, int N) { C[0] = A[lda]; }
    void run(float *a, float *c, int n) { f<<<n / 8, 8>>>(a, n, c, n); }"""
    [function] = signature.functions(source)
    assert launches(source, function)[0].grid == ("N // 8",)


def test_a_definition_that_depends_on_itself_ends() -> None:
    doubled = "".join(f"int x{n} = x{n + 1} + x{n + 1};" for n in range(23))
    host = f"{doubled} int y = y * y + y * y; dim3 z(z.x); dim3 grid(z.x + y, x0);"
    assert read(host + "int block = 8;" + CALL).grid == (None, None)


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
