"""Parsing CUDA C: comments, the entry and its parameters, tensor maps."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_regressions.file_regression import FileRegressionFixture
from support.cli import QUICK, Matbench, last_run
from support.golden import told_again
from support.kernels import text_of
from support.optional import present

from matbench.kernelfile import signature, syntax
from matbench.kernelfile.unpacking import unpacked

# -- comments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("a // b\nc", "a     \nc"),
        ("a /* b\nc */ d", "a     \n     d"),
        ("a /* // */ b", "a          b"),
        ("a // /* b\nc", "a        \nc"),
        ('"// no" // yes', '"// no"       '),
        ('"a\\"// b" /**/', '"a\\"// b"     '),
        ("a /* open", "a /* open"),
        ("a / b * c", "a / b * c"),
    ],
)
def test_comments_are_blanked_in_their_place(source: str, code: str) -> None:
    assert syntax.without_comments(source) == code


@given(st.text(alphabet='/*"\\\n ab', max_size=80))
def test_blanking_moves_nothing(source: str) -> None:
    code = syntax.without_comments(source)
    assert len(code) == len(source)
    for was, now in zip(source, code, strict=True):
        assert now == was or (now == " " and was != "\n")


# -- the signature -------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", ["()", "(void)", "( /* none */ )"])
def test_an_entry_may_take_nothing(empty: str) -> None:
    assert signature.parameters(f'extern "C" __global__ void entry{empty} {{}}', "entry") == ()


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("tensor_map(A, 128, 64)", ("A", "128", "64")),
        (" tensor_map( B ,BK, 2 * BN)", ("B", "BK", "2 * BN")),
        ("tensor_map(A, 128)", None),
        ("A", None),
        ("N", None),
    ],
)
def test_what_a_tensor_map_is_of(text: str, described: tuple[str, str, str] | None) -> None:
    assert signature.tensor_map(text) == described


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        ("__half", -0.375, True), ("__half", 65504.0, True), ("__half", 65505.0, False),
        ("__half", 1e6, False), ("__half", 0.1, False), ("__nv_bfloat16", 2.0**100, True),
        ("__nv_bfloat16", 1.00390625, False), ("__nv_bfloat16", 1e300, False), ("bool", 2, False),
        ("char", -128, True), ("char", 128, False), ("float", 1e39, False),
    ],
)  # fmt: skip
def test_a_parameter_takes_what_its_type_can_hold(kind: str, value: float, fits: bool) -> None:
    assert signature.holds(kind, value) == fits


@pytest.mark.parametrize("kind", ["real", "::real", "ns::real", "typename Traits::inner::real"])
def test_a_type_is_known_by_its_name_in_any_namespace(kind: str) -> None:
    assert signature.resolved(kind, {"real": "other::number", "number": "float"}) == "float"


@given(st.floats(width=16, allow_nan=False, allow_infinity=False))
def test_the_bits_of_a_half_are_numpys(value: float) -> None:
    bits = present(signature.bits_of_16("__half", value))
    assert np.uint16(bits).view(np.float16) == value


def test_kernels_in_one_block_of_c() -> None:
    kernels = "".join(f"__global__ void f{number}(float *a) {{}}\n" for number in range(2000))
    started = time.process_time()
    functions = signature.functions(
        f'extern "C" {{\n{kernels}}}\n__global__ void g(float *a) {{}}\n'
    )
    assert time.process_time() - started < 4
    assert [function.is_extern_c for function in functions] == [True] * 2000 + [False]


# Pointers to numbers


def test_parameters_are_unpacked(file_regression: FileRegressionFixture) -> None:
    """Those that only a struct, a pointer to a number or an array holds; others stay."""

    def said(source: str) -> str:
        result = unpacked(source)
        assert len(signature.functions(result)) == len(signature.functions(source))
        return "the same" if result == source else result

    told_again(Path(__file__).with_name("unpacked.txt"), said, file_regression)


KERNEL = text_of("signature.cu")
TABLE = """
entry = "gemm<float>"
args = ["K", "A", "N", "B", "N", "C", "alpha", "M"]
[launch]
block = [16, 16]
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
"""


def test_struct_table(matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_functions_on_the_host_are_outside_classes() -> None:
    source = """
        void plain() {}
        struct S { void method() {} friend void of(S &) {} };
        class T { void other() {} friend void with(T &) {} };
        void S::outside() {}
        __device__ void device() {}
        namespace space { void inner() {} }
        int main() {}
    """
    assert [one.name for one in signature.host_functions(source)] == ["plain", "space::inner"]
