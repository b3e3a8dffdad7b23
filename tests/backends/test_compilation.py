"""Compiling with nvcc, without a GPU: finding it, caching until something changes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from support import drivers
from support.disk import full_after
from support.golden import TableRegression
from support.kernels import GOOD_BODY, KernelWriter, kernel_text, text_of
from support.nvcc import find_nvcc
from support.optional import present
from support.paths import output_of
from support.samples import any_kernel

from matbench.backends import building
from matbench.backends.building import first_error, includes_own_files
from matbench.backends.cuda import compilation
from matbench.backends.protocol import UnavailableError, Variant
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
OTHERWISE = [way for way in (*INCLUDED, *SPELT_OTHERWISE) if way != INCLUDED[1]]
WITH_HEADER = text_of("with-header.cu")

NVCC = find_nvcc()
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="needs nvcc and g++")


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


def test_no_nvcc_is_said(find: Any) -> None:
    with pytest.raises(UnavailableError, match="nvcc is missing; put the bin folder of"):
        find()


def test_nvcc_is_found(find: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = "echo 'Cuda compilation tools, release 13.0, V13.0.88'"
    drivers.program(tmp_path / "g++")
    wheels = drivers.program(tmp_path / "site" / "nvidia" / "cu13" / "bin" / "nvcc", says)
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert find() == (str(wheels), "13.0.88")
    toolkit = drivers.program(tmp_path / "toolkit" / "bin" / "nvcc", "echo something else")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    assert find() == (str(toolkit), "unknown")


def test_no_host_compiler_is_said(find: Any, tmp_path: Path) -> None:
    drivers.program(tmp_path / "nvcc")
    with pytest.raises(UnavailableError, match=r"nvcc needs a host compiler; install g\+\+"):
        find()


# -- nvcc's options ------------------------------------------------------------------------------


def test_a_kernel_is_compiled_for_the_architecture_it_requires(
    table_regression: TableRegression,
) -> None:
    def said(question: str) -> str:
        """On a GPU, of a kernel that requires what follows."""
        capability, *requires = question.split()
        major, minor = map(int, capability.split("."))
        kernel = Kernel("mine", tiled().launch, requires=tuple(requires))
        return " ".join(compilation.request(kernel, {}, "plain", (major, minor)).virtual_and_real)

    table_regression("architectures.txt", said)


# -- registers without a GPU ---------------------------------------------------------------------


@needs_nvcc
def test_code_whose_report_other_processes_lack_too_is_reported_all_the_same(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, write_kernel: KernelWriter
) -> None:
    """Without it a kernel's variables would not be known, nor restored before each launch."""
    monkeypatch.setitem(sys.modules, "pycuda", ModuleType("pycuda"))
    compiler = ModuleType("pycuda.compiler")
    monkeypatch.setattr(compiler, "compile", None, raising=False)
    monkeypatch.setitem(sys.modules, "pycuda.compiler", compiler)
    monkeypatch.setattr(compilation, "through_pycuda", lambda *_: (b"of another process", ""))
    body = f"__device__ int kept[5];\n{GOOD_BODY.replace('sum = 0.0f', 'sum = 0.0f * kept[M]')}"
    kernel = catalogue.load(write_kernel(body=body))
    found = compilation.compiled(kernel, TILE, "plain", SM_90, cache)
    assert found.variable_bytes == 20
    assert found.resources.registers


@needs_nvcc
def test_registers_are_known_without_gpu_and_pycuda(cache: Cache, temporary: Path) -> None:
    found = compilation.compiled_by_nvcc(SM_90, tiled(), TILE, cache).resources
    assert found.registers
    assert found == Resources(found.registers, 2 * 8 * 8 * 4, spilled_bytes=0)
    with pytest.raises(UnavailableError, match=r"nvcc [\d.]+ does not know sm_61"):
        compilation.compiled_by_nvcc((6, 1), tiled(), TILE, cache)
    assert not list(temporary.iterdir())


@needs_nvcc
def test_headers_that_only_host_code_needs_need_not_be_there(cache: Cache, tmp_path: Path) -> None:
    """They are named, with their lines, if a build fails because something of them is missing."""
    (tmp_path / "own.h").write_text("#include <glog/logging.h>\n#define HALF(x) __half(x)\n")
    text = (
        '#include <torch/extension.h>\n#include "own.h"\n'
        "torch::Tensor run(torch::Tensor a) { CHECK(a); mine<<<1, 1>>>(nullptr, 1); }\n"
        "__global__ void mine(const float *A, const float *B, float *C, int N) { USED }\n"
    )
    path = tmp_path / "mine.cu"

    def built(used: str) -> Resources:
        path.write_text(text.replace("USED", used))
        given = {"args": ["A", "B", "C", "N"], "launch": {"block": [1], "grid": [1]}}
        kernel = catalogue.load(path, given=given)
        found = compilation.compiled_by_nvcc(SM_90, kernel, {}, cache).resources
        clocked = compilation.request(kernel, {}, "clocked", SM_90)
        assert compilation.through_nvcc(clocked, cache)
        return found

    assert built("C[0] = float(HALF(A[0]));").registers
    with pytest.raises(BuildError) as refused:
        built("C[0] = c10::two(A[0]);")
    message = refused.value.reason.splitlines()[0]
    assert message.startswith(f"{path}(4): error: ")
    left = "torch/extension.h, line 1; glog/logging.h, line 1 of own.h"
    assert message.endswith(f"(built without host code and its headers: {left})")


# -- code for the device, through PyCUDA ---------------------------------------------------------


@pytest.fixture
def pycuda() -> None:
    """PyCUDA; needs a driver but no GPU."""
    if NVCC is None:
        pytest.skip("needs nvcc and g++")
    pytest.importorskip("pycuda.driver", exc_type=ImportError)


def use_nvcc(monkeypatch: pytest.MonkeyPatch, path: Path, script: str) -> None:
    """Compile with a shell script instead of nvcc; it reports the real nvcc's version."""
    release = compilation.nvcc().release
    drivers.program(path, f'[ "$1" = --version ] && exec "{NVCC}" "$1"\n{script}')
    monkeypatch.setattr(compilation, "nvcc", lambda: compilation.Nvcc(str(path), release))


def compiled(kernel: Kernel, cache: Cache, variant: Variant = "plain") -> compilation.Compiled:
    return compilation.compiled(kernel, TILE, variant, SM_90, cache)


@pytest.mark.usefixtures("pycuda")
def test_code_is_used_again(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled(tiled(), cache)
    assert first.cubin.startswith(b"\x7fELF")
    assert first.resources == Resources(first.resources.registers, 512, spilled_bytes=0)
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
    assert again.resources == first.resources
    assert len(again.cubin) == len(whole)


@pytest.mark.usefixtures("pycuda")
def test_code_of_another_request_is_compiled_anew(cache: Cache) -> None:
    small, large = (
        compilation.compiled(tiled(), {"TILE": tile}, "plain", SM_90, cache) for tile in (8, 16)
    )
    paths = list(cache.folder.glob("*.cubin"))
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, reversed(contents), strict=True):
        path.write_bytes(content)
    assert compiled(tiled(), cache).resources == small.resources != large.resources


@needs_nvcc
def test_nvcc_sees_a_change(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    list_gpus = f'[ "$1" = --list-gpu-arch ] && exec "{NVCC}" "$1"'
    use_nvcc(monkeypatch, tmp_path / "nvcc", f"{list_gpus}\n: > made.cubin; echo >> {log}")

    def runs(capability: tuple[int, int] = SM_90, tile: int = 8, **change: Any) -> int:
        """How often it has run, with a build of `tiled` that is changed like this."""
        kernel = msgspec.structs.replace(tiled(), **change)
        compilation.compiled_by_nvcc(capability, kernel, {"TILE": tile}, cache)
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


def test_pycuda_is_told_of_lines_and_headers_that_changed(with_header: Kernel) -> None:
    """It ignores the numbers of lines, which profilers show."""
    path = Path(with_header.path)

    def options() -> tuple[str, ...]:
        return compilation.request(catalogue.load(path), TILE, "plain", SM_90).options

    told = [options()]
    path.with_name("amount.h").write_text("\n#define AMOUNT 64\n")
    told.append(options())
    path.write_text("\n" + path.read_text())
    assert len({*told, options()}) == 3


def shared_bytes_of(kernel: Kernel, cache: Cache, through: str) -> int | None:
    """Four times the value that the kernel uses for AMOUNT."""
    if through == "pycuda":
        return compiled(kernel, cache).resources.static_shared_bytes
    found = compilation.compiled_by_nvcc(SM_90, kernel, TILE, cache).resources
    return found.static_shared_bytes


@pytest.fixture(params=["pycuda", "nvcc"])
def through(request: pytest.FixtureRequest) -> str:
    if request.param == "pycuda":
        request.getfixturevalue("pycuda")
    elif NVCC is None:
        pytest.skip("needs nvcc and g++")
    return str(request.param)


@pytest.mark.parametrize(
    "lines", [INCLUDED[1], *(pytest.param(way, marks=pytest.mark.long) for way in OTHERWISE)]
)
def test_changed_header(lines: str, through: str, cache: Cache, write_kernel: KernelWriter) -> None:
    path = write_kernel("headed", body=WITH_HEADER.replace('#include "amount.h"', lines))
    kernel = catalogue.load(path)
    path.with_name("tile8.h").write_text('#include "amount.h"\n')
    for amount in (64, 96):
        path.with_name("amount.h").write_text(f"#define AMOUNT {amount}\n")
        assert shared_bytes_of(kernel, cache, through) == amount * 4
        assert shared_bytes_of(catalogue.load(path), cache, through) == amount * 4
    assert len(list(cache.folder.glob("*.cubin"))) == (2 if through == "pycuda" else 0)


def test_a_header_from_elsewhere_is_seen(
    through: str, cache: Cache, write_kernel: KernelWriter, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A header that the compiler finds through a variable or its own settings."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    body = WITH_HEADER.replace('"amount.h"', "<amount.h>")
    kernel = catalogue.load(write_kernel("headed", body=body))
    use_nvcc(monkeypatch, tmp_path / "nvcc", f'exec "{NVCC}" "-I{elsewhere}" "$@"')
    for amount in (64, 96):
        (elsewhere / "amount.h").write_text(f"#define AMOUNT {amount}\n")
        assert shared_bytes_of(kernel, cache, through) == amount * 4
    monkeypatch.undo()
    monkeypatch.setenv("CPATH", str(elsewhere))
    for amount in (32, 16):
        (elsewhere / "amount.h").write_text(f"#define AMOUNT {amount}\n")
        assert shared_bytes_of(kernel, cache, through) == amount * 4


@pytest.mark.parametrize("where", ["beside the kernel", "working folder"])
def test_no_file_takes_the_place_of_the_toolkits(
    where: str, through: str, cache: Cache, write_kernel: KernelWriter, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    working = tmp_path / "working"
    working.mkdir()
    monkeypatch.chdir(working)
    body = WITH_HEADER.replace('#include "amount.h"', "#define AMOUNT 64\n#include <cuda_fp16.h>")
    path = write_kernel("headed", body=body)
    folder = working if where == "working folder" else path.parent
    for name in ("cuda_runtime.h", "math.h", "vector_types.h"):
        (folder / name).write_text("#error not the toolkit's\n")
    assert shared_bytes_of(catalogue.load(path), cache, through) == 64 * 4


@needs_nvcc
def test_the_preprocessor_does_not_run_for_the_toolkits_headers() -> None:
    folders = compilation.header_folders()
    assert any((folder / "cuda_runtime.h").is_file() for folder in folders)
    for kernel in catalogue.builtin():
        if kernel.includes:  # the ladder's header, which may change
            continue
        asked = compilation.request(kernel, TILE, "plain", SM_90)
        assert "#include" not in asked.text  # PyCUDA runs it where it reads the variable
        assert asked.include_folders == ()


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
    name: str, variant: Variant, cache: Cache
) -> None:
    [kernel] = [kernel for kernel in catalogue.builtin() if kernel.name == name]
    plain, other = (
        compilation.compiled(kernel, {"TILE": 16, "THREADS": 256}, which, SM_90, cache)
        for which in ("plain", variant)
    )
    most, used = plain.resources.registers, other.resources.registers
    assert present(used) <= max(present(most), 24)  # no cap is lower than 24


@pytest.mark.usefixtures("pycuda")
def test_a_full_disk_keeps_nothing_and_breaks_nothing(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlimited = f'prlimit --pid $$ --fsize=unlimited\nexec {NVCC} "$@"'
    use_nvcc(monkeypatch, tmp_path / "nvcc", unlimited)
    with full_after(9000):
        found = compiled(tiled(), cache)
    assert len(found.cubin) > 9000
    assert found.resources.registers
    again = compiled(tiled(), cache)
    assert len(again.cubin) == len(found.cubin)


# -- what a compiler says -------------------------------------------------------------------------


def test_the_first_error_is_shown_with_its_line(table_regression: TableRegression) -> None:
    """Of compilers' output in this folder, and of a text."""
    table_regression(
        "first-errors.txt",
        lambda said: first_error(output_of(said) if said.endswith(".txt") else said) or "nothing",
    )


def test_own_includes_are_told_from_the_compilers(
    tmp_path: Path, table_regression: TableRegression
) -> None:
    """A header `mine.h` lies beside the kernel."""
    (tmp_path / "mine.h").touch()

    def said(source: str) -> str:
        kernel = any_kernel(source=source, file=str(tmp_path / "mine.cu"))
        return "its own" if includes_own_files(kernel) else "none of its own"

    table_regression("includes.txt", said)


def test_a_compiler_has_a_folder_for_all_that_it_writes(tmp_path: Path) -> None:
    said = building.run(["sh", "-c", "pwd; echo $TMPDIR; cat"], tmp_path, "a text")
    assert said.decode() == f"{tmp_path}\n{tmp_path}\na text"
