"""Sources generated for CUDA: line numbers and the kernel's signature are preserved."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from support.golden import TableRegression
from support.nvcc import CompileError, compile_cubin, find_nvcc
from support.optional import present
from support.sources import PATH, kernel, lines_of_the_kernel

from matbench.bench import checks
from matbench.errors import CaseError
from matbench.kernelfile import catalogue, instrument
from matbench.kernelfile.syntax import without_comments
from matbench.model import CUDA_C, Kernel, LaunchRules, Parameter

FILES = [kernel for kernel in catalogue.builtin() if kernel.kind == CUDA_C]
PLAIN = 'extern "C" __global__ void mine(float *C, int N)\n{ }\n'
WRAPPED = [instrument.clocked_unit, instrument.staggered_unit]


@pytest.mark.parametrize("made", [instrument.plain_unit, *WRAPPED], ids=lambda made: made.__name__)
def test_every_line_stays_where_it_was(made: Callable[[Kernel], str]) -> None:
    for builtin in FILES:
        unit = made(msgspec.structs.replace(builtin, path=PATH))
        lines = [without_comments(line) for line in lines_of_the_kernel(unit)]
        source = without_comments(builtin.source).splitlines()
        changed = [
            was for was, now in zip(source, lines, strict=False) if was.split() != now.split()
        ]
        assert len(lines) >= len(source)
        assert all(re.search(rf"__\w+__|{builtin.entry}\(", line) for line in changed), builtin.name
        assert len(changed) <= (0 if made is instrument.plain_unit else 3)


def test_the_clocked_build_calls_the_kernel_with_its_own_arguments() -> None:
    unit = instrument.clocked_unit(kernel())
    assert "matbench_kernel(A, B, C, M, N, K, alpha);" in unit
    assert re.search(r"matbench_entry\(float \*A, .*long long K, float alpha, matbench_stamp", unit)


@pytest.mark.parametrize("path", ['we"ird.cu', "back\\slash.cu", "per%cent.cu", "naïve.cu"])
@pytest.mark.parametrize("made", [instrument.plain_unit, *WRAPPED], ids=lambda made: made.__name__)
def test_a_path_cannot_break_out_of_its_line(path: str, made: Callable[[Kernel], str]) -> None:
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    assert f'\n#line 1 "{quoted}"\n' in f"\n{made(kernel(path=path))}"


def test_tensor_maps_are_passed_by_value_and_on_by_reference() -> None:
    source = (
        'extern "C" __global__ void mine(const CUtensorMap __grid_constant__ map, float *C) { }\n'
    )
    mine = kernel(source, "mine")
    assert mine.parameters == (
        Parameter("CUtensorMap", "map", pointer=False),
        Parameter("float", "C", pointer=True),
    )
    unit = instrument.clocked_unit(mine)
    assert "void matbench_kernel(const CUtensorMap  &map, float *C)" in unit
    assert "(const CUtensorMap __attribute__((grid_constant)) map, float *C, " in unit


def test_a_wrapped_kernel_keeps_its_cluster() -> None:
    source = (
        'extern "C" __global__ void __cluster_dims__(1, 1, SPLITS) mine(float *C, int N)\n{ }\n'
    )
    unit = instrument.clocked_unit(kernel(source, "mine"))
    entry = "__attribute__((cluster_dims(1, 1, SPLITS))) void matbench_entry("
    assert f'extern "C" __global__ {entry}' in unit
    assert "__forceinline__ void  matbench_kernel(float *C, int N)" in unit
    plain = instrument.clocked_unit(
        kernel(source.replace("__cluster_dims__(1, 1, SPLITS) ", ""), "mine")
    )
    assert "cluster_dims(" not in plain


@pytest.mark.parametrize("bounds", ["384, 1", "32 * (BM / (WM + 1)) * 2"])
def test_a_wrapped_kernel_keeps_its_launch_bounds(bounds: str) -> None:
    source = (
        f'extern "C" __global__ void __launch_bounds__({bounds})\nmine(float *C, int N)\n{{ }}\n'
    )
    entry = f"__attribute__((launch_bounds({bounds}))) void matbench_entry("
    assert f'extern "C" __global__ {entry}' in instrument.clocked_unit(kernel(source, "mine"))
    other = instrument.clocked_unit(kernel(source.replace("mine", "other") + PLAIN, "mine"))
    assert "((launch_bounds(" not in other
    template = f"template <int X>\n{source}".replace('extern "C" ', "").replace(bounds, "2 * X")
    bound = msgspec.structs.replace(kernel(template, "mine"), entry="mine<TILE>")
    assert "((launch_bounds(2 * 8)))" in instrument.clocked_unit(bound, {"TILE": 8})


@pytest.mark.parametrize("block", [False, True])
def test_the_function_that_is_called_has_no_linkage_of_its_own(block: bool) -> None:
    """A kernel that other code uses too stays, and a copy of it is called."""
    text = "__global__ void mine(float *C, int N)\n{ }\n"
    text = f'extern "C" {{\n{text}}}\n' if block else f'extern "C" {text}'
    text = f'extern "C" __global__ void mine(float *C, int N);\n{text}'
    unit = instrument.clocked_unit(kernel(f"{text}void *used = (void *)mine;\n", "mine"))
    copy = present(re.search(r"^(.*)static __device__ __forceinline__ void ", unit, re.MULTILINE))
    assert not copy[1].endswith('extern "C" ')
    assert unit.count("{") == unit.count("}")


def test_a_path_of_any_bytes_makes_a_unit_that_can_be_stored() -> None:
    directive = instrument.line_directive("a\x1b]0;\udcff\r\u202eb.cu")
    assert directive == '#line 1 "a?]0;???b.cu"'
    assert directive.encode()


def told_apart(source: str) -> str:
    """Why a source is refused."""
    try:
        checks.builds(Kernel(name="mine", launch=LaunchRules((1,), (1,)), source=source))
    except CaseError as error:
        return error.reason
    return "taken"


def test_what_tells_builds_apart_is_found(table_regression: TableRegression) -> None:
    table_regression("apart.txt", told_apart)


@pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
@pytest.mark.parametrize("joined", ["matbench##_ns", "MATBENCH##_SPECIAL", "matbench##_kernel"])
@pytest.mark.parametrize("hides", [True, False])
def test_a_name_joined_from_parts_is_an_error(joined: str, hides: bool, tmp_path: Path) -> None:
    """Else a function of that name would tell the builds apart: only one hides matbench's own."""
    name = joined if hides else joined.replace("_", "_no_")
    text = f"#define JOIN(a, b) a##b\n__device__ int JOIN({name.replace('##', ', ')})(int a);\n"
    path = tmp_path / "mine.cu"
    path.write_text(instrument.plain_unit(kernel(text + PLAIN, "mine")))
    if hides:
        with pytest.raises(CompileError, match="poisoned"):
            compile_cubin(path, "sm_90")
    else:
        assert compile_cubin(path, "sm_90")
