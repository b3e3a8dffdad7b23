"""The entry of a table: functions, templates, namespaces, and the use of constants."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kernels import text_of
from support.optional import present

from matbench.errors import UsageError
from matbench.kernelfile import catalogue, signature
from matbench.kernelfile.signature import Entry
from matbench.model import Kernel

LAUNCH = {"block": [16, 16], "grid": ["ceil_div(N, 16)", "ceil_div(M, 16)"]}
FUNCTIONS = text_of("functions.cu")


def load(folder: Path, source: str, **given: object) -> Kernel:
    path = folder / "mine.cuh"
    path.write_text(source)
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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mine", Entry("mine", ())),
        ("::ns::mine", Entry("ns::mine", ())),
        ("mine< 128, BN >", Entry("mine", ("128", "BN"))),
        ("a::b<float, 2 * (BM + 1), true>", Entry("a::b", ("float", "2 * (BM + 1)", "true"))),
        ("a::b<ns::T<3>>", Entry("a::b", ("ns::T<3>",))),
        ("mine<3", None),
        ("mine(3)", None),
        ("mine<3>; int x", None),
        ('mine<"\\n">', None),
        ("", None),
    ],
)
def test_what_an_entry_says(text: str, found: Entry | None) -> None:
    assert signature.entry_named(text) == found


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
    swept = SGEMM.replace("typename T, ", "").replace("T *", "float *")
    kernel = load(tmp_path, swept, sweep={"SIDE": [4]})
    assert kernel.entry == "sgemm<SIDE>"
    with pytest.raises(
        UsageError, match=r'several kernels, sgemm \(line 1\), .*as in entry = "sgemm"'
    ):
        load(tmp_path, plain + plain.replace("sgemm", "other"))
    with pytest.raises(UsageError, match=r"no entry .*void gemm\(…\)`; the file has sgemm, other"):
        load(tmp_path, plain + plain.replace("sgemm", "other"), entry="gemm")


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
    with pytest.raises(UsageError, match="include_dirs 'nowhere': no such folder"):
        load(tmp_path, source, entry="sgemm<3>", include_dirs=["nowhere"])
    with pytest.raises(UsageError, match=r"`std`: unknown value 'c\+\+98'; known: c\+\+11"):
        load(tmp_path, source, entry="sgemm<3>", std="c++98", include_dirs=["inc"])
