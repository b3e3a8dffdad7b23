"""C++ kernels through nvcc: the right code is found, in every build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.kernels import saved
from support.nvcc import find_nvcc

from matbench.backends import Variant
from matbench.backends.cuda import compilation
from matbench.errors import BuildError
from matbench.kernelfile import catalogue, sweep
from matbench.model import Resources

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc and a host compiler"),
]

VARIANTS: tuple[Variant, ...] = ("plain", "clocked")  # staggered is wrapped like clocked
TAKES = "(const T *A, const T *B, T *C, int M, int N, int K)"
BODY = """
{
    __shared__ T tile[SIDE];
    tile[threadIdx.x % SIDE] = A[threadIdx.x];
    __syncthreads();
    C[threadIdx.x] = tile[0] * B[0];
}
"""
ONE_LINE = " ".join(BODY.split())
TEMPLATE = "template <typename T, int SIDE> "
FLOATS = "using T = float; enum { SIDE = 8 };\n"
LAUNCHES = "int main() { mine<<<1, 1>>>(0, 0, 0, 1, 1, 1); }"
#: A file's contents and its entry; shared memory shows which code was found.
KERNELS: dict[str, tuple[str, str]] = {
    "no extern C": (f"{FLOATS}__global__ void mine{TAKES}{BODY}", "mine"),
    "static": (f"{FLOATS}static __global__ void mine{TAKES}{BODY}", "mine"),
    "a template that main instantiates too": (
        f"#include <cstdio>\n{TEMPLATE}__global__ void mine{TAKES}{BODY}"
        "int main() { mine<float, 16><<<1, 2>>>(0, 0, 0, 1, 1, 1); auto f = [] { return 3; };"
        'mine<double, 8><<<dim3(1), 2>>>(0, 0, 0, 1, 1, 1); return f() + printf(""); }',
        "mine<float, 2 * HALF>",
    ),
    "defaults and an expression": (
        "enum class Mode { a, b };\nnamespace n { namespace m {\n"
        "template <typename T = float, int SIDE = 4, Mode mode = Mode::b, bool ODD = SIDE % 2 == 1>"
        f"\n__global__ void __launch_bounds__(SIDE * 8) mine{TAKES}{BODY}}} }}",
        "n::m::mine<float, HALF + HALF>",
    ),
    "no name of its own": (
        f"namespace {{ {TEMPLATE}__global__ void mine{TAKES}{BODY} }}",
        "mine<float, 8>",
    ),
    "in a header": (
        '#include "mine.cuh"\nint main() { n::mine<float, 8><<<1, 1>>>(0, 0, 0, 1, 1, 1); }',
        "n::mine<float, 8>",
    ),
    "made by a macro": (
        f"{FLOATS}#define MAKE(name) __global__ void name{TAKES}{ONE_LINE}\nMAKE(mine)\n{LAUNCHES}",
        "mine",
    ),
    "a cluster": (
        "template <typename T, int SIDE, int BLOCKS> __global__ "
        f"void __cluster_dims__(BLOCKS, 1, 1)\nmine{TAKES}{BODY}",
        "mine<float, 8, HALF / 2>",
    ),
    "declared before, instantiated after": (
        f"{TEMPLATE}__global__ void mine{TAKES};\n{TEMPLATE}__global__ void mine{TAKES}{BODY}"
        f"template __global__ void mine<float, 8>{TAKES.replace('T ', 'float ')};",
        "mine<float, 8>",
    ),
    "one of several": (
        f"{FLOATS}__global__ void other(int *x) {{ *x = 1; }}\n"
        f'extern "C" __global__ void mine{TAKES}{BODY}\n{LAUNCHES}',
        "mine",
    ),
}
HEADER = f"#pragma once\nnamespace n {{ {TEMPLATE}__global__ void mine{TAKES}{BODY} }}"


def built(folder: Path, source: str, variant: Variant, **given: Any) -> tuple[str, Resources]:
    """The symbol of the entry and what ptxas says of it, for HALF = 4."""
    (folder / "mine.cuh").write_text(HEADER)
    path = saved(folder / "mine.cu", source)
    launch = {"block": [1], "grid": [1]}
    kernel = catalogue.load(path, given={"launch": launch, "sweep": {"HALF": [4]}, **given})
    [params] = sweep.parameter_sets(kernel, {})
    asked = compilation.request(kernel, params, variant, (9, 0))
    report = msgspec.msgpack.decode(compilation._through_nvcc(asked))[0].decode()
    symbol = compilation.lowered(report, asked.entry)
    return symbol, compilation.reported(report, symbol)


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        pytest.param(name, variant, marks=[pytest.mark.long] * ((at + of) % 2))
        for at, name in enumerate(KERNELS)
        for of, variant in enumerate(VARIANTS)
    ],
)
def test_the_code_that_is_meant_is_found(name: str, variant: Variant, tmp_path: Path) -> None:
    source, entry = KERNELS[name]
    symbol, resources = built(tmp_path, source, variant, entry=entry)
    assert resources.registers
    assert resources.static_shared_bytes == 8 * 4
    if variant == "plain":
        assert "mine" in compilation.demangled(symbol)
        assert "double" not in compilation.demangled(symbol)
    else:
        assert symbol == "matbench_entry"


def test_two_values_are_two_kernels(tmp_path: Path) -> None:
    """The control: other arguments lead to other code."""
    source, _ = KERNELS["a template that main instantiates too"]
    _, resources = built(tmp_path, source, "plain", entry="mine<float, 4 * HALF>")
    assert resources.static_shared_bytes == 16 * 4


def test_the_standard_is_passed_on(tmp_path: Path) -> None:
    source = f"template <auto SIDE> __global__ void mine{TAKES}{BODY}".replace("T ", "float ")
    assert built(tmp_path, source, "plain", entry="mine<8>", std="c++17")[1].registers
    with pytest.raises(BuildError, match="auto"):
        built(tmp_path, source, "plain", entry="mine<8>", std="c++14")


SPECIALISED = (
    f"using T = float;\ntemplate <int SIDE> __global__ void mine{TAKES}{BODY}\n"
    f"template <> __global__ void mine<4>{TAKES} {{ C[0] = 0; }}\n"
)


def test_a_specialised_template_is_only_built_as_it_is(tmp_path: Path) -> None:
    """The wrapper around it would be another kernel's code."""
    for entry in ("mine<4>", "mine<8>"):
        assert built(tmp_path, SPECIALISED, "plain", entry=entry)[1].registers
    for variant in ("clocked", "staggered"):
        with pytest.raises(BuildError, match="mine has template specialisations"):
            built(tmp_path, SPECIALISED, variant, entry="mine<8>")
    general = SPECIALISED.split("template <>")[0]
    assert built(tmp_path, general, "clocked", entry="mine<8>")[0] == "matbench_entry"


def test_a_template_that_does_not_exist_is_the_compilers_to_refuse(tmp_path: Path) -> None:
    source, _ = KERNELS["no name of its own"]
    with pytest.raises(BuildError, match=r"matbench_mark|mine"):
        built(tmp_path, source, "plain", entry="mine<float, NOWHERE>")


def test_what_is_no_symbol_stays_as_it_is() -> None:
    assert compilation.demangled("mine") == "mine"
    assert compilation.demangled("_Z4minei") == "mine(int)"
    assert compilation.lowered("", "mine") == "mine"
    with pytest.raises(BuildError, match="no code"):
        compilation.lowered("entry function 'mine'", "matbench_mark")
