"""CUDA C as OpenCL C: address spaces, shared memory, and preserved line numbers."""

from __future__ import annotations

import re

import msgspec
import pytest
from support.sources import PATH, kernel
from support.sources import lines_of_the_kernel as lines_of

from matbench.kernelfile import catalogue, opencl_c
from matbench.kernelfile.syntax import without_comments
from matbench.model import Kernel

#: Code that must be changed for OpenCL.
REWRITTEN = re.compile("global|__local|extern|ulong")
FILES = [
    kernel
    for kernel in catalogue.builtin()
    if not kernel.library and not any(need == "cuda" or "sm_" in need for need in kernel.requires)
]


def lines_of_the_kernel(unit: str) -> list[str]:
    return lines_of(unit, "mine.cu")


def test_a_file_is_built_once_wherever_it_is() -> None:
    assert opencl_c.unit(kernel(path="mine.cu"), {}) == opencl_c.unit(kernel(path=PATH), {})


@pytest.mark.parametrize("builtin", FILES, ids=lambda kernel: kernel.name)
def test_every_line_stays_where_it_was(builtin: Kernel) -> None:
    shown = msgspec.structs.replace(builtin, path=PATH)
    plain, clocked = opencl_c.unit(shown, {}), opencl_c.unit(shown, {}, "0")
    assert plain.dynamic == clocked.dynamic
    assert (plain.dynamic is not None) == ("extern __shared__" in builtin.source)
    header = re.compile(r'^#line 1 ("[^"]*\.cuh").*?^#line .*?\n', re.DOTALL | re.MULTILINE)
    for text in (plain.text, clocked.text):
        unit = header.sub(r"#include \1\n", text)  # it is in place of that line
        code = without_comments(builtin.source).splitlines()
        pairs = list(zip(code, lines_of_the_kernel(unit), strict=False))
        assert len(pairs) == len(code)
        unchanged = [was == now for was, now in pairs if not re.search(REWRITTEN, was + now)]
        assert len(unchanged) > 10
        assert all(unchanged)


def test_pointers_and_shared_memory_get_their_address_spaces() -> None:
    unit = opencl_c.unit(kernel(), {})
    body = "\n".join(lines_of_the_kernel(unit.text))
    assert unit.dynamic == ("float", "staged")
    assert "__global const float *__restrict__ A" in body
    assert "__global const float* B" in body
    assert "__global float C[]" in body
    assert "ulong N, long K, float alpha, __local float *staged" in " ".join(body.split())
    other = opencl_c.unit(msgspec.structs.replace(kernel(), entry="helper"), {}).text
    assert "void helper(__global unsigned *words, ulong n)" in other
    assert "float twice(const float *x)" in body  # generic: it may get either
    assert "extern" not in body


def test_the_clocked_build_calls_the_kernel_with_its_own_arguments() -> None:
    unit = opencl_c.unit(kernel(), {}, "now()").text
    assert "entry(A, B, C, M, N, K, alpha, staged);" in unit
    assert "__global ulong *matbench_stamps, __local float *staged)" in unit
    assert unit.count("= now();") == 2
