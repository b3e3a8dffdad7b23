"""Occupancy: well-known cases and invariants; architectures; resident blocks by NVIDIA's header."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path
from unittest import mock

import msgspec
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support.golden import TableRegression
from support.h200 import H200, KERNELS, case_of
from support.kernels import text_of
from support.nvcc import find_nvcc
from support.optional import present

from matbench.analysis.limits import WARP
from matbench.errors import BuildError, UsageError
from matbench.features.explain import occupancy as occupancies
from matbench.features.explain.architectures import ARCHITECTURES, Architecture, device_of, named
from matbench.features.explain.occupancy import Compile, occupancy
from matbench.features.explain.record import Fit
from matbench.kernelfile import sweep
from matbench.model import Problem, Resources
from matbench.records.outcome import Build


def told(question: str) -> str:
    """How many blocks fit, by a line such as `8.0: 256 threads, 32 registers, 0 bytes`."""
    name, threads, registers, shared_bytes = re.findall(
        r"[\w.]+(?=:| threads| reg| bytes)", question
    )
    architecture = named(name)
    found = occupancy(
        architecture,
        int(threads),
        registers=None if registers == "unknown" else int(registers),
        shared_bytes=int(shared_bytes),
    )
    title = f"{architecture.name}: "
    if found.refused is not None:
        return title + found.refused
    fits = f"{found.blocks} × {threads} threads, {found.warps} warps, {found.share:.1%}"
    return f"{title}{fits}, limited by {' and '.join(found.limiters)}"


def test_known_occupancies(table_regression: TableRegression) -> None:
    table_regression("occupancies.txt", told)


# -- NVIDIA's header -------------------------------------------------------------------------------


#: Reads a device and a kernel per line, and prints the resident blocks per multiprocessor.
ASKS_THE_HEADER = text_of("asks-the-header.cpp")
#: Architectures in the header of CUDA 13; it no longer has 1.x and 2.x.
KNOWN = [a for a in ARCHITECTURES if a.compute_capability >= (3, 0)]
CASES = 1000


@pytest.fixture(scope="module")
def header(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nvcc = find_nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, or no host compiler for it")
    folder = tmp_path_factory.mktemp("occupancy")
    source, program = folder / "asks.cpp", folder / "asks"
    source.write_text(ASKS_THE_HEADER, encoding="utf-8")
    done = subprocess.run(
        [nvcc, "-cudart", "none", "-o", program, source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("a", KNOWN, ids=lambda a: a.name)
def test_as_many_blocks_as_the_header_says(a: Architecture, header: Path) -> None:
    draw = random.Random(a.name)
    kernels = [
        (
            draw.choice([draw.randint(1, 1024), 32 * draw.randint(1, 32)]),
            draw.randint(1, a.registers_per_thread),
            draw.choice([0, draw.randint(0, 16384)]),
            draw.choice([0, draw.randint(0, a.largest_shared_bytes + 2048)]),
        )
        for _ in range(CASES)
    ]
    device = (
        *a.compute_capability, a.threads_per_block, a.threads, a.registers_per_block, a.registers,
        WARP, a.shared_bytes_per_block, a.shared_bytes, a.largest_shared_bytes,
        a.reserved_shared_bytes,
    )  # fmt: skip
    lines = [" ".join(map(str, (*device, *kernel))) for kernel in kernels]
    said = subprocess.run(
        [header], input="\n".join(lines), capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(said) == CASES
    apart = {}
    for kernel, blocks in zip(kernels, map(int, said), strict=True):
        threads, registers, fixed, sized = kernel
        mine = occupancy(a, threads, registers=registers, shared_bytes=fixed + sized).blocks
        if mine != blocks:
            apart[kernel] = mine, blocks
    assert apart == {}


# -- the fit of a case ---------------------------------------------------------------------------


def fit(
    arch: str, name: str, compiled: Compile = lambda *_: None, *, n: int = 1000, **params: int
) -> Fit:
    kernel, device = KERNELS.get(name), device_of(named(arch))
    problem = Problem(n, n, n, workload=kernel.workload)
    case = sweep.case(kernel, problem, params, device)
    return occupancies.fit(case, device, compiled, here=False)


def test_registers_are_those_of_a_build_for_that_architecture() -> None:
    def compiled(architecture: Architecture, params: dict[str, int]) -> Resources | None:
        if architecture.compute_capability < (7, 5):
            return None
        return Resources(registers=64, static_shared_bytes=2048)

    new, old = (fit(arch, "tiled", compiled, TILE=16) for arch in ("hopper", "g80"))
    assert (new.registers, new.shared_bytes) == (64, 2048)
    assert present(new.occupancy).limiters == ("registers",)
    # Static shared memory is the same in every build; registers are not. The lecture counts eight
    # blocks of 2 KB, but threads hold only three.
    assert (old.registers, old.shared_bytes, old.reason) == (None, 2048, None)
    assert present(old.occupancy).by == {"threads": 3, "blocks": 8, "shared memory": 8}


def test_without_a_compiler_only_the_launch_is_known() -> None:
    found = fit("fermi", "naive-2d", TILE=32)
    assert (found.threads_per_block, found.registers, found.shared_bytes) == (1024, None, None)
    assert present(found.occupancy).blocks == 1


def test_what_cannot_be_launched_has_its_reason() -> None:
    fails = mock.Mock(side_effect=BuildError("error: no such thing\nat line 2"))
    params = next(iter(sweep.parameter_sets(KERNELS.get("warp-tiled"), {})))
    needs = present(fit("kepler", "warp-tiled", lambda *_: None, **params).reason)
    assert needs.startswith("needs sm_80; the device is sm_30")
    assert fit("hopper", "tiled", fails, TILE=16).reason == "does not build: error: no such thing"
    assert fit("g80", "reverse-static", n=500).reason == "needs N <= 64 (N = 500)"
    many = fit("hopper", "tiled", lambda *_: Resources(registers=200), TILE=32)
    assert (many.reason, many.occupancy) == ("204,800 registers per block > 65,536", None)


def test_here_its_own_build_counts() -> None:
    case = case_of("tiled", 64)
    build = Build(resources=Resources(registers=40, static_shared_bytes=8192), resident_blocks=1)
    found = occupancies.fit(case, H200, lambda *_: Resources(registers=99), build, here=True)
    assert (found.registers, found.shared_bytes, found.driver_blocks) == (40, 8192, 1)
    elsewhere = occupancies.fit(case, H200, lambda *_: None, build, here=False)
    assert (elsewhere.registers, elsewhere.shared_bytes) == (None, 8192)
    unknown = msgspec.structs.replace(H200, compute_capability=None)
    found = occupancies.fit(case, unknown, lambda *_: None, build, here=True)
    assert (found.architecture, found.driver_blocks, found.occupancy) == (None, 1, None)


# -- architectures by family, chip and compute capability ----------------------------------------


@pytest.mark.parametrize(("name", "hint"), [("keppler", "'kepler'"), ("9.9", "known: g80")])
def test_an_unknown_name_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        named(name)


def test_the_table_is_what_it_was_reviewed_as(file_regression: FileRegressionFixture) -> None:
    lines = (msgspec.json.encode(architecture).decode() for architecture in ARCHITECTURES)
    file_regression.check("\n".join(lines) + "\n")
