"""CUDA on a real GPU: all kernels, clocks, the cache, and recovery after bad kernels."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import drivers
from support.cli import Matbench, last_run
from support.kernels import GOOD_BODY, SIZES, SPIN_BODY, KernelWriter, changed, kernel_text, saved
from support.optional import present
from support.paths import ROOT
from support.products import PRODUCTS, case_of, right
from support.sources import ONE

from matbench import backends
from matbench.backends.cuda import compilation
from matbench.backends.protocol import Argument, Backend, Work
from matbench.bench.kernel_arguments import Memory
from matbench.bench.options import Deadlines, Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import BuildError
from matbench.features.timeline.clocking import clocked_here
from matbench.features.timeline.profile import analyse
from matbench.kernelfile import catalogue
from matbench.model import DeviceInfo, Problem, Skip
from matbench.worker import worker

pytestmark = pytest.mark.gpu

KERNELS = {kernel.name: kernel for kernel in PRODUCTS if not kernel.on_host}


# -- right ---------------------------------------------------------------------------------------


def test_small_inputs_may_lose_bits_below_the_range(matbench: Matbench, info: DeviceInfo) -> None:
    """A single product with one factor that the sample makes too small for float16's parts."""
    constants = ("--set", "BN=64", "--set", "TOTAL_WORDS=1")
    replayed = ("--seed", "579258", "--replay", "f0862b1fc088c6fe", *constants)
    result = matbench("run", "fp16x3", "--sizes", "68x9x1", *replayed, "--backend", "cuda")
    assert "1 measured" in result.stderr or "1 measured" in result.stdout


@pytest.mark.parametrize("tile", [8, 16, 32])
def test_compensation_survives_the_optimiser(tile: int, checks: Session, info: DeviceInfo) -> None:
    kahan: Any = right(checks, case_of("kahan", "1000", info, TILE=tile))
    assert kahan.max_rel_err <= 1e-7
    tiled: Any = right(checks, case_of("tiled", "1000", info, TILE=tile))
    assert tiled.max_rel_err > 5e-7


@pytest.mark.long
def test_the_smoke_run_passes(matbench: Matbench, info: DeviceInfo) -> None:
    matbench("run", "--smoke", "--backend", "cuda")
    on_gpu = [outcome for outcome in last_run() if outcome.case.backend == "cuda"]
    assert {outcome.case.kernel for outcome in on_gpu} >= set(KERNELS)
    assert {outcome.case.device for outcome in on_gpu} == {info.name}
    for outcome in on_gpu:
        assert outcome.status in ("measured", "skipped")
        if outcome.status == "measured":
            assert present(outcome.median_ns) > 0
            resources = present(present(outcome.build).resources)
            assert resources.library or present(resources.registers) > 0


#: Mistakes in kernels for Hopper: another type of C or of the factors, another k, column or row.
MISTAKES = [
    ("half-wgmma", "multiply_stage, float16x2)", "multiply_stage, bfloat16x2)"),
    ("half-wgmma", '"f16.f16"', '"bf16.bf16"'),
    ("tf32-wgmma", "t + is_odd * 4;", "t;"),
    ("tf32-wgmma", "write(sum, C, M, N, tile.column + t * 2,", "write(sum, C, M, N, tile.column,"),
    ("double-tma", "fetch(of[1], (ring.stage() + a_of) ^ 64,", "fetch(of[1], ring.stage() + a_of,"),
    ("double-tma", "tile.row + row, tile.column", "tile.row, tile.column"),
    ("decode-bf16", "#define B_APART 2048", "#define B_APART 1024"),
    ("decode-fp8", "#define B_APART 32", "#define B_APART 0"),
    ("bf16-batched", "{k, place.product}", "{k, 0}"),
    ("bf16-batched", "(M + 2 * BM - 1) / (2 * BM) * (2 * BM)", "M"),
]


@pytest.mark.parametrize(("name", "right_text", "wrong_text"), MISTAKES)
def test_a_mistake_is_found(
    name: str, right_text: str, wrong_text: str, checks: Session, info: DeviceInfo, tmp_path: Path
) -> None:
    folder = shutil.copytree(ROOT / "kernels" / "gallery", tmp_path / "gallery")
    text = (folder / f"{name}.cu").read_text(encoding="utf-8")
    assert text.count(right_text) == 1
    file = saved(folder / f"{name}.cu", text.replace(right_text, wrong_text))
    swept = {constant: values[-1] for constant, values in KERNELS[name].sweep.items()}
    size = Problem(swept.get("ROWS", 520), 768, 528, batch=1 if KERNELS[name].batch == 1 else 3)
    case = case_of(file, size, info, **swept)
    if case.skip is not None and case.skip.kind == "requirement":
        pytest.skip("needs sm_90a")
    right(checks, case_of(name, size, info, **swept))
    outcome = checks.measure(case, variants=("plain",))
    assert outcome.status == "wrong", outcome.reason


# -- the device ----------------------------------------------------------------------------------


def test_a_device_says_all_that_the_tutorial_prints(info: DeviceInfo) -> None:
    assert backends.choose("auto", None) == info
    assert info.kind == "gpu"
    assert info.compute_capability is not None
    assert info.properties["warp size"] == 32
    assert "CUDA" in info.driver
    assert "unknown" not in info.toolkit


# -- memory, builds, arguments -------------------------------------------------------------------


def test_parameters_that_differ_are_refused(cuda: Backend, tmp_path: Path) -> None:
    """The parser takes the last of two types; nvcc knows which one applies."""
    body = """
    #ifndef NO_COMPILER_DEFINES_THIS
    typedef int count;
    #else
    typedef long long count;
    #endif
    extern "C" __global__ void mine(const float *A, const float *B, float *C, count M)
    { C[0] = (float)M; }
    """
    path = saved(tmp_path / "mine.cu", kernel_text(front='args = ["A", "B", "C", "M"]', body=body))
    with pytest.raises(BuildError, match="8, 8, 8, 4 bytes, but its source declares 8, 8, 8, 8"):
        cuda.build(catalogue.load(path), {"TILE": 8})


def test_more_shared_memory_than_48_kib(checks: Session, info: DeviceInfo) -> None:
    limit = info.limits["max_shared_bytes_per_block"]
    assert limit >= 80_000, "this device has no more than 48 KiB a block"
    case = case_of("shared-row", "3x5x20000", info, THREADS=256)
    assert present(case.launch).shared_bytes == 80_000
    right(checks, case)
    right(checks, case_of("shared-row", f"3x5x{limit // 4}", info, THREADS=256))
    beyond = case_of("shared-row", f"3x5x{limit // 4 + 1}", info, THREADS=256)
    given: Any = {"K": limit // 4 + 1, "max_shared_bytes_per_block": limit}
    assert beyond.skip == Skip("condition", "K * 4 <= max_shared_bytes_per_block", given)


# -- time ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def timed(cuda: Backend) -> Session:
    return Session(cuda, Cache(), Options())


@pytest.mark.alone
@pytest.mark.parametrize(
    ("name", "params"),
    [("tiled", {"TILE": 16}), ("naive-2d", {"TILE": 16}), ("thread-1d", {"THREADS": 256})],
)
def test_stamps_agree(name: str, params: dict[str, int], timed: Session, info: DeviceInfo) -> None:
    """By the clock shared by all multiprocessors, and by each one's own, within 5%."""
    case = case_of(name, "1000", info, **params)
    profiles = []
    for _ in range(5):
        outcome, sample = clocked_here(timed, case)
        assert outcome.status == "measured", outcome.reason
        sample, launch = present(sample), present(case.launch)
        assert len(sample.stamps) == launch.blocks
        profiles.append(analyse(sample, launch, info))
    for profile in profiles:
        assert profile.unstamped_blocks == 0
        assert profile.multiprocessors == info.limits["multiprocessors"]
        assert profile.multiprocessors_used == profile.multiprocessors
        assert 0 < profile.duration_us.minimum <= profile.duration_us.median
        assert profile.duration_us.maximum * 1e3 <= 1.05 * profile.event_ns
        assert 0.2 < profile.ticks_per_ns < 4
    spans = [present(p.span_ns) / p.launch_ns for p in profiles]
    assert abs(statistics.median(spans) - 1) <= 0.05
    own = [present(p.multiprocessor_span_ticks) / p.ticks_per_ns / p.launch_ns for p in profiles]
    assert abs(statistics.median(own) - 1) <= 0.05


def test_a_timed_case_is_whole(timed: Session, info: DeviceInfo) -> None:
    outcome: Any = right(timed, case_of("tiled", "1000", info, TILE=16))
    assert outcome.mode == "cold"
    assert len(outcome.samples_ns) >= 10
    assert outcome.median_ns == np.median(outcome.samples_ns)
    low, high = present(outcome.cold.interval_ns)
    assert low <= outcome.median_ns <= high
    # No GPU does 2·10⁹ operations in a microsecond; no current one needs a tenth of a second.
    assert 1e3 < outcome.median_ns < 1e8
    assert 0 < outcome.blocks.median_ns <= outcome.median_ns
    assert outcome.blocks.sm_mhz is not None
    assert 0 < outcome.build.resources.registers <= 255
    assert outcome.build.resources.static_shared_bytes == 2 * 16 * 16 * 4
    assert 0 < outcome.build.occupancy <= 1 <= outcome.build.resident_blocks


@pytest.mark.alone
def test_cold_hot_and_graph_are_alike(cuda: Backend, timed: Session, info: DeviceInfo) -> None:
    case = case_of("tiled", "1000", info, TILE=16)
    right(timed, case)
    given = present(timed._prepared).buffers((1000, 1000)).given
    assert case.launch is not None
    program = cuda.build(case.kernel, case.params)
    arguments: list[Argument] = [*(matrix.data for matrix in given), 1000, 1000, 1000]
    cold = statistics.median(
        cuda.timed_ns(Work([program.call(case.launch, arguments)], is_cold=True)) for _ in range(9)
    )

    def hold() -> None:
        timed.kernels.hold(500_000)

    calls = [program.call(case.launch, arguments)] * 20
    for graph in (False, True):
        work = Work(calls[1:], hold, calls[0].run, is_graph=graph)
        hot = statistics.median(cuda.timed_ns(work) for _ in range(5))
        assert 0.7 < hot / cold < 1.2


@pytest.mark.alone
def test_longer_kernels_take_longer(cuda: Backend, tmp_path: Path) -> None:
    body = "{ const long long end = clock64() + N; while (clock64() < end) { } C[0] = 1; }"
    path = saved(tmp_path / "mine.cu", kernel_text(body=body))
    program = cuda.build(catalogue.load(path), {"TILE": 8})
    C = cuda.allocate(4)

    def best(cycles: int) -> float:
        return min(
            cuda.timed_ns(Work([program.call(ONE, [C, C, C, 1, cycles, 1])])) for _ in range(5)
        )

    short, long = best(1_000_000), best(11_000_000)
    # 10 million cycles at anything between 0.5 and 5 GHz.
    assert 2e6 < long - short < 20e6
    cuda.release(C)


# -- the cache -----------------------------------------------------------------------------------


def run_elsewhere(environment: dict[str, str], *arguments: str) -> list[dict[str, Any]]:
    """Outcomes of a run in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "matbench", "run", *arguments, "--backend", "cuda",
         "--format", "json", "--max-time", "0.05"],
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return [record for record in json.loads(done.stdout) if record["type"] == "outcome"]


def test_compiled_code_is_used_again_without_nvcc(tmp_path: Path, info: DeviceInfo) -> None:
    real = compilation.nvcc().path
    # An nvcc that prints its version but does not compile.
    fake = drivers.program(
        tmp_path / "bin" / "nvcc",
        f'case "$1" in --version|--list-gpu-arch) exec "{real}" "$1";; esac\n'
        'echo "this nvcc compiles nothing: error" >&2; exit 1',
    )
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    mine = {"MATBENCH_CACHE_DIR": str(cache), "MATBENCH_STATE_DIR": str(tmp_path)}
    without = {**mine, "PATH": f"{fake.parent}{os.pathsep}{os.environ['PATH']}"}
    [first] = run_elsewhere(mine, "tiled", "--set", "TILE=16", "--sizes", "64")
    assert first["status"] == "measured", first["reason"]
    both = run_elsewhere(without, "tiled", "--set", "TILE=16,8", "--sizes", "64")
    again, other = sorted(both, key=lambda one: -one["case"]["params"]["TILE"])
    assert again["status"] == "measured", again["reason"]
    assert other["status"] == "failed"
    assert "this nvcc compiles nothing" in other["reason"]


# -- bad kernels ---------------------------------------------------------------------------------

BAD = {
    "illegal-write": ("{ *(volatile int *)0 = 1; }", "illegal"),
    "far-read": ("{ C[0] = A[(size_t)1 << 40]; }", "illegal"),
    "misaligned": ("{ *(volatile float *)((char *)C + 1) = 1; }", "misaligned"),
    "traps": ('{ asm volatile("trap;"); }', "CUDA"),
    "no-compile": ("{ C[0] = nothing_of_this_name; }", "nothing_of_this_name"),
    "spins": (SPIN_BODY, "running took longer than 4.8 s and was stopped (see --timeout)"),
}  # fmt: skip


@pytest.mark.alone
@pytest.mark.long
def test_the_device_outlives_bad_kernels(info: DeviceInfo, write_kernel: KernelWriter) -> None:
    """A sticky error ends with its worker: a good kernel between bad ones stays as fast."""
    tiled = case_of("tiled", "500", info, TILE=16)
    options = Options(blocks=False, max_time_s=0.3)
    medians, failures = [], {}
    with worker.WorkerPool(options, Deadlines(build_s=120, run_s=3)) as pool:
        device = pool.worker(info)
        for name, (body, _) in BAD.items():
            good = right(device, tiled)
            medians.append(present(good.median_ns))
            path = write_kernel(name, body=body)
            bad = case_of(path, 20, info, TILE=8)
            failures[name] = device.measure(bad)
        right(device, tiled)
    for name, (_, words) in BAD.items():
        assert failures[name].status == "failed", name
        assert words in (failures[name].reason or ""), name
    assert max(medians) < 1.2 * min(medians)


ALIGNED = changed(
    GOOD_BODY, (SIZES, f"void *workspace, {SIZES}"),
    ("float sum = 0.0f;", "volatile float *sum = (float *)workspace + (size_t)row * N + column;\n"
        "    *sum = (size_t)workspace % 1024;"),
    ("sum +=", "*sum +="), ("= sum;", "= *sum;"),
)  # fmt: skip


@pytest.mark.parametrize("graph", [False, True])
def test_a_workspace_is_aligned_and_its_own_in_every_launch(
    graph: bool, cuda: Backend, info: DeviceInfo, write_kernel: KernelWriter
) -> None:
    path = write_kernel(
        front='args = ["A", "B", "C", "workspace", "M", "N", "K"]',
        launch='workspace_bytes = "4 * M * N"',
        body=ALIGNED,
    )
    options = Options(cold=not graph, hot=True, graph=graph, max_time_s=0.1)
    case = case_of(path, "33x65x17", info, TILE=8)
    found: Any = right(Session(cuda, Cache(), options), case)
    assert found.hot.graph == graph


def test_all_memory_is_aligned(cuda: Backend) -> None:
    made = [cuda.allocate(nbytes) for nbytes in (1, 100, 513, 5000, 1, 1 << 20, 7, 3 << 20)]
    assert all(buffer.handle % 1024 == 0 for buffer in made)
    for buffer in made:
        cuda.release(buffer)


def test_memory_is_known_to_the_end_of_its_last_page(cuda: Backend) -> None:
    with Memory(cuda) as memory:
        small, large = memory.allocate(5000), memory.allocate(3 << 20)
        parts = [(part.handle, part.handle + part.nbytes) for part in cuda.memory_without([small])]
        assert any(
            start <= large.handle and end >= large.handle + (4 << 20) for start, end in parts
        )
        assert all(end <= small.handle or start >= small.handle + 5000 for start, end in parts)
        assert any(0 <= start - small.handle - 5000 < 4 for start, _ in parts)
        assert sum(part.nbytes for part in cuda.memory_without([])) % (2 << 20) == 0
