"""Every built-in kernel: right at every size here, and compiled for GPUs."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import h200
from support.kernels import GOOD_BODY, KernelWriter, changed, own_file, saved, text_of
from support.nvcc import CompileError, compile_cubin, find_nvcc
from support.optional import present, some
from support.paths import ROOT
from support.products import (
    FILES,
    INPUTS,
    OF_ANY_SIZE,
    PRODUCTS,
    SIZES,
    capability_needed,
    case_of,
    name,
    opened,
    problem,
    right,
)

import matbench
from matbench import workloads
from matbench.backends import host
from matbench.backends.cuda import compilation
from matbench.backends.protocol import Backend
from matbench.bench import device_kernels, kernel_arguments
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import CaseError
from matbench.features.watch.versions import Saves
from matbench.kernelfile import catalogue, expressions, instrument, signature, sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.model import Case, DeviceInfo, Kernel, Launch, Problem


def ends(values: tuple[int, ...]) -> tuple[int, ...]:
    """The default first, then the smallest and the largest."""
    return tuple(sorted({min(values), max(values)} - {values[0]}))


TUNABLE = [kernel for kernel in FILES if kernel.tune]


@pytest.mark.parametrize("guard", ["rows % (8 * TOGETHER) == 0 || r < rows", "true"])
def test_threads_copy_rows_to_the_places_of_the_copy_engine(guard: str, tmp_path: Path) -> None:
    """Without the guard, threads write beyond rows of doubles."""
    ring = (ROOT / "kernels" / "gallery" / "ring.cuh").read_text(encoding="utf-8")
    copy = ring[ring.index("template <typename Element>") : ring.index("// A product of")]
    copy = changed(copy, ("rows % (8 * TOGETHER) == 0 || r < rows", guard))
    source = saved(tmp_path / "rows.cpp", text_of("rows.cpp").replace("COPY", copy))
    made = source.with_suffix("")
    subprocess.run(["g++", "-o", made, source], check=True)
    wrong = int(subprocess.run([made], capture_output=True, check=True).stdout)
    assert (wrong == 0) == (guard != "true")


@pytest.mark.parametrize("kernel", [k for k in TUNABLE if k.group == "tutorial"], ids=name)
def test_right_at_both_ends_of_what_it_can_be_tuned_to(kernel: Kernel, session: Session) -> None:
    check_values({name: ends(values) for name, values in kernel.tune.items()}, kernel, session)


@pytest.mark.long
@pytest.mark.parametrize("kernel", TUNABLE, ids=name)
def test_right_for_every_value_that_it_can_be_tuned_to(kernel: Kernel, session: Session) -> None:
    skipped = check_values(kernel.tune, kernel, session)
    assert skipped < sum(map(len, kernel.tune.values())) / 2


def check_values(tried: Mapping[str, tuple[int, ...]], kernel: Kernel, session: Session) -> int:
    """One constant at a time, the others at their defaults; returns the number of skipped cases."""
    device = session.backend.info
    if "cuda" in kernel.requires and device.backend != "cuda":
        pytest.skip("CUDA alone")
    default = {name: values[:1] for name, values in kernel.sweep.items()}
    workload = workloads.workload_of(kernel)
    probe = parse_problems(workload.smoke_sizes, workload)[-1]
    skipped = 0
    for constant, values in tried.items():
        for case in sweep.cases([kernel], [probe], {**default, constant: values}, device):
            if case.skip is None:
                right(session, case)
            else:
                assert case.skip.kind in ("condition", "limit", "requirement")
                skipped += 1
    return skipped


@pytest.fixture(scope="module")
def on_host(own_folders: None) -> Iterator[Session]:
    with opened(host.devices()[0], Options(timed=False)) as made:
        yield made


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("size", SIZES)
def test_numpy_is_right_as_well(size: str, inputs: str, on_host: Session) -> None:
    numpy = catalogue.Catalogue(catalogue.builtin()).get("numpy")
    [case] = sweep.cases([numpy], [problem(size, inputs)], {}, on_host.backend.info)
    outcome = right(on_host, case)
    assert present(present(outcome.accuracy).bound_ratio) <= 1


# -- nvcc without a GPU --------------------------------------------------------------------------

needs_nvcc = pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc, gcc and g++")
STRICT = ("-Werror=all-warnings", "-Xcompiler=-Wall,-Wextra,-Werror")
QUICK = ("-Xcicc=-O0", "-Xptxas=-O0")  # for what is in the plain unit, too, which takes long


#: The builds of a kernel for CUDA.
UNITS = {
    "plain": instrument.plain_unit,
    "clocked": instrument.clocked_unit,
    "staggered": instrument.staggered_unit,
}


def architectures(kernel: Kernel) -> list[str]:
    """The architectures it is compiled for: the required one, or two generations."""
    exact = [need for need in kernel.requires if need.startswith("sm_") and need[-1] in "af"]
    return exact or [f"sm_{arch}" for arch in (80, 90) if arch >= capability_needed(kernel)]


def compiled(text: Path, arch: str, macros: Mapping[str, int] | None, *flags: str) -> bytes:
    """The cubin of a file that includes nothing of its own, from the cache if it is there."""

    def compile_it() -> bytes:
        return compile_cubin(text, arch, macros, *flags)

    source = text.read_text(encoding="utf-8")
    if '#include "' in source or compilation.settings_in_force():
        return compile_it()
    key = repr(("a test's cubin", compilation.nvcc(), source, arch, macros, flags))
    return bytes(Cache().get_or_make(key, compile_it))


def jobs() -> Iterator[Any]:
    """A kernel, what is compiled of it, for which architecture, and with which parameters.

    The unchanged file without definitions: a reader can paste it into any CUDA program. Among the
    long tests each unit, and every other set of parameters, the tutorial's for each architecture;
    and all of those kernels for which nvcc takes longest.
    """
    for kernel in FILES:
        first, *others = sweep.parameter_sets(kernel, {})
        *older, last = architectures(kernel)
        found: list[tuple[str, str, dict[str, int]]] = [("alone", last, {})]
        found += [(unit, last, first) for unit in ("plain", "clocked", "staggered")]
        found += [("plain", arch, first) for arch in older]
        archs = (*older, last) if kernel.group == "tutorial" else (last,)
        found += [("plain", arch, params) for params in others for arch in archs]
        for unit, arch, params in found:
            is_long = unit != "alone" or kernel.group in ("ladder", "gallery")
            at = f"{kernel.name}-{unit}-{arch}{params}"
            marks = [pytest.mark.long] * is_long
            yield pytest.param(kernel, unit, arch, params, marks=marks, id=at)


@needs_nvcc
@pytest.mark.parametrize(("kernel", "unit", "arch", "params"), [*jobs()])
def test_nvcc_compiles_it_without_a_warning(
    kernel: Kernel, unit: str, arch: str, params: dict[str, int], tmp_path: Path
) -> None:
    path = own_file(kernel.name)
    if unit != "alone":
        path = saved(tmp_path / f"{kernel.name}-{unit}.cu", UNITS[unit](kernel))
    needs_optimiser = arch.endswith("a")  # wgmma and its registers; without, nvcc 13.0 crashes
    flags = STRICT if unit == "plain" or needs_optimiser else (*STRICT, *QUICK)
    # A unit is in another folder than the headers that it includes.
    flags = (*flags, f"-I{Path(kernel.file).parent}")
    cubin = compiled(path, arch, signature.macros(kernel, params) if params else None, *flags)
    assert cubin.startswith(b"\x7fELF")
    started = kernel.entry if unit in ("plain", "alone") else "matbench_entry"
    assert f".text.{started}\0".encode() in cubin


PACKAGE = Path(matbench.__file__).parent
DEVICE_CODE = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.cu"))}


@needs_nvcc
@pytest.mark.parametrize("arch", [pytest.param("sm_80", marks=pytest.mark.long), "sm_90"])
@pytest.mark.parametrize("name", DEVICE_CODE)
def test_what_judges_compiles_too(name: str, arch: str, tmp_path: Path) -> None:
    path, unit = DEVICE_CODE[name], tmp_path / "unit.cu"
    of_workload = (f"{path.parent.name}/{path.name}",)
    of_folder = (path.name, path.parent)
    place = of_workload if path.is_relative_to(PACKAGE / "workloads") else of_folder
    unit.write_text(device_kernels.device_source(*place), encoding="utf-8")
    unused = "-diag-suppress=177"  # not every workload needs all that they share
    assert compiled(unit, arch, None, *STRICT, unused)


@needs_nvcc
@pytest.mark.parametrize("unit", some(["plain", "clocked", "staggered"], "staggered"))
def test_nvcc_names_the_kernels_own_line(unit: str, tmp_path: Path) -> None:
    [tiled] = [kernel for kernel in FILES if kernel.name == "tiled"]
    wrong = tiled.source.replace("float sum = 0.0f;", "float sum = zero;")
    line = next(n for n, text in enumerate(wrong.splitlines(), 1) if "zero;" in text)
    mine = msgspec.structs.replace(tiled, source=wrong, path="folder/mine.cu")
    path = saved(tmp_path / "unit.cu", UNITS[unit](mine))
    with pytest.raises(CompileError, match=re.escape(f"folder/mine.cu({line}): error")):
        compile_cubin(path, "sm_90")


def test_blocks_of_every_narrow_width(session: Session) -> None:
    """A CPU's compiler gets a hint for narrow blocks; it accepts only some widths."""
    (kernel,) = [kernel for kernel in FILES if kernel.name == "single-block"]
    for width in range(1, 18):
        (case,) = sweep.cases([kernel], [Problem(2, width, 3)], {}, session.backend.info)
        assert right(session, case).case.launch == Launch((1, 1, 1), (width, 2, 1))


# Headers that are included


def test_a_header_changed_midway_fails(write_kernel: KernelWriter, backend: Backend) -> None:
    path = write_kernel(body='#include "x.h"\n' + GOOD_BODY)
    header = path.with_name("x.h")
    session = Session(backend, Cache(), Options(timed=False))

    header.write_text("struct a;\n")
    loaded = case_of(path, 24, backend.info, TILE=8)
    header.write_text("struct b;\n")
    with pytest.raises(CaseError, match=r"^x\.h changed after .*mine\.cu was read; run "):
        session.measure(loaded)
    loaded = case_of(path, 24, backend.info, TILE=8)
    assert session.measure(loaded).status == "measured"
    # The build stays the one that the record names.
    header.write_text("#error\n")
    assert session.measure(loaded).status == "measured"


def test_a_header_is_saved(tmp_path: Path) -> None:
    path, header = tmp_path / "mine.cu", tmp_path / "x.h"
    path.write_text('#include "x.h"\n')
    saves = Saves(path)
    for content in ("int a;", "int b;"):
        header.write_text(content)
        assert saves.new() == path.read_bytes()
        assert saves.new() == path.read_bytes()  # until it was judged
        saves.see()
        assert saves.new() is None
    header.touch()
    (tmp_path / "y.h").write_text("int y;")
    assert saves.new() is None
    header.unlink()
    assert saves.new() == path.read_bytes()


def test_a_header_in_the_same_folder_is_told_of(tmp_path: Path) -> None:
    saves = Saves(saved(tmp_path / "mine.cu", '#include "x.h"\n'))
    saves.see()
    turns = saves.wait()
    next(turns)
    (tmp_path / "x.h").write_text("int x;")
    for _ in range(10):
        next(turns)
        if saves.new() is not None:
            return
    raise AssertionError("no turn came with the header")


# Right at every awkward size


LARGER = "257x130x300"
LONG_SUMS = "64x64x8192"


def on_a_cpu() -> Iterator[Any]:
    """The tutorial's at every size with uniform inputs, all at one with the others too; the rest
    takes long, and part of it is what `matbench run --smoke` does.

    Problems on the outside: the session keeps the inputs of one problem on the device.
    """
    for inputs in INPUTS:
        for size in SIZES:
            for kernel in PRODUCTS:
                few = size == "65x31x129" or (inputs == "uniform" and kernel.group == "tutorial")
                marks = [] if few else [pytest.mark.long]
                at = f"{kernel.name}-{size}-{inputs}"
                yield pytest.param(kernel, size, inputs, "session", marks=marks, id=at)


def on_a_gpu() -> Iterator[Any]:
    """All at every size with one kind of inputs, in turn; the other kinds take long, and so do
    kernels of which many builds are swept.

    Kernels on the outside: a process builds all that one needs.
    """
    for number, kernel in enumerate([*PRODUCTS, *OF_ANY_SIZE.values()]):
        if kernel.on_host:
            continue
        sizes = [*SIZES, LARGER] if not kernel.kind.is_library else [*SIZES, LARGER, LONG_SUMS]
        for place, size in enumerate(sizes):
            for kind, inputs in enumerate(INPUTS):
                marks = [pytest.mark.gpu]
                has_many_builds = math.prod(map(len, kernel.sweep.values())) > 6
                if (number + place + kind) % len(INPUTS) or has_many_builds:
                    marks.append(pytest.mark.long)
                at = f"{kernel.name}-{size}-{inputs}-cuda"
                yield pytest.param(kernel, size, inputs, "checks", marks=marks, id=at)


def test_a_tensor_map_keeps_the_products_of_a_batch_apart() -> None:
    buffers: dict[str, Any] = dict.fromkeys("ABC")
    A, *_ = kernel_arguments.arguments(h200.split_case("bf16-batched", 520), buffers)
    assert (A.shape, A.box) == ((1, 520, 520), (1, 128, 64))  # type: ignore[union-attr]


def allowed_skip(case: Case, device: DeviceInfo) -> bool:
    """Whether this kernel cannot compute this, by prior knowledge or by its file."""
    limit = min(device.limits["max_threads_per_block"], 1024)
    problem = case.problem
    if "cuda" in case.kernel.requires and device.backend != "cuda":
        return True
    if case.kernel.name == "single-block":
        return limit < problem.M * problem.N
    if case.kernel.name == "host-loop":
        return workloads.workload_of(problem).operations(problem) > 2**25
    if case.kernel.name == "shared-row":
        return device.limits["max_shared_bytes_per_block"] < 4 * problem.K
    if case.kernel.group in ("ladder", "gallery"):
        constants = expressions.constants(case.kernel.let, case.params)
        values = {**case.kernel.values(problem), **constants, **device.limits}
        scope = {"ceil_div": lambda a, b: -(-a // b), "max": max, "min": min}
        major, minor = device.compute_capability or (0, 0)
        is_older = capability_needed(case.kernel) > 10 * major + minor
        return is_older or not all(eval(w, scope, values) for w in case.kernel.launch.where)
    return case.params.get("TILE", 1) ** 2 > limit


@pytest.mark.parametrize(("kernel", "size", "inputs", "where"), [*on_a_cpu(), *on_a_gpu()])
def test_right_at_every_awkward_size(
    kernel: Kernel, size: str, inputs: str, where: str, request: pytest.FixtureRequest
) -> None:
    session: Session = request.getfixturevalue(where)
    device = session.backend.info
    if kernel.on_host and device.kind == "gpu":
        pytest.skip("a baseline of the CPU")
    cases = sweep.cases([kernel], [problem(size, inputs)], {}, device)
    assert len(cases) == math.prod(map(len, kernel.sweep.values()))
    is_long = request.node.get_closest_marker("long") is not None
    for case in cases if is_long or len(cases) < 4 else (cases[0], cases[-1]):
        if case.skip is not None:
            assert case.skip.kind in ("condition", "limit", "requirement")
            assert allowed_skip(case, device), case.skip
            continue
        outcome = right(session, case)
        assert 0 <= present(present(outcome.accuracy).bound_ratio) <= 1
        if kernel.kind.is_library:
            library = present(present(outcome.build).resources).library
            assert present(library).startswith("cuBLAS ")
        # Where nothing cancels, the bound holds for relative errors of the inputs as given too.
        elif inputs == "uniform" and kernel.precision == "float32":
            bound = (kernel.error_constant + case.problem.K + 1) * 2**-24
            avg_rel_err = present(present(outcome.accuracy).avg_rel_err)
            assert avg_rel_err <= present(outcome.max_rel_err) <= bound
