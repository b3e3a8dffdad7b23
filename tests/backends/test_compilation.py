"""Compiling with nvcc: found wherever it is, cached until something changes, and without a GPU."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from conftest import KernelWriter, kernel_text
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
    with pytest.raises(UnavailableError, match="nvcc is missing; install the CUDA toolkit"):
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


# -- what nvcc is asked for ----------------------------------------------------------------------


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


# -- registers without a GPU ---------------------------------------------------------------------


@needs_nvcc
def test_registers_are_known_without_gpu_and_pycuda(cache: Cache, temporary: Path) -> None:
    found = backends.compiled_resources(SM_90, tiled(), TILE, cache)
    assert found is not None
    assert found.registers
    assert found == Resources(found.registers, 2 * 8 * 8 * 4, spilled_bytes=0)
    assert backends.compiled_resources((6, 1), tiled(), TILE, cache) is None
    assert not list(temporary.iterdir())


@needs_nvcc
def test_a_report_is_kept_until_something_changes(
    cache: Cache, with_header: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shared_bytes() -> int | None:
        found = backends.compiled_resources(SM_90, with_header, TILE, cache)
        return found.static_shared_bytes if found else None

    assert shared_bytes() == 64 * 4
    Path(with_header.path).with_name("amount.h").write_text("#define AMOUNT 96\n")
    assert shared_bytes() == 96 * 4
    first = backends.compiled_resources(SM_90, tiled(), TILE, cache)
    monkeypatch.setattr(compilation, "_through_nvcc", None)
    assert backends.compiled_resources(SM_90, tiled(), TILE, cache) == first


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


# -- code for the device, through PyCUDA ---------------------------------------------------------


@pytest.fixture
def pycuda() -> None:
    """PyCUDA; a driver but no GPU will do."""
    if NVCC is None:
        pytest.skip("needs nvcc and g++")
    pytest.importorskip("pycuda.driver", exc_type=ImportError)


def use_nvcc(monkeypatch: pytest.MonkeyPatch, path: Path, script: str) -> None:
    """Compile with a shell script in place of nvcc, whose version is the real one's."""
    release = compilation.nvcc().release
    program(path)
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec "{NVCC}" "$1"\n{script}\n')
    monkeypatch.setattr(compilation, "nvcc", lambda: compilation.Nvcc(str(path), release))


def compiled(
    kernel: Kernel, cache: Cache, variant: backends.Variant = "plain"
) -> compilation.Compiled:
    return compilation.compiled(kernel, TILE, variant, SM_90, cache)


@pytest.mark.usefixtures("pycuda")
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


@pytest.mark.usefixtures("pycuda")
@pytest.mark.parametrize("damage", ["flipped", "cut off", "empty"])
def test_damaged_code_is_compiled_anew(damage: str, cache: Cache) -> None:
    first = compiled(tiled(), cache)
    [path] = cache.folder.glob("*.cubin")
    whole = path.read_bytes()
    flipped = whole[:999] + bytes([whole[999] ^ 1]) + whole[1000:]
    damaged = {"flipped": flipped, "cut off": whole[:5000], "empty": b""}[damage]
    path.write_bytes(damaged)
    again = compiled(tiled(), cache)
    assert again.cubin == path.read_bytes() != damaged
    assert again.given == first.given
    assert len(again.cubin) == len(whole)


@pytest.mark.usefixtures("pycuda")
def test_a_changed_header_is_seen(cache: Cache, with_header: Kernel) -> None:
    assert compiled(with_header, cache).given.static_shared_bytes == 64 * 4
    Path(with_header.path).with_name("amount.h").write_text("#define AMOUNT 96\n")
    assert compiled(with_header, cache).given.static_shared_bytes == 96 * 4
    assert len(list(cache.folder.glob("*.cubin"))) == 2


@pytest.mark.usefixtures("pycuda")
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


@pytest.mark.usefixtures("pycuda")
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


@pytest.mark.usefixtures("pycuda")
def test_a_full_disk_keeps_nothing_and_breaks_nothing(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    unlimited = f'prlimit --pid $$ --fsize=unlimited\nexec {NVCC} "$@"'
    use_nvcc(monkeypatch, tmp_path / "nvcc", unlimited)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, before[1]))
    try:
        found = compiled(tiled(), cache)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(found.cubin) > 9000
    assert found.given.registers
    again = compiled(tiled(), cache)
    assert len(again.cubin) == len(found.cubin)


@pytest.mark.usefixtures("pycuda")
def test_compiled_code_counts_as_part_of_the_cache(cache: Cache) -> None:
    compiled(tiled(), cache)
    held = sum(path.stat().st_size for path in cache.folder.iterdir())
    assert cache.size_bytes() == held > 10_000
    Cache(cache.folder, limit_bytes=5000).put("key", bytes(100))
    assert not list(cache.folder.glob("*.cubin"))
    compiled(tiled(), cache)
    assert cache.clear() > 10_000
    assert not list(cache.folder.iterdir())
