"""Parsing CUDA C: comments, the entry and its parameters, tensor maps."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import QUICK, Matbench, last_run
from support.golden import TableRegression
from support.kernels import saved, text_of
from support.optional import present

from matbench.errors import UsageError
from matbench.kernelfile import catalogue, expressions, signature, sweep, syntax
from matbench.kernelfile.unpacking import unpacked
from matbench.model import Kernel

# -- comments ------------------------------------------------------------------------------------


def test_comments_are_blanked_in_their_place(table_regression: TableRegression) -> None:
    def code(source: str) -> str:
        return f"{syntax.without_comments(source)}."  # to the end of the line

    table_regression("comments.txt", code)


@given(st.text(alphabet='/*"\\\n ab', max_size=80))
def test_blanking_moves_nothing(source: str) -> None:
    code = syntax.without_comments(source)
    assert len(code) == len(source)
    for was, now in zip(source, code, strict=True):
        assert now == was or (now == " " and was != "\n")


# -- the signature -------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", ["()", "(void)", "( /* none */ )"])
def test_an_entry_may_take_nothing(empty: str) -> None:
    [entry] = signature.functions(f'extern "C" __global__ void entry{empty} {{}}')
    assert entry.parameters == ()


#: What a text says, by the word before it.
SAYS: dict[str, Callable[[str], Any]] = {
    "map": expressions.tensor_map,
    "entry": signature.entry_named,
    "fits": lambda text: sweep.holds(text.split()[0], float(text.split()[1])),
    "type": lambda text: signature.resolved(text, {"real": "other::number", "number": "float"}),
}


def test_what_a_text_says(table_regression: TableRegression) -> None:
    """Of a tensor map, an entry, a number that a type can hold, and a type in any namespace."""

    def said(question: str) -> str:
        how, _, text = question.partition(" ")
        return str(SAYS[how](text))

    table_regression("texts.txt", said)


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


def test_parameters_are_unpacked(table_regression: TableRegression) -> None:
    """Those that only a struct, a pointer to a number or an array holds; others stay."""

    def said(source: str) -> str:
        result = unpacked(source)
        assert len(signature.functions(result)) == len(signature.functions(source))
        return "the same" if result == source else result

    table_regression("unpacked.txt", said)


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
    source = text_of("host.cpp")
    assert [one.name for one in signature.host_functions(source)] == ["plain", "space::inner"]


# Entries


LAUNCH = {"block": [16, 16], "grid": ["ceil_div(N, 16)", "ceil_div(M, 16)"]}
FUNCTIONS = text_of("functions.cu")


def load(folder: Path, source: str, **given: object) -> Kernel:
    path = saved(folder / "mine.cuh", source)
    return catalogue.load(path, given={"launch": LAUNCH, **given})


def test_every_kernel_of_a_source_is_found() -> None:
    found = signature.functions(FUNCTIONS)
    assert [each.name for each in found] == ["first", "outer::second", "third", "fourth"]
    assert [each.is_extern_c for each in found] == [True, False, True, False]
    assert [each.launch_bounds for each in found] == ["256", "(BM * 2)", None, None]
    assert [each.line for each in found] == [7, 11, 14, 15]
    first, second, third, fourth = found
    assert [(p.type, p.name, p.pointer) for p in first.parameters] == [
        ("CUtensorMap", "map", False), ("float", "A", True), ("float", "B", True),
        ("int", "n", False),
    ]  # fmt: skip
    assert [(p.kind, p.name, p.default) for p in second.template] == [
        ("typename", "T", "float"), ("int", "BM", "64"), ("bool", "ODD", "(3 > 2)"),
        ("typename", "U", None),
    ]  # fmt: skip
    assert [p.type for p in second.parameters] == ["T", "T", "size_t"]
    assert [p.type for p in third.parameters] == ["unsigned long long", "int"]
    assert [(p.type, p.pointer) for p in fourth.parameters] == [("double", True), ("int", False)]


def test_values_take_the_place_of_constants() -> None:
    found = present(signature.entry_named("ns::mine<BM, 2 * BN, x.BM, float>"))
    assert signature.written(found, {"BM": 8, "BN": 4}) == "ns::mine<8, 2 * 4, x.BM, float>"


SGEMM = """template <typename T, const int SIDE>
__global__ void sgemm(const T *A, const T *B, T *C, int M, int N, int K) { }
"""


def test_the_types_of_a_template_are_those_of_the_entry(tmp_path: Path) -> None:
    kernel = load(tmp_path, SGEMM, entry="sgemm<float, SIDE>", sweep={"SIDE": [8, 16]})
    assert [p.type for p in kernel.parameters][:3] == ["float"] * 3
    assert not kernel.is_extern_c
    assert signature.macros(kernel, {"SIDE": 8}) == {}  # -DSIDE=8 would break `const int SIDE`
    assert signature.macros(kernel, {"OTHER": 8}) == {"OTHER": 8}


def test_a_constant_that_only_tune_names_has_a_value_for_a_template(tmp_path: Path) -> None:
    kernel = load(tmp_path, SGEMM, entry="sgemm<float, SIDE>", tune={"SIDE": [8, 16]})
    assert kernel.sweep == {"SIDE": (8,)}


def test_the_only_kernel_is_the_entry_whatever_it_is_called(tmp_path: Path) -> None:
    plain = SGEMM.split("\n", 1)[1].replace("T *", "float *")
    kernel = load(tmp_path, f"namespace ns {{ {plain} }}")
    assert (kernel.name, kernel.entry, kernel.summary) == ("mine", "ns::sgemm", "")
    swept = SGEMM.replace("typename T, ", "").replace("T *", "float *").replace("E>", "E = 2>")
    kernel = load(tmp_path, swept, sweep={"SIDE": [4]})
    assert kernel.entry == "sgemm<SIDE>"
    two = plain + plain.replace("sgemm", "other")
    with pytest.raises(UsageError, match=r'several kernels, sgemm .*, as in entry = "sgemm"'):
        load(tmp_path, two)
    with pytest.raises(UsageError, match="the file has sgemm, other"):
        load(tmp_path, two, entry="gemm")


def test_a_kernel_may_be_in_a_header_and_its_types_too(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "types.h").write_text("#pragma once\nusing real = float;\n")
    (tmp_path / "kernel.cuh").write_text(
        "#include <types.h>\n" + SGEMM.replace("typename T, ", "").replace("T *", "real *")
    )
    source = '#include "kernel.cuh"\nint main() { }\n'
    kernel = load(tmp_path, source, entry="sgemm<3>", include_dirs=["inc"])
    assert [p.type for p in kernel.parameters][:3] == ["float"] * 3
    assert {each.name for each in kernel.includes} == {"kernel.cuh", "types.h"}
    before = kernel.sha256
    (tmp_path / "inc" / "types.h").write_text("using real = float; // changed\n")
    assert load(tmp_path, source, entry="sgemm<3>", include_dirs=["inc"]).sha256 != before
