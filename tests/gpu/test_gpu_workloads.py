"""The kernels of the other workloads on a real GPU, including CUDA-only ones."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from support.cli import Matbench
from support.cublas import BASELINES
from support.optional import present, some
from support.workloads import (
    EVERY,
    KERNELS,
    check_at_every_size,
    check_compensation,
    problem,
    result,
    right,
)

from matbench import backends, workloads
from matbench.backends import Backend
from matbench.bench import kernel_arguments
from matbench.bench.device_kernels import UNWRITTEN, DeviceKernels
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import MatbenchError
from matbench.kernelfile import sweep
from matbench.model import DeviceInfo, Kernel
from matbench.records.outcome import Outcome
from matbench.worker.builders import Builders

pytestmark = pytest.mark.gpu

DOT = [kernel for kernel in KERNELS.values() if kernel.workload == "dot"]
VARIANTS: tuple[backends.Variant, ...] = ("plain", "clocked", "staggered")


@pytest.fixture(scope="module")
def cuda(info: DeviceInfo) -> Iterator[Backend]:
    builders = Builders(300)
    try:
        every = [
            case
            for kernel in KERNELS.values()
            for case in sweep.cases([kernel], [problem(kernel.workload, 33)], {}, info)
        ]
        builders.start(info, every, VARIANTS)
        for case in every:
            with contextlib.suppress(MatbenchError):  # that kernel's own test reports it
                builders.wait(info, case)
    finally:
        builders.close()
    opened = backends.open_backend(info, Cache())
    yield opened
    opened.close()


@pytest.mark.parametrize(("kernel", "inputs"), EVERY)
def test_right_at_every_awkward_size(kernel: Kernel, inputs: str, checks: Session) -> None:
    check_at_every_size(kernel, inputs, checks)


def test_compensation_survives_the_optimiser(checks: Session) -> None:
    check_compensation(KERNELS["dot-compensated"], KERNELS["dot-vectorized"], checks)


def test_the_last_block_is_found_whatever_ran_before(checks: Session, info: DeviceInfo) -> None:
    """Launches of many and of few blocks alternate; each must reset the counter."""
    kernel = KERNELS["dot-single-pass"]
    found: dict[int, set[float]] = {}
    for N in (2**22 + 3, 5, 100_003) * 3:
        [case] = sweep.cases([kernel], [problem("dot", N, "signed")], {}, info)
        right(checks, case)
        found.setdefault(N, set()).add(result(checks, case))
    assert [len(values) for values in found.values()] == [1, 1, 1]


@pytest.mark.parametrize("N", [2**30, 2**30 - 1])
@pytest.mark.parametrize("kernel", DOT, ids=lambda kernel: kernel.name)
def test_every_product_is_found_once_at_the_largest_size(
    kernel: Kernel, N: int, cuda: Backend, info: DeviceInfo
) -> None:
    """Zeros except in some places, where the products are distinct powers of two."""
    case = sweep.case(kernel, problem("dot", N), {k: v[0] for k, v in kernel.sweep.items()}, info)
    assert case.launch is not None, case.skip
    blocks = case.launch.blocks if kernel.finish else 1
    kernels, held = DeviceKernels(cuda), [cuda.allocate(n) for n in (4 * N, 4 * N, 4 * blocks)]
    try:
        for buffer in held[:2]:
            kernels.fill(buffer, 0, N, 0)
        kernels.fill(held[2], 0, blocks, UNWRITTEN)
        places = [0, 4097, 2**28 - 1, 2**28, 2**29 - 1, 2**29, 2**29 + 12_345, N - 5, N - 1]
        page = 1024
        for power, place in enumerate(places):
            start = place // page * page
            for buffer, value in zip(held, (2.0**power, 1.0), strict=False):
                words = np.zeros(min(page, N - start), np.float32)
                view = buffer.view(4 * start, words.nbytes)
                cuda.read(view, words)
                words[place - start] = value
                cuda.write(view, words)
        program = cuda.build(kernel, case.params, block_width=case.launch.block[0])
        named = dict(zip("ABC", held, strict=True))
        program.launch(case.launch, kernel_arguments.arguments(case, named))
        parts = np.empty(blocks, np.float32)
        cuda.read(held[2], parts)
        assert float(parts.astype(np.float64).sum()) == 2 ** len(places) - 1
    finally:
        for buffer in held:
            cuda.release(buffer)
        kernels.close()


@pytest.mark.parametrize("name", ["reverse-blocks", "reverse-direct"])
def test_the_largest_array_is_turned_round(name: str, cuda: Backend, info: DeviceInfo) -> None:
    N, kernel = 2**30 - 1, KERNELS[name]
    case = sweep.case(kernel, problem("reverse", N), {"THREADS": 256}, info)
    assert case.launch is not None, case.skip
    kernels, held = DeviceKernels(cuda), [cuda.allocate(4 * N) for _ in "AC"]
    try:
        kernels.fill(held[0], 0, N, 0)
        kernels.fill(held[1], 0, N, UNWRITTEN)
        first = np.arange(1, 3001, dtype=np.int32)
        cuda.write(held[0], first)
        program = cuda.build(kernel, case.params, block_width=256)
        program.launch(case.launch, [*held, N])
        expected = np.zeros(N, np.int32)
        expected[-3000:] = first[::-1]
        found = np.empty(N, np.int32)
        cuda.read(held[1], found)
        assert np.array_equal(found, expected)
    finally:
        for buffer in held:
            cuda.release(buffer)
        kernels.close()


@pytest.mark.parametrize("inputs", workloads.get("dot").inputs)
@pytest.mark.parametrize("N", [1, 33, 33792, 1_000_003])
def test_cublas_is_right_too(N: int, inputs: str, checks: Session, info: DeviceInfo) -> None:
    [case] = sweep.cases([BASELINES["cublas-dot"]], [problem("dot", N, inputs)], {}, info)
    outcome = right(checks, case)
    resources = present(present(outcome.build).resources)
    assert present(resources.library).startswith("cuBLAS ")


@pytest.mark.alone
@pytest.mark.parametrize("mode", some([[], ["--hot"], ["--hot", "--graph"]], []))
def test_dot_products_side_by_side(matbench: Matbench, info: DeviceInfo, mode: list[str]) -> None:
    printed = matbench(
        *("run", "--workload", "dot", "--baseline", "cublas-dot", "--sizes", "2^22"),
        *("--backend", "cuda", *mode, "--format", "json"),
    ).stdout
    _, *rows = json.loads(printed)
    outcomes = {row["case"]["kernel"]: msgspec.convert(row, Outcome) for row in rows}
    assert outcomes.keys() == {kernel.name for kernel in DOT} | {"cublas-dot"}
    assert {o.status for o in outcomes.values()} == {"measured"}
    medians = {name: present(o.median_ns) for name, o in outcomes.items()}
    assert medians["dot-tree"] == max(medians.values())  # its 32 blocks fill a quarter of an H200


@pytest.mark.alone
def test_reading_at_full_speed_is_possible(matbench: Matbench, info: DeviceInfo) -> None:
    """Large sums read memory at about full bandwidth, and are not called impossible."""
    rungs = ("dot-vectorized", "dot-single-pass", "--baseline", "cublas-dot")
    printed = matbench("run", *rungs, "--sizes", "2^27", "--backend", "cuda", "--format", "json")
    outcomes = [record for record in json.loads(printed.stdout) if record["type"] == "outcome"]
    assert [outcome["status"] for outcome in outcomes] == ["measured"] * 3
    for outcome in outcomes:
        assert 2**30 / (outcome["cold"]["median_ns"] * 1e-9) > outcome["copy_bytes_per_s"]


@pytest.mark.alone
def test_cubes_from_one_thread_to_a_tree(matbench: Matbench, info: DeviceInfo) -> None:

    printed = matbench("run", "--workload", "cubes", "--backend", "cuda", "--format", "json").stdout
    _, *rows = json.loads(printed)
    medians = {row["case"]["kernel"]: row["cold"]["median_ns"] for row in rows}
    assert len(medians) == 6
    assert medians["cubes-thread"] == max(medians.values())
    assert medians["cubes-thread"] > 100 * medians["cubes-tree"]
