"""Reading and rewriting CUDA C: the right signature, and every line where it was."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matbench.kernelfile import catalogue, cuda_c
from matbench.kernelfile.cuda_c import SourceError
from matbench.model import Kernel, Parameter

FILES = [kernel for kernel in catalogue.builtin() if kernel.source]
PATH = "folder/mine.cu"

SEVERAL = """
__device__ float twice(const float *x) { return 2 * *x; }
/* extern "C" __global__ void
   entry(int *not_this_one) */
extern "C" __global__ void helper(unsigned *words, size_t n) { words[n] = 1; }

extern "C" __global__
void entry(const float *__restrict__ A,   // the left one
           const float* B, float C[],
           const unsigned int M, size_t N, long long K, float alpha)
{
    extern __shared__ float staged[];
    staged[0] = twice(A);
}
"""


def lines_of_the_kernel(unit: str, path: str) -> list[str]:
    """What follows `#line 1 "path"`: the compiler counts these."""
    _, body = unit.split(f'#line 1 "{path}"\n')
    return body.splitlines()


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
    assert cuda_c.without_comments(source) == code


@given(st.text(alphabet='/*"\\\n ab', max_size=80))
def test_blanking_moves_nothing(source: str) -> None:
    code = cuda_c.without_comments(source)
    assert len(code) == len(source)
    for was, now in zip(source, code, strict=True):
        assert now == was or (now == " " and was != "\n")


# -- the signature -------------------------------------------------------------------------------


def test_the_parameters_of_the_entry() -> None:
    assert cuda_c.parameters(SEVERAL, "entry") == (
        Parameter("float", "A", True),
        Parameter("float", "B", True),
        Parameter("float", "C", True),
        Parameter("unsigned int", "M", False),
        Parameter("size_t", "N", False),
        Parameter("long long", "K", False),
        Parameter("float", "alpha", False),
    )
    assert [p.name for p in cuda_c.parameters(SEVERAL, "helper")] == ["words", "n"]


@pytest.mark.parametrize("empty", ["()", "(void)", "( /* none */ )"])
def test_an_entry_may_take_nothing(empty: str) -> None:
    assert cuda_c.parameters(f'extern "C" __global__ void entry{empty} {{}}', "entry") == ()


@pytest.mark.parametrize(
    ("source", "told", "line"),
    [
        ("\n__global__ void entry(int M) {}", 'entry entry must be declared `extern "C"`', 2),
        ("\n\n__device__ void entry(int M) {}", "no entry `__global__ void entry(…)`", None),
        ('extern "C" __global__ void entries(int M) {}', "no entry", None),
        ('extern "C" __global__ void\nentry(int M', "the parameter list of entry is not closed", 2),
        ('extern "C" __global__ void entry(int) {}', "parameter `int` has no name", 1),
        ('extern "C" __global__ void entry(int M,) {}', "parameter `` has no name", 1),
        ('\nextern "C" __global__ void entry(float4 v) {}', "v is a `float4`; known are int", 2),
    ],
)
def test_what_a_signature_lacks(source: str, told: str, line: int | None) -> None:
    with pytest.raises(SourceError, match=re.escape(told)) as refused:
        cuda_c.parameters(source, "entry")
    assert refused.value.line == line


# -- what is compiled ----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", FILES, ids=lambda kernel: kernel.name)
def test_every_line_stays_where_it_was(kernel: Kernel) -> None:
    source = kernel.source.splitlines()
    entry, parameters = kernel.entry, kernel.parameters
    assert lines_of_the_kernel(cuda_c.cuda_unit(kernel.source, PATH), PATH)[: len(source)] == source
    for wrapped in (cuda_c.cuda_clocked_unit, cuda_c.cuda_staggered_unit):
        unit = wrapped(kernel.source, PATH, entry, parameters)
        assert lines_of_the_kernel(unit, PATH)[: len(source)] == source

    plain, dynamic = cuda_c.opencl_unit(kernel.source, PATH, entry)
    clocked, also_dynamic = cuda_c.opencl_clocked_unit(kernel.source, PATH, entry, parameters, "0")
    assert dynamic == also_dynamic == ("extern __shared__" in kernel.source)
    for unit in (plain, clocked):
        code = cuda_c.without_comments(kernel.source).splitlines()
        pairs = list(zip(code, lines_of_the_kernel(unit, PATH), strict=False))
        assert len(pairs) == len(code)
        unchanged = [
            was == now for was, now in pairs if not re.search("__global|__local|extern", was + now)
        ]
        assert len(unchanged) > 10
        assert all(unchanged)


def test_pointers_and_shared_memory_get_their_address_spaces() -> None:
    unit, dynamic = cuda_c.opencl_unit(SEVERAL, PATH, "entry")
    body = "\n".join(lines_of_the_kernel(unit, PATH))
    assert dynamic
    assert "__global const float *__restrict__ A" in body
    assert "__global const float* B" in body
    assert "__global float C[]" in body
    assert "ulong N, long K, float alpha, __local float *staged" in " ".join(body.split())
    assert "void helper(__global unsigned *words, ulong n)" in body
    assert "float twice(const float *x)" in body  # generic: it may get either
    assert "extern" not in body


def test_the_clocked_build_calls_the_kernel_with_its_own_arguments() -> None:
    parameters = cuda_c.parameters(SEVERAL, "entry")
    unit = cuda_c.cuda_clocked_unit(SEVERAL, PATH, "entry", parameters)
    assert "entry(A, B, C, M, N, K, alpha);" in unit
    assert re.search(r"matbench_entry\(float \*A, .*long long K, float alpha, matbench_stamp", unit)
    unit, _ = cuda_c.opencl_clocked_unit(SEVERAL, PATH, "entry", parameters, "now()")
    assert "entry(A, B, C, M, N, K, alpha, staged);" in unit
    assert unit.count("= now();") == 2


@pytest.mark.parametrize("path", ['we"ird.cu', "back\\slash.cu", "per%cent.cu", "naïve.cu"])
def test_a_path_cannot_break_out_of_its_line(path: str) -> None:
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    parameters = cuda_c.parameters(SEVERAL, "entry")
    for unit in (
        cuda_c.cuda_unit(SEVERAL, path),
        cuda_c.cuda_clocked_unit(SEVERAL, path, "entry", parameters),
        cuda_c.cuda_staggered_unit(SEVERAL, path, "entry", parameters),
        cuda_c.opencl_unit(SEVERAL, path, "entry")[0],
        cuda_c.opencl_clocked_unit(SEVERAL, path, "entry", parameters, "0")[0],
    ):
        assert f'\n#line 1 "{quoted}"\n' in f"\n{unit}"


def test_tensor_maps_are_passed_by_value_and_on_by_reference() -> None:
    source = (
        'extern "C" __global__ void mine(const CUtensorMap __grid_constant__ map, float *C) { }\n'
    )
    parameters = cuda_c.parameters(source, "mine")
    assert parameters == (
        Parameter("CUtensorMap", "map", pointer=False),
        Parameter("float", "C", pointer=True),
    )
    for wrap in (cuda_c.cuda_clocked_unit, cuda_c.cuda_staggered_unit):
        unit = wrap(source, "mine.cu", "mine", parameters)
        assert unit.index("#define __grid_constant__ &\n") < unit.index(source)
        assert "(const CUtensorMap __attribute__((grid_constant)) map, float *C, " in unit


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
    assert cuda_c.tensor_map(text) == described


def test_a_wrapped_kernel_keeps_its_cluster() -> None:
    source = (
        'extern "C" __global__ void __cluster_dims__(1, 1, SPLITS) mine(float *C, int N)\n{ }\n'
    )
    parameters = cuda_c.parameters(source, "mine")
    for wrap in (cuda_c.cuda_clocked_unit, cuda_c.cuda_staggered_unit):
        unit = wrap(source, "mine.cu", "mine", parameters)
        entry = "__attribute__((cluster_dims(1, 1, SPLITS))) void matbench_entry("
        assert f'extern "C" __global__ {entry}' in unit
        assert unit.index("#define __cluster_dims__(...)") < unit.index(source)
        plain = wrap(source.replace("__cluster_dims__(1, 1, SPLITS) ", ""), "", "mine", parameters)
        assert "cluster_dims(" not in plain
