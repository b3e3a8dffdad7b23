"""Compiling with nvcc, without a GPU: finding it, caching until something changes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.kernels import KernelWriter, kernel_text
from support.nvcc import find_nvcc

from matbench import backends
from matbench.backends import UnavailableError
from matbench.backends.cuda import compilation
from matbench.cache import Cache
from matbench.errors import BuildError
from matbench.kernelfile import catalogue
from matbench.model import Kernel, Resources

SM_90 = (9, 0)
TILE = {"TILE": 8}
INCLUDED = [
    '#include "amount.h"',
    '#define H "amount.h"\n#include H',
    '#if __CUDA_ARCH__ >= 900\n#include "amount.h"\n#endif',
    "#define STRING(x) #x\n#define NAME(t) STRING(tile##t.h)\n#define OF(t) NAME(t)\n"
    "#include OF(TILE)",
]
SPELT_OTHERWISE = [
    "#include <amount.h>",
    '/* first */ #include "amount.h"',
    '#\\\ninclude "amount.h"',
]
OTHERWISE = [*INCLUDED[2:], *SPELT_OTHERWISE]
WITH_HEADER = """
#include "amount.h"
extern "C" __global__ void ENTRY(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float sums[AMOUNT];
    sums[threadIdx.x % AMOUNT] = A[threadIdx.x];
    __syncthreads();
    C[threadIdx.x] = sums[(threadIdx.x + 1) % AMOUNT];
}
"""

NVCC = find_nvcc()
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="needs nvcc and g++")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def with_header(write_kernel: KernelWriter) -> Kernel:
    path = write_kernel("headed", body=WITH_HEADER)
    (path.parent / "amount.h").write_text("#define AMOUNT 64\n")
    return catalogue.load(path)


def tiled() -> Kernel:
    [kernel] = [kernel for kernel in catalogue.builtin() if kernel.name == "tiled"]
    return kernel


# -- finding nvcc --------------------------------------------------------------------------------


@pytest.fixture
def find(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A search for nvcc on a machine without toolkit or wheels."""
    for name in ("CUDA_HOME", "CUDA_PATH", "NVCC_CCBIN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = os.access
    outside = lambda path, mode: str(path).startswith(str(tmp_path)) and found(path, mode)  # noqa: E731
    monkeypatch.setattr(os, "access", outside)
    return compilation.nvcc.__wrapped__


def program(path: Path, says: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_no_nvcc_is_said(find: Any) -> None:
    with pytest.raises(UnavailableError, match="nvcc is missing; put the bin folder of"):
        find()


def test_nvcc_of_a_toolkit_or_of_wheels_is_found(
    find: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = "Cuda compilation tools, release 13.0, V13.0.88"
    program(tmp_path / "g++")
    wheels = program(tmp_path / "site" / "nvidia" / "cu13" / "bin" / "nvcc", says)
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert find() == (str(wheels), "13.0.88")
    toolkit = program(tmp_path / "toolkit" / "bin" / "nvcc", "something else")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    assert find() == (str(toolkit), "unknown")


def test_no_host_compiler_is_said(find: Any, tmp_path: Path) -> None:
    program(tmp_path / "nvcc")
    with pytest.raises(UnavailableError, match=r"nvcc needs a host compiler; install g\+\+"):
        find()


# -- nvcc's options ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requires", "capability", "architecture"),
    [
        ((), (9, 0), "90"),
        (("sm_80",), (9, 0), "90"),
        (("cuda", "sm_90a"), (9, 0), "90a"),
        (("sm_90a",), (10, 0), "100"),
        (("sm_100f",), (10, 3), "100f"),
    ],
)
def test_a_kernel_is_compiled_for_the_architecture_it_requires(
    requires: tuple[str, ...], capability: tuple[int, int], architecture: str
) -> None:
    kernel = Kernel("mine", "", tiled().launch, requires=requires)
    asked = compilation.request(kernel, {}, "plain", capability)
    assert asked.virtual_and_real == (f"compute_{architecture}", f"sm_{architecture}")


# -- machine code and what ptxas reports ---------------------------------------------------------


@needs_nvcc
def test_registers_are_known_without_gpu_and_pycuda(cache: Cache, temporary: Path) -> None:
    found = backends.compiled_resources(SM_90, tiled(), TILE, cache)
    assert found is not None
    assert found.registers
    assert found == Resources(found.registers, 2 * 8 * 8 * 4, spilled_bytes=0)
    assert backends.compiled_resources((6, 1), tiled(), TILE, cache) is None
    assert not list(temporary.iterdir())


@needs_nvcc
def test_an_error_is_shown_with_its_line(cache: Cache, write_kernel: KernelWriter) -> None:
    path = write_kernel(body=kernel_text().replace("sum += ", "summ += "))
    line = next(n for n, one in enumerate(path.read_text().splitlines(), 1) if "summ +=" in one)
    with pytest.raises(BuildError) as refused:
        backends.compiled_resources(SM_90, catalogue.load(path), TILE, cache)
    message, source, caret = refused.value.reason.splitlines()
    assert message == f'{path}({line}): error: identifier "summ" is undefined'
    assert source.lstrip().startswith("summ += A[")
    assert caret.index("^") == source.index("summ")


def use_nvcc(monkeypatch: pytest.MonkeyPatch, path: Path, script: str) -> None:
    """Compile with a shell script instead of nvcc; it reports the real nvcc's version."""
    release = compilation.nvcc().release
    program(path)
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec "{NVCC}" "$1"\n{script}\n')
    monkeypatch.setattr(compilation, "nvcc", lambda: compilation.Nvcc(str(path), release))


def compiled(
    kernel: Kernel, cache: Cache, variant: backends.Variant = "plain"
) -> compilation.Compiled:
    return compilation.compiled(kernel, TILE, variant, SM_90, cache)


@needs_nvcc
def test_code_is_used_again_without_nvcc(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compiled(tiled(), cache)
    assert first.cubin.startswith(b"\x7fELF")
    assert first.given == Resources(first.given.registers, 512, spilled_bytes=0)
    use_nvcc(monkeypatch, tmp_path / "nvcc", 'echo "this nvcc compiles nothing: error"; exit 1')
    assert compiled(tiled(), cache) == first
    with pytest.raises(BuildError, match="this nvcc compiles nothing"):
        compiled(tiled(), cache, "clocked")


@needs_nvcc
def test_nvcc_runs_again_if_anything_has_changed(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    list_gpus = f'[ "$1" = --list-gpu-arch ] && exec "{NVCC}" "$1"'
    use_nvcc(monkeypatch, tmp_path / "nvcc", f"{list_gpus}\n: > made.cubin; echo >> {log}")

    def runs(capability: tuple[int, int] = SM_90, tile: int = 8, **change: Any) -> int:
        """How often it has run, with a build of `tiled` that is changed like this."""
        kernel = msgspec.structs.replace(tiled(), **change)
        backends.compiled_resources(capability, kernel, {"TILE": tile}, cache)
        return len(log.read_text())

    changes: list[dict[str, Any]] = [
        {}, {"capability": (8, 0)}, {"tile": 16}, {"std": "c++17"}, {"source": tiled().source * 2},
    ]  # fmt: skip
    assert [runs(**change) for change in changes * 2] == [1, 2, 3, 4, 5, *[5] * 5]
    variables = (
        "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CPATH", "C_INCLUDE_PATH",
        "CPLUS_INCLUDE_PATH",
    )  # fmt: skip
    for count, name in enumerate(variables, 6):
        with monkeypatch.context() as patch:
            patch.setenv(name, "another")
            assert runs() == count, name
    other = compilation.nvcc()._replace(release="another")
    monkeypatch.setattr(compilation, "nvcc", lambda: other)
    assert runs() == 12


def shared_bytes_of(kernel: Kernel, cache: Cache) -> int | None:
    """Four times the value that the kernel uses for AMOUNT."""
    return compiled(kernel, cache).given.static_shared_bytes


@needs_nvcc
@pytest.mark.parametrize(
    "lines", [*INCLUDED[:2], *(pytest.param(way, marks=pytest.mark.long) for way in OTHERWISE)]
)
def test_a_changed_header_is_seen(lines: str, cache: Cache, write_kernel: KernelWriter) -> None:
    path = write_kernel("headed", body=WITH_HEADER.replace('#include "amount.h"', lines))
    kernel = catalogue.load(path)
    path.with_name("tile8.h").write_text('#include "amount.h"\n')
    for amount in (64, 96):
        path.with_name("amount.h").write_text(f"#define AMOUNT {amount}\n")
        assert shared_bytes_of(kernel, cache) == amount * 4
        assert shared_bytes_of(catalogue.load(path), cache) == amount * 4
    # Where a macro names the header, only the compiler knows which it is, so nothing is kept.
    assert cache.size_bytes() == 0 if "#define" in lines else len(list(cache.folder.iterdir())) == 2


@needs_nvcc
def test_a_header_from_elsewhere_is_seen(
    cache: Cache,
    write_kernel: KernelWriter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A header that the compiler finds through a variable or its own settings."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    body = WITH_HEADER.replace('"amount.h"', "<amount.h>")
    kernel = catalogue.load(write_kernel("headed", body=body))
    use_nvcc(monkeypatch, tmp_path / "nvcc", f'exec "{NVCC}" "-I{elsewhere}" "$@"')
    for amount in (64, 96):
        (elsewhere / "amount.h").write_text(f"#define AMOUNT {amount}\n")
        assert shared_bytes_of(kernel, cache) == amount * 4
    monkeypatch.undo()
    monkeypatch.setenv("CPATH", str(elsewhere))
    for amount in (32, 16):
        (elsewhere / "amount.h").write_text(f"#define AMOUNT {amount}\n")
        assert shared_bytes_of(kernel, cache) == amount * 4


@needs_nvcc
@pytest.mark.parametrize("where", ["beside the kernel", "working folder"])
def test_no_file_takes_the_place_of_the_toolkits(
    where: str,
    cache: Cache,
    write_kernel: KernelWriter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    working = tmp_path / "working"
    working.mkdir()
    monkeypatch.chdir(working)
    body = WITH_HEADER.replace('#include "amount.h"', "#define AMOUNT 64\n#include <cuda_fp16.h>")
    path = write_kernel("headed", body=body)
    folder = working if where == "working folder" else path.parent
    for name in ("cuda_runtime.h", "math.h", "vector_types.h"):
        (folder / name).write_text("#error not the toolkit's\n")
    assert shared_bytes_of(catalogue.load(path), cache) == 64 * 4


@needs_nvcc
def test_every_kernel_of_matbench_is_kept() -> None:
    """None includes more than the toolkit's headers."""
    folders = compilation.header_folders()
    assert any((folder / "cuda_runtime.h").is_file() for folder in folders)
    for kernel in catalogue.builtin():
        asked = compilation.request(kernel, TILE, "plain", SM_90)
        assert (asked.headers, asked.include_folders) == ((), ())


@needs_nvcc
@pytest.mark.parametrize("header", ["nowhere.h", "<cuda_fp16.h>"])
def test_a_failed_build_leaves_nothing_behind(
    header: str, cache: Cache, temporary: Path, write_kernel: KernelWriter
) -> None:
    include = f'#include "{header}"' if header[0] != "<" else f"#include {header}"
    path = write_kernel(body=f"{include}\n" + kernel_text().replace("sum += ", "summ += "))
    with pytest.raises(BuildError, match="nowhere.h" if header[0] != "<" else "summ") as refused:
        compiled(catalogue.load(path), cache)
    assert str(path) in refused.value.reason
    assert not list(temporary.iterdir())


@needs_nvcc
@pytest.mark.parametrize("variant", ["clocked", "staggered"])
@pytest.mark.parametrize("name", ["tiled", "reverse-blocks"])
def test_an_instrumented_build_has_no_more_registers(
    name: str, variant: backends.Variant, cache: Cache
) -> None:
    [kernel] = [kernel for kernel in catalogue.builtin() if kernel.name == name]
    plain, other = (
        compilation.compiled(kernel, {"TILE": 16, "THREADS": 256}, which, SM_90, cache)
        for which in ("plain", variant)
    )
    assert plain.given.registers is not None
    assert other.given.registers is not None
    assert other.given.registers <= max(plain.given.registers, 24)  # no cap is lower than 24
