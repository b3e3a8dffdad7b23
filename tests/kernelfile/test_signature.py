"""Parsing CUDA C: comments, the entry and its parameters, tensor maps."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sources import SEVERAL

from matbench.kernelfile import signature, syntax
from matbench.kernelfile.signature import SourceError
from matbench.model import Parameter

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


def test_the_parameters_of_the_entry() -> None:
    assert signature.parameters(SEVERAL, "entry") == (
        Parameter("float", "A", True),
        Parameter("float", "B", True),
        Parameter("float", "C", True),
        Parameter("unsigned int", "M", False),
        Parameter("size_t", "N", False),
        Parameter("long long", "K", False),
        Parameter("float", "alpha", False),
    )
    assert [p.name for p in signature.parameters(SEVERAL, "helper")] == ["words", "n"]


@pytest.mark.parametrize("empty", ["()", "(void)", "( /* none */ )"])
def test_an_entry_may_take_nothing(empty: str) -> None:
    assert signature.parameters(f'extern "C" __global__ void entry{empty} {{}}', "entry") == ()


@pytest.mark.parametrize(
    ("source", "told", "line"),
    [
        ("\n\n__device__ void entry(int M) {}", "no entry `__global__ void entry(…)`", None),
        ('extern "C" __global__ void entries(int M) {}', "no entry", None),
        ('extern "C" __global__ void\nentry(int M', "cannot be parsed as CUDA C++", 1),
        ('extern "C" __global__ void entry(int) {}', "a parameter of type `int` has no name", 1),
        ('\nextern "C" __global__ void entry(float4 v) {}',
         "v has type `float4`; supported are int", 2),
    ],
)  # fmt: skip
def test_what_a_signature_lacks(source: str, told: str, line: int | None) -> None:
    with pytest.raises(SourceError, match=re.escape(told)) as refused:
        signature.parameters(source, "entry")
    assert refused.value.line == line


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
def test_a_parameter_takes_a_value_that_its_type_can_represent(
    kind: str, value: float, fits: bool
) -> None:
    assert signature.holds(kind, value) == fits


@pytest.mark.parametrize("kind", ["real", "::real", "ns::real", "typename Traits::inner::real"])
def test_a_type_is_known_by_its_name_in_any_namespace(kind: str) -> None:
    assert signature.resolved(kind, {"real": "other::number", "number": "float"}) == "float"


@given(st.floats(width=16, allow_nan=False, allow_infinity=False))
def test_the_bits_of_a_half_are_numpys(value: float) -> None:
    bits = signature.bits_of_16("__half", value)
    assert bits is not None
    assert np.uint16(bits).view(np.float16) == value


def test_kernels_in_one_block_of_c() -> None:
    kernels = "".join(f"__global__ void f{number}(float *a) {{}}\n" for number in range(2000))
    started = time.process_time()
    functions = signature.functions(
        f'extern "C" {{\n{kernels}}}\n__global__ void g(float *a) {{}}\n'
    )
    assert time.process_time() - started < 4
    assert [function.is_extern_c for function in functions] == [True] * 2000 + [False]
