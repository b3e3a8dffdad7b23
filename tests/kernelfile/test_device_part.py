"""What a kernel needs of its file, and what only CUDA can build."""

from __future__ import annotations

import random
import re
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sources
from support.golden import TableRegression
from support.kernels import text_of

from matbench.errors import MatbenchError
from matbench.kernelfile import (
    catalogue,
    device_part,
    front_matter,
    instrument,
    opencl_c,
    signature,
    sweep,
)
from matbench.kernelfile.device_part import NeedsCudaError
from matbench.kernelfile.syntax import without_comments
from matbench.model import CUDA_C, Included, Kernel, LaunchRules

SIGNATURE = "(const float *A, const float *B, float *C, int M, int N, int K)"


def part(body: str, before: str = "", bound: tuple[tuple[str, str], ...] = ()) -> str:
    """What is left of a kernel and of the code before it."""
    template = "template <typename T, int BM> " if bound else ""
    source = f"{before}\n{template}static __global__ void mine{SIGNATURE} {{ {body} }}"
    return " ".join(device_part.device_part(source, "mine", bound).split())


def test_the_arguments_of_a_template_take_the_place_of_its_parameters() -> None:
    body = "__shared__ T s[BM]; s[0] = T(BM); C[0] = static_cast<T>(s[0]);\n#pragma unroll BM\n"
    said = part(body, "", (("T", "float"), ("BM", "2 * 8")))
    assert "__shared__ float s[(2 * 8)]; s[0] = float((2 * 8)); " in said
    assert "C[0] = static_cast<float>(s[0]);" in said
    assert "#pragma unroll (2 * 8)" in said
    assert "template" not in said


def left(question: str) -> str:
    """What is left of code before a kernel, whose body may be the last line; or what needs CUDA."""
    lines = question.splitlines()
    body = lines.pop().strip("{}") if lines[-1].startswith("{") else ""
    try:
        kept = part(body, "\n".join(lines)).partition("__global__ void mine")[0].strip("; ")
        return kept or "nothing"
    except NeedsCudaError as error:
        return str(error)


def test_what_the_kernel_needs_is_kept(table_regression: TableRegression) -> None:
    """And nothing of what no kernel uses, or only the host can."""
    table_regression("parts.txt", left)


def test_the_users_headers_stay() -> None:
    source = f'#include "mine.h"\n#include "other.h"\n__global__ void mine{SIGNATURE} {{ }}'
    assert device_part.device_part(source, "mine", (), ("mine.h",)).startswith(
        '#include "mine.h"\n\n_'
    )


OF_LIBRARIES = text_of("of-libraries.cu")


def test_for_nvcc_only_what_other_libraries_need_is_left_out() -> None:
    """What CUDA and C++ have stays as it is, and lines keep their numbers."""
    source = f"{OF_LIBRARIES}template <int T> __global__ void mine() {{ half_of(own::X); }}\n"
    left = device_part.device_part(source, "mine", None)
    dropped = [1, 4, 5, 8, 10]
    for number, (before, after) in enumerate(
        zip(source.splitlines(), left.splitlines(), strict=True), 1
    ):
        assert after.strip(" ;") == ("" if number in dropped else before.strip(" ;")) or number == 1
    assert device_part.host_headers(source) == {"torch/extension.h": "1", "helper_cuda.h": "4"}
    assert device_part.host_headers(source, ["helper_cuda.h"]) == {"torch/extension.h": "1"}


def test_what_dropped_headers_declared_is_included_for_nvcc_and_lines_keep_their_numbers() -> None:
    source = f"#include <xla/ffi.h>\nusing T = half;\n__global__ void mine{SIGNATURE} {{ T x; }}\n"
    assert device_part.device_part(source, "mine", None).startswith(
        "#include <cuda_fp16.h>\nusing T"
    )
    wide = source.replace("{ T x;", "{ uint_least32_t x = FLT_MAX;")
    left = device_part.device_part(f"\n{wide}", "mine", None)
    for name in ("cuda_fp16.h", "cstdint", "cfloat"):
        assert f"\n#include <{name}>\n" in left
    assert "\n#line 3\n" in left
    assert left.count("#include") == 3


def test_headers_of_thrust_and_cub_are_there_for_nvcc_if_the_file_opens_them() -> None:
    """nvcc takes 15 seconds for such a header."""
    head = "#include <thrust/device_vector.h>\n#include <cub/cub.cuh>\nnamespace cb = cub;"
    for before, are_there in ((head, False), (f"{head}\nusing namespace cub;", True)):
        source = f"{before}\n__global__ void mine(float *C) {{ C[0] = 1; }}\n"
        assert ("cub/cub.cuh" in device_part.device_part(source, "mine", None)) == are_there


def test_a_type_of_16_bits_that_another_header_declares_needs_cuda() -> None:
    before = "#include <torch/extension.h>"
    with pytest.raises(NeedsCudaError, match=r"needs CUDA \(`half`, line 2\)"):
        part("T x = 1;", before, (("T", "half"),))
    assert "int half = 2;" in part("int half = 2;", before)


@pytest.mark.parametrize("entry", ["mine", "mine<4>"])
def test_a_file_without_headers_of_other_libraries_is_built_as_it_is(entry: str) -> None:
    common = "#include <cstdio>\n#include <stdint.h>\n#include <mma.h>\n#include <cuda/barrier>\n"
    template = "template <int T> " if "<" in entry else ""
    source = f"{common}int main() {{ }}\n{template}__global__ void mine{SIGNATURE} {{ }}\n"
    assert instrument.prepared(kernel(source, entry), has_libraries=False).source == source
    for header in ("<glog/logging.h>", '"gone.h"'):
        other = kernel(f"#include {header}\n{source}", entry)
        assert "main" not in instrument.prepared(other, has_libraries=False).source
        assert instrument.prepared(other, has_libraries=True).source == other.source
    own = kernel(f'#include "cuda_runtime.h"\n{source}', entry)
    assert instrument.prepared(own, has_libraries=False).source == own.source


def test_a_file_that_launches_is_built_without_its_host_code() -> None:
    """That may need an older CUDA. What conditions ask for stays defined."""
    chosen = "#define WIDE\n#define OTHER\n#ifdef WIDE\n#define STEP 4\n#endif\n"
    host = "int main() { mine<<<1, 1>>>(0, 0, 0); cudaThreadSynchronize(); }\n"
    source = f"{chosen}__global__ void mine{SIGNATURE} {{ C[0] = STEP; }}\n{host}"
    built = instrument.prepared(kernel(source, "mine"), has_libraries=False).source
    assert "#define WIDE" in built
    assert "#define STEP 4" in built
    assert "#define OTHER" not in built
    assert "main" not in built


def test_headers_of_cutlass_are_left_out_unless_they_are_there() -> None:
    source = '#include "cutlass/gemm/device/gemm.h"\n#include <cute/tensor.hpp>\n'
    assert [*device_part.host_headers(source)] == ["cutlass/gemm/device/gemm.h", "cute/tensor.hpp"]
    assert not device_part.host_headers(source, ["cutlass/gemm/device/gemm.h", "cute/tensor.hpp"])


def test_a_kernel_of_unpacked_parameters_is_built_without_its_launches() -> None:
    host = "int main() { float two = 2; mine<<<1, 1>>>(0, 0, 0, &two); }\n"
    source = f"__global__ void mine(float *A, float *B, float *C, const float *alpha) {{ }}\n{host}"
    table = {"args": ["A", "B", "C", "alpha"], "launch": {"block": [1], "grid": [1]}}
    own = front_matter.parse(source.encode(), "mine.cu", None, None, table)
    for has_libraries in (True, False):
        built = instrument.prepared(own, has_libraries=has_libraries).source
        assert "float alpha_value) { const float *alpha = &alpha_value;" in built
        assert "main" not in built


def test_a_header_beside_the_kernel_is_read_like_the_kernel(tmp_path: Path) -> None:
    header = tmp_path / "mine.h"
    host = "struct Timer { cudaEvent_t start; }; void check(std::string text);"
    guarded = "#ifndef MINE_H\n#define MINE_H\n#include <cuda_runtime.h>\n{}\n#endif\n"
    header.write_text(guarded.format(f"{host}\n__device__ int three() {{ return 3; }}"))
    (tmp_path / "mine.cu").write_text(
        f'#include "mine.h"\n__global__ void mine{SIGNATURE} {{ C[0] = three(); }}\n'
    )
    given = {"launch": {"block": [1], "grid": [1]}}
    text = opencl_c.unit(catalogue.load(tmp_path / "mine.cu", given=given), {}).text
    assert "return 3;" in text
    assert not any(word in text for word in ("cuda_runtime", "cudaEvent_t", "std::", "check"))
    for name in ("mine.h", "{what}.h"):  # braces in its name mean nothing
        (tmp_path / name).write_text(guarded.format("#include <cuda_bf16.h>"))
        text = (tmp_path / "mine.cu").read_text().replace("mine.h", name)
        (tmp_path / "mine.cu").write_text(text)
        refused = sweep.obstacle(catalogue.load(tmp_path / "mine.cu", given=given))
        assert refused == f"needs CUDA (cuda_bf16.h, line 4 of {name})"


def test_what_the_preprocessor_may_leave_out_is_its_own_matter() -> None:
    body = '\n#ifdef __CUDACC__\nasm volatile("exit;");\n#else\nC[0] = 1;\n#endif\n'
    assert "asm" in part(body)


def test_shared_memory_of_inner_scopes_lies_in_the_outermost() -> None:
    source = text_of("inner-scope.cu").replace("SIGNATURE", SIGNATURE)
    text = opencl_c.unit(kernel(source), {}).text.split('#line 1 "mine.cu"\n')[1]
    lines = text.splitlines()
    assert lines[3] == "    __shared__ float tile[4] [4]; for (int k = 0; k < K; ++k) {"
    assert lines[7].strip() == "tile[0][0] = A[k];"
    assert text.count("__shared__") == 1
    helper = "__device__ void f() { if (1) { __shared__ int x; } }\n" + source.replace(
        "k > 3", "f(), 1"
    )
    assert sweep.obstacle(kernel(helper)) == (
        "needs CUDA (`__shared__` in a device function, line 1)"
    )
    marked = sweep.obstacle(kernel(f'#line 7 "own.h"\n{helper}'))
    assert marked == "needs CUDA (`__shared__` in a device function, line 7 of own.h)"


def test_the_need_for_cuda_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(tmp_path / "cache"))
    source = f'__global__ void mine{SIGNATURE} {{ asm("exit;"); }}'
    includes = (Included("own.h", str(tmp_path / "own.h"), ""),)
    monkeypatch.setattr(opencl_c, "unit", translated := Mock(wraps=opencl_c.unit))

    def obstacle(kernel: Kernel) -> str | None:
        sweep._obstacle.cache_clear()  # as in a new process
        return sweep.obstacle(kernel)

    for _ in range(2):
        assert obstacle(kernel(source)) == "needs CUDA (inline PTX, line 1)"
        assert obstacle(kernel(source.replace('asm("exit;");', ""))) is None
    assert translated.call_count == 2
    for _ in range(2):  # a header may have changed since it was hashed
        obstacle(msgspec.structs.replace(kernel(source), includes=includes))
    assert translated.call_count == 4


def kernel(source: str, entry: str = "mine") -> Kernel:
    return Kernel(
        name="mine", launch=LaunchRules(block=(1,), grid=(1,)), entry=entry, source=source,
        path="mine.cu", is_extern_c=False,
    )  # fmt: skip


SOURCES = [each for each in catalogue.builtin() if each.source]
PIECES = ["{", "}", "(", ")", "<", ">", ";", "template <int X>", "#if", "#endif\n", "/*", '"', "'",
          "namespace", "static_cast<", "auto", "[&]", "::", "#define X(", "\\\n", "__shared__",
          "<<<", "R\"(", "?", "\u00e9", "operator", "enum {", "extern \"C\""]  # fmt: skip


@settings(deadline=10_000)
@given(st.integers(0, 2**32))
def test_a_mutated_source_is_read_or_refused_in_one_line(seed: int) -> None:
    """No traceback and no hang if lines are deleted, doubled or swapped, or words inserted."""
    chance = random.Random(seed)
    origin = chance.choice(SOURCES)
    text = origin.source
    for _ in range(chance.randint(1, 6)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice([0, 1, 1, 8, 60, 300]))
        text = text[:start] + chance.choice(["", *PIECES, text[start:end] * 2]) + text[end:]
    mutated = kernel(text, origin.entry)
    try:
        for found in signature.functions(text):
            assert found.line <= text.count("\n") + 1
        unit = opencl_c.unit(mutated, {}).text
    except MatbenchError as error:
        assert "\n" not in str(error)
    else:
        assert len(unit) > 100
    obstacle = sweep.obstacle(mutated)
    assert obstacle is None or obstacle.count("\n") == 0


# OpenCL C


#: Code that must be changed for OpenCL.
REWRITTEN = re.compile("global|__local|extern|ulong")
FILES = [
    kernel
    for kernel in catalogue.builtin()
    if kernel.kind == CUDA_C
    and not any(need == "cuda" or "sm_" in need for need in kernel.requires)
]


def lines_of_the_kernel(unit: str) -> list[str]:
    return sources.lines_of_the_kernel(unit, "mine.cu")


def test_a_file_is_built_once_wherever_it_is() -> None:
    assert opencl_c.unit(sources.kernel(path="mine.cu"), {}) == opencl_c.unit(
        sources.kernel(path=sources.PATH), {}
    )


@pytest.mark.parametrize("builtin", FILES, ids=lambda kernel: kernel.name)
def test_every_line_stays_where_it_was(builtin: Kernel) -> None:
    shown = msgspec.structs.replace(builtin, path=sources.PATH)
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
    unit = opencl_c.unit(sources.kernel(), {})
    body = "\n".join(lines_of_the_kernel(unit.text))
    assert unit.dynamic == ("float", "staged")
    assert "__global const float *__restrict__ A" in body
    assert "__global const float* B" in body
    assert "__global float C[]" in body
    assert "ulong N, long K, float alpha, __local float *staged" in " ".join(body.split())
    other = opencl_c.unit(msgspec.structs.replace(sources.kernel(), entry="helper"), {}).text
    assert "void helper(__global unsigned *words, ulong n)" in other
    assert "float twice(const float *x)" in body  # generic: it may get either
    assert "extern" not in body


def test_the_clocked_build_calls_the_kernel_with_its_own_arguments() -> None:
    unit = opencl_c.unit(sources.kernel(), {}, "now()").text
    assert "entry(A, B, C, M, N, K, alpha, staged);" in unit
    assert "__global ulong *matbench_stamps, __local float *staged)" in unit
    assert unit.startswith("#define MATBENCH_CLOCK now()\n")
    assert unit.count("= MATBENCH_CLOCK;") == 2
