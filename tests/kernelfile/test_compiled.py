"""PTX and cubins with a table: what their parameters are, and one line for each mistake."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import msgspec
import pytest
from support import compiled as files
from support.cli import Matbench, Refusal, last_run
from support.devices import GPU
from support.golden import TableRegression
from support.kernels import saved, text_of
from support.nvcc import find_nvcc
from support.optional import present

from matbench.backends.cuda import compilation
from matbench.cache import Cache
from matbench.errors import UsageError
from matbench.kernelfile import catalogue, sweep
from matbench.model import Kernel, Problem
from matbench.show.reasons import skip_reason

needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
COMPILED = [
    pytest.param("gemm.ptx", marks=needs_nvcc),
    pytest.param("gemm.cubin", marks=needs_nvcc),
]

#: A kernel with parameters of all kinds, and a second one.
PTX = text_of("every.ptx")
TYPES = [
    "float *", "float *", "float *", "int", "long long", "float", "double", "char", "short",
    "__half", "CUtensorMap",
]  # fmt: skip
ARGS = '["A", "B", "C", "N", "M", "alpha", "1.5", "1", "K", "0.5", "tensor_map(A, 8, 8)"]'


def ptx(tmp_path: Path, table: str, text: str = PTX) -> Path:
    path = saved(tmp_path / "all.ptx", text)
    path.with_suffix(".toml").write_text(table)
    return path


def types(kernel: Kernel) -> list[str]:
    return [f"{p.type} *" if p.pointer else p.type for p in kernel.parameters]


def test_ptx_says_the_sizes_of_parameters_and_the_table_their_types(tmp_path: Path) -> None:
    table = f'entry = "every"\nargs = {ARGS}\n{files.LAUNCH}'
    kernel = catalogue.load(ptx(tmp_path, table))
    assert types(kernel) == TYPES
    assert (kernel.name, kernel.entry, kernel.precision) == ("all.ptx", "every", "float32")
    assert kernel.requires == ("cuda", "sm_80")
    halves = catalogue.load(ptx(tmp_path, f'storage = "bfloat16"\nresult = "float64"\n{table}'))
    assert types(halves)[:3] == ["__nv_bfloat16 *", "__nv_bfloat16 *", "double *"]
    assert (types(halves)[9], halves.precision) == ("__nv_bfloat16", "bfloat16")


def test_what_a_parameter_takes_decides_where_the_file_does_not(tmp_path: Path) -> None:
    args = ARGS.replace('"N", "M"', '"2 * alpha", "workspace"')
    launch = f"{files.LAUNCH}workspace_bytes = 4\n"
    kernel = catalogue.load(ptx(tmp_path, f'entry = "every"\nargs = {args}\n{launch}'))
    assert types(kernel)[3:5] == ["int", "float *"]  # the file says that it is an integer


@needs_nvcc
def test_a_cubin_says_the_sizes_of_parameters_too(tmp_path: Path) -> None:
    source = (
        "#include <cuda.h>\n#include <cuda_fp16.h>\n"
        "__global__ void f(double x, const __grid_constant__ CUtensorMap map, bool b, short s,"
        " const __half *A, const __half *B, __half *C, __half h, float y, long long n, int *w)"
        " { C[n + s + b] = A[0] * B[0] * h; if (((const int *)&map)[n] > y * x) w[0] = 1; }\n"
    )
    path = files.make(tmp_path / "all.cubin", source)
    args = (
        '["1.5", "tensor_map(A, 8, 8)", "1", "K", "A", "B", "C", "0.5", "alpha", "N", "workspace"]'
    )
    launch = f"{files.LAUNCH}workspace_bytes = 4\n"
    path.with_suffix(".toml").write_text(f'precision = "float16"\nargs = {args}\n{launch}')
    kernel = catalogue.load(path)
    assert types(kernel) == [
        "double", "CUtensorMap", "char", "short", "__half *", "__half *", "__half *", "__half",
        "float", "long long", "float *",
    ]  # fmt: skip


@needs_nvcc
def test_a_large_struct_in_a_cubin_is_named(tmp_path: Path) -> None:
    source = (
        "struct Large { int at[1500]; };\n"
        "__global__ void f(float *A, Large large, float *C) { C[0] = A[large.at[threadIdx.x]]; }\n"
    )
    path = files.make(tmp_path / "all.cubin", source)
    path.with_suffix(".toml").write_text(f'args = ["A", "N", "C"]\n{files.LAUNCH}')
    with pytest.raises(UsageError, match="parameter 2 has 6000 bytes"):
        catalogue.load(path)


def test_storage_is_that_of_the_precision_or_the_workload(tmp_path: Path) -> None:
    table = f'entry = "every"\nargs = {ARGS}\n{files.LAUNCH}'
    for precision, element in (("float64", "double"), ("tf32", "float")):
        kernel = catalogue.load(ptx(tmp_path, f'precision = "{precision}"\n{table}'))
        assert types(kernel)[:3] == [f"{element} *"] * 3
        assert kernel.precision == precision
    text = PTX.replace("every_param_1", "every_param_1 )\n{ ret; }\n.entry rest(.param .u64 every")
    table = f'workload = "reverse"\nentry = "every"\nargs = ["A", "C"]\n{files.LAUNCH}'
    kernel = catalogue.load(ptx(tmp_path, table.replace(', "ceil_div(M, 16)"', ""), text))
    assert types(kernel) == ["int *", "int *"]


def test_mistakes_in_the_table_are_named(tmp_path: Path, table_regression: TableRegression) -> None:
    def said(table: str) -> str:
        with pytest.raises(UsageError) as error:
            catalogue.load(ptx(tmp_path, f"{table}\n{files.LAUNCH}"))
        return str(error.value).replace(f"{tmp_path}/", "")

    table_regression("tables-of-ptx.txt", said)


def test_a_struct_cannot_be_passed(tmp_path: Path) -> None:
    table = f'entry = "every"\nargs = {ARGS}\n{files.LAUNCH}'
    path = ptx(tmp_path, table, PTX.replace("map[128]", "map[24]"))
    with pytest.raises(UsageError, match="parameter 11 has 24 bytes; only numbers, pointers and"):
        catalogue.load(path)


def test_a_section_with_an_endless_name_is_refused(tmp_path: Path) -> None:
    start = b"\x7fELF\x02" + bytes(13) + b"\xbe\0" + bytes(20)
    header = start + struct.pack("<QI8x2H", 64, 0, 1, 0) + struct.pack("<I20x2Q24x", 0, 128, 0)
    path = tmp_path / "a.cubin"
    path.write_bytes(header + b".nv.constant0." + b"a" * 5000 + b"\0")
    with pytest.raises(UsageError, match="not a cubin: it is damaged or incomplete"):
        catalogue.load(path)


@needs_nvcc
def test_an_incomplete_cubin_is_refused(tmp_path: Path) -> None:
    path = files.make(tmp_path / "gemm.cubin")
    data = path.read_bytes()
    for cut in range(0, len(data) * 3 // 4, len(data) // 40):
        path.write_bytes(data[:cut])
        with pytest.raises(UsageError):
            catalogue.load(path)


@pytest.mark.parametrize("name", COMPILED)
def test_lines_to_paste(tmp_path: Path, matbench: Matbench, refusal: Refusal, name: str) -> None:
    path = files.make(tmp_path / name)
    path.with_suffix(".toml").unlink()
    message = matbench("run", path, code=2).stderr
    assert f"{path}: front matter is missing (args, block, grid). Write gemm.toml:" in message
    assert '"A", "B", ' in message
    assert "block = [16, 16]" in message
    assert "Write gemm.toml:" in matbench("run", "--adopt", path, code=2).stderr
    assert f"{path}: compiled; adopt reads CUDA C++, so write " in refusal("adopt", path)


@pytest.mark.parametrize("name", COMPILED)
def test_without_cuda_it_is_skipped(tmp_path: Path, matbench: Matbench, name: str) -> None:
    path = files.make(tmp_path / name)
    matbench("run", path, "--backend", "opencl", "--sizes", "64", code=1)
    [outcome] = last_run()
    assert outcome.status == "skipped"
    assert skip_reason(present(outcome.skip)) == "needs CUDA; this is opencl"


@needs_nvcc
def test_another_architecture_is_named(tmp_path: Path, table_regression: TableRegression) -> None:
    def said(question: str) -> str:
        """Of a file for an architecture, on a GPU of another."""
        name, arch, capability = question.split()
        kernel = catalogue.load(files.make(tmp_path / name, arch=arch))
        major, minor = map(int, capability.split("."))
        device = msgspec.structs.replace(GPU, compute_capability=(major, minor))
        skip = sweep.case(kernel, Problem(64, 64, 64), {}, device).skip
        return skip_reason(skip) if skip else "it runs"

    table_regression("architectures.txt", said)


@needs_nvcc
@pytest.mark.parametrize("form", ["ptx", "cubin"])
def test_its_variables_are_known(tmp_path: Path, form: str) -> None:
    path = files.make(tmp_path / f"gemm.{form}", files.COUNTING)
    build = compilation.compiled(catalogue.load(path), {}, "plain", (9, 0), Cache())
    assert build.variable_bytes == 8
    assert build.entry == "gemm"


@needs_nvcc
def test_what_ptxas_refuses_has_its_line(tmp_path: Path, matbench: Matbench) -> None:
    path = files.make(tmp_path / "gemm.ptx")
    path.write_text(path.read_text().replace("fma.rn", "fused.rn"))
    output = matbench("explain", path, "--arch", "sm_90", "--sizes", "64", code=None)
    assert f"ptxas {path}, line " in output.stderr
    assert "Not a name of any known instruction: 'fused'" in output.stderr


@pytest.mark.parametrize("name", COMPILED)
def test_machine_code_is_explained(tmp_path: Path, matbench: Matbench, name: str) -> None:
    path = files.make(tmp_path / name)
    output = matbench("explain", path, "--arch", "sm_90", "--sizes", "64", code=None).stdout
    assert "machine code: sm_90\n" in output
    assert re.search("derived loads +524,288  elements: in the machine code", output)


@pytest.mark.parametrize("name", COMPILED)
def test_what_needs_a_source_says_so(tmp_path: Path, refusal: Refusal, name: str) -> None:
    path = files.make(tmp_path / name)
    assert f"{name} is a compiled kernel; its blocks cannot be timed" in refusal("blocks", path)
