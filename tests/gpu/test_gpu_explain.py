"""On a real GPU: the table of architectures compared with the driver, limits, counters."""

from __future__ import annotations

import itertools
import json
import shutil

import pytest
from support.cli import Matbench
from support.optional import present
from support.products import FILES

from matbench import workloads
from matbench.analysis.limits import of_clock
from matbench.backends import Backend
from matbench.backends.cuda import compilation
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import MatbenchError
from matbench.features.explain import architectures, counters, limits
from matbench.features.explain.occupancy import occupancy
from matbench.kernelfile import sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.model import DeviceInfo, Kernel, Launch, Problem

pytestmark = pytest.mark.gpu

KERNELS = {kernel.name: kernel for kernel in FILES if not kernel.on_host}
THREADS = (1, 32, 64, 96, 128, 160, 256, 384, 512, 768, 1000, 1024)
SHARED_BYTES = (0, 1, 1024, 8000, 16384, 49152, 49153, 65536, 100_000, 113 * 1024, 227 * 1024)


@pytest.fixture(scope="module")
def architecture(info: DeviceInfo) -> architectures.Architecture:
    found = architectures.of_capability(info.compute_capability)
    assert found is not None, f"{info.compute_capability} is not in the table"
    return found


def test_the_limits_are_known(info: DeviceInfo, architecture: architectures.Architecture) -> None:
    expected = architectures.limits(architecture)
    assert {name: info.limits[name] for name in expected} == expected


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_the_driver_counts_as_many_resident_blocks(
    kernel: Kernel, cuda: Backend, architecture: architectures.Architecture
) -> None:
    (problem,) = parse_problems("300", workloads.get(kernel.workload))
    for params in itertools.islice(sweep.parameter_sets(kernel, {}), 3):
        case = sweep.case(kernel, problem, params, cuda.info)
        if case.skip is not None or case.launch is None:
            continue
        program = cuda.build(kernel, params)
        given = program.resources
        table = occupancy(
            architecture,
            case.launch.threads_per_block,
            registers=given.registers,
            shared_bytes=(given.static_shared_bytes or 0) + case.launch.shared_bytes,
        )
        assert program.resident_blocks(case.launch) == table.blocks, f"{case.label}: {given}"


@pytest.mark.parametrize("name", ["tiled-dynamic", "thread-tile-2d"])
def test_the_driver_agrees_for_any_block(
    name: str, cuda: Backend, architecture: architectures.Architecture
) -> None:
    """Also for blocks that the kernel is not launched with: only their size counts."""
    kernel = KERNELS[name]
    params = next(iter(sweep.parameter_sets(kernel, {})))
    program = cuda.build(kernel, params)
    given = program.resources
    apart = {}
    for threads in THREADS:
        for shared_bytes in SHARED_BYTES:
            table = occupancy(
                architecture,
                threads,
                registers=given.registers,
                shared_bytes=(given.static_shared_bytes or 0) + shared_bytes,
            )
            launch = Launch(grid=(1, 1, 1), block=(threads, 1, 1), shared_bytes=shared_bytes)
            driver = program.resident_blocks(launch)
            if driver is None and table.blocks == 0:
                continue  # the driver rejects such a block
            if driver != table.blocks and threads <= (given.max_threads_per_block or 0):
                apart[threads, shared_bytes] = driver, table.blocks
    assert apart == {}


def test_nvcc_alone_gives_what_the_driver_says(cuda: Backend, info: DeviceInfo) -> None:
    kernel, params = KERNELS["tiled"], {"TILE": 16}
    capability = present(info.compute_capability)
    compiled = compilation.compiled_by_nvcc(capability, kernel, params, Cache()).resources
    built = cuda.build(kernel, params).resources
    assert (compiled.registers, compiled.static_shared_bytes) == (
        built.registers,
        built.static_shared_bytes,
    )


@pytest.mark.alone
def test_limits_lie_below_what_the_clock_allows(cuda: Backend) -> None:
    found = limits.measured(Session(cuda, Cache(), Options()), anew=True)
    allowed = present(of_clock(cuda.info, found.sm_mhz))
    assert 0.6 <= found.fma_flop_per_s / allowed <= 1.02, found
    assert found.copy_bytes_per_s > 1e11, found
    assert 1 <= found.read_bytes_per_s / found.copy_bytes_per_s <= 1.3, found  # not from a cache


@pytest.mark.alone
def test_a_kernel_is_explained(matbench: Matbench, info: DeviceInfo) -> None:
    asked = "tiled", "--sizes", "1000", "--set", "TILE=4,16,32"
    result = matbench("explain", *asked, "--format", "json")
    _, found = json.loads(result.stdout)
    here = {fit["params"]["TILE"]: fit for fit in found["fits"] if fit["here"]}
    assert [*here] == [4, 16, 32]
    assert all(fit["registers"] > 0 for fit in here.values())
    chosen = here[found["case"]["params"]["TILE"]]
    assert chosen["driver_blocks"] == chosen["occupancy"]["blocks"]
    assert found["clock_flop_per_s"] > found["operations_per_s"]
    assert found["outcome"]["build"]["resources"]["registers"] > 0


@pytest.mark.alone
@pytest.mark.skipif(shutil.which("ncu") is None, reason="no ncu on PATH")
def test_counters_count_at_least_the_inputs(info: DeviceInfo) -> None:
    case = sweep.case(KERNELS["tiled"], Problem(1000, 1000, 1000), {"TILE": 16}, info)
    try:
        found = counters.count(info, case, 300)
    except MatbenchError as error:
        if "NVGPUCTRPERM" in str(error):
            pytest.skip(str(error))
        raise
    assert present(found.dram_read_bytes) >= 0.9 * 2 * 1000 * 1000 * 4
    assert present(found.shared_bytes) > 0
    assert 0.1 < present(found.achieved_occupancy) <= 1
