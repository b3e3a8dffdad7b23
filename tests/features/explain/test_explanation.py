"""The traffic of a case, what limits it, and the contents of an explanation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support import records
from support.golden import paged
from support.h200 import H200, KERNELS, LIMITS, case_of, outcome_of
from support.records import outcome

from matbench.errors import UsageError
from matbench.features.explain import occupancy
from matbench.features.explain.explanation import explanation, traffic
from matbench.features.explain.record import Bottleneck, Explanation, HardwareCounters, Traffic
from matbench.features.explain.view import facts, words
from matbench.kernelfile import sweep
from matbench.model import Case, Conditions, DeviceInfo, Inputs, Parameter, Problem, Resources
from matbench.records.outcome import Build


def explained() -> Explanation:
    case = case_of("tiled", 4096)
    return explanation(case, H200, H200, outcome_of(case, 1e6), LIMITS)


def test_the_clock_is_that_of_the_samples_or_else_of_the_limits() -> None:
    case = case_of("tiled", 64)
    assert explained().sm_mhz == 1980
    assert explained().clock_flop_per_s == 132 * 128 * 2 * 1980e6
    timing = records.timing(1, conditions=tuple(Conditions(sm_mhz=c) for c in (1500, 1400, 1700)))
    result = explanation(case, H200, H200, outcome_of(case, 1, cold=timing), LIMITS)
    assert result.sm_mhz == 1550


# Traffic


def moved(name: str, problem: Problem, **params: int) -> Traffic:
    return traffic(KERNELS.get(name), problem, params, H200.limits)


def square(n: int) -> Problem:
    return Problem(n, n, n)


@pytest.mark.parametrize(
    ("name", "params", "loads"),
    [
        ("naive-2d", {"TILE": 16}, 2e9),
        ("thread-1d", {}, 2e9),
        ("tiled", {"TILE": 8}, 2.5e8),
        ("tiled", {"TILE": 16}, 1.25e8),
        ("tiled", {"TILE": 32}, 6.25e7),
    ],
)
def test_tiles_divide_loads_by_their_width(name: str, params: dict[str, int], loads: float) -> None:
    assert moved(name, square(1000), **params).loads == loads


def test_the_least_traffic_stands_beside_the_modelled() -> None:
    found = moved("naive-2d", Problem(200, 300, 400), TILE=16)
    assert found.operations == 2 * 200 * 300 * 400
    assert found.least_bytes == 4 * (200 * 400 + 400 * 300 + 200 * 300)
    assert found.bytes == 4 * (2 * 200 * 300 * 400 + 200 * 300)
    assert found.intensity == pytest.approx(48e6 / found.bytes)
    assert found.least_intensity == pytest.approx(48e6 / found.least_bytes)


@pytest.mark.parametrize(("beta", "batch", "Cs"), [(0.0, 1, 1), (0.5, 1, 2), (0.5, 3, 2)])
def test_the_least_traffic_reads_C_if_it_is_added(beta: float, batch: int, Cs: int) -> None:
    found = moved("naive-2d", Problem(200, 300, 400, beta=beta, batch=batch), TILE=16)
    assert found.least_bytes == 4 * (200 * 400 + 400 * 300 + Cs * 200 * 300) * batch


@pytest.mark.parametrize("batch", [1, 3])
def test_every_product_of_a_batch_is_stored(batch: int) -> None:
    found = moved("batched-small", Problem(20, 30, 40, batch=batch), TILE=16)
    assert found.stores == 20 * 30 * batch
    case = outcome("batched-small", problem=Problem(20, 30, 40, batch=batch)).case
    shown = Explanation(case=case, traffic=found, bound=Bottleneck(by="memory"))
    [stores] = [fact for fact in facts(shown) if fact.name == "modelled stores"]
    assert "the output, once" in str(stores)


def test_without_a_claim_only_the_least_is_modelled() -> None:
    kernel = msgspec.structs.replace(KERNELS.get("tiled"), model={})
    found = traffic(kernel, square(1000), {"TILE": 16}, H200.limits)
    assert found == Traffic(2 * 10**9, 12 * 10**6, 2e9 / 12e6)


def test_a_dot_product_is_counted_by_its_own_measure() -> None:
    found = moved("dot-tree", Problem(1, 2**20, 1, workload="dot"), THREADS=256, BLOCKS=32)
    assert (found.operations, found.loads) == (2 * 2**20, 2 * 2**20)
    assert found.least_bytes == 4 * (2 * 2**20 + 1)


def test_inputs_of_16_bits_are_half_the_bytes() -> None:
    half = tuple(Parameter("__half", name, True) for name in "AB")
    parameters = (*half, Parameter("float", "C", True))
    kernel = msgspec.structs.replace(KERNELS.get("naive-2d"), parameters=parameters)
    found = traffic(kernel, square(100), {"TILE": 16}, H200.limits)
    assert found.least_bytes == 2 * 2 * 10**4 + 4 * 10**4
    assert found.bytes == 2 * 2 * 10**6 + 4 * 10**4


def test_a_claim_of_no_traffic_is_refused() -> None:
    kernel = msgspec.structs.replace(
        KERNELS.get("tiled"), model={"global_loads": "0 - M * N"}, path="idle.cu"
    )
    with pytest.raises(UsageError, match=r"^idle.cu: \[model\] gives 0 bytes of traffic"):
        traffic(kernel, square(33), {"TILE": 16}, H200.limits)
    kernel = msgspec.structs.replace(kernel, model={"global_loads": "M * TILES"})
    with pytest.raises(UsageError, match=r"^idle.cu: \[model\]: .*TILES"):
        traffic(kernel, square(33), {"TILE": 16}, H200.limits)


# What limits a case


def bounded(n: int, median_ns: float, name: str = "tiled", **more: Any) -> Bottleneck:
    """A kernel with T = 32 at size n that took this long on an H200."""
    case, device = case_of(name, n), more.pop("device", H200)
    return explanation(case, device, H200, outcome_of(case, median_ns), LIMITS, **more).bound


def at(flop_per_s: float, n: int = 4096) -> float:
    """Nanoseconds for a product of size n at this rate."""
    return 2 * n**3 / flop_per_s * 1e9


@pytest.mark.parametrize(
    ("share", "by"), [(0.69, "neither"), (0.7001, "arithmetic"), (1.0, "arithmetic"),
                      (1.001, "doubtful limit"), (5.0, "doubtful limit")],
)  # fmt: skip
def test_from_seven_tenths_of_the_limit_on_and_not_above_it(share: float, by: str) -> None:
    assert bounded(4096, at(share * 60e12)).by == by


LEAST_64 = 3 * 64 * 64 * 4


@pytest.mark.parametrize(("read", "by"), [(50e9, "memory"), (38.8e9, "memory"), (30e9, "neither")])
def test_counters_settle_whether_memory_bounds_it(read: float, by: str) -> None:
    counted = HardwareCounters(dram_read_bytes=read, dram_written_bytes=6e9)
    found = bounded(4096, 16e6, counters=counted)
    assert found.by == by
    assert found.counted_share == pytest.approx((read + 6e9) / 16e-3 / 4e12)
    # Counted traffic takes precedence over the least possible traffic.
    cached = HardwareCounters(dram_read_bytes=0.0, dram_written_bytes=0.0)
    assert bounded(64, LEAST_64 / 3.6e12 * 1e9, counters=cached).by == "neither"


def test_half_a_count_is_none() -> None:
    counted = HardwareCounters(dram_read_bytes=50e9)
    assert bounded(4096, 16e6, counters=counted).counted_share is None


def test_a_launch_with_few_blocks_leaves_multiprocessors_idle() -> None:
    assert bounded(256, 20e3).idle_multiprocessors == 132 - 64
    assert bounded(4096, 20e3).idle_multiprocessors == 0
    cpu = msgspec.structs.replace(H200, kind="cpu")
    assert bounded(256, 20e3, device=cpu).idle_multiprocessors == 0


def test_nothing_is_known_without_a_time_a_device_or_its_limits() -> None:
    case = case_of("tiled", 64)
    timed = outcome_of(case, 1e6)
    wrong = outcome_of(case, 1e6, status="wrong")
    for one, limits, device in (
        (None, LIMITS, H200), (wrong, LIMITS, H200), (timed, None, H200), (timed, LIMITS, None),
    ):  # fmt: skip
        found = explanation(case, device, H200, one, limits)
        assert found.bound == Bottleneck(by="not known")


# In words: only what was modelled or measured


def said(
    case: Case, median_ns: float = 1e6, counters: HardwareCounters | None = None,
    device: DeviceInfo = H200, **changes: Any,
) -> str:  # fmt: skip
    outcome = outcome_of(case, median_ns, **changes)
    here = occupancy.fit(case, device, lambda *_: None, outcome.build, here=True)
    return "\n".join(words(explanation(case, device, device, outcome, LIMITS, [here], counters)))


def asking(instruction: str) -> Case:
    case = case_of("tiled", 4096)
    source = f'{case.kernel.source}\n// asm("{instruction}")'
    kernel = msgspec.structs.replace(case.kernel, source=source)
    return msgspec.structs.replace(case, kernel=kernel)


def of_workload(name: str, N: int, inputs: Inputs) -> Case:
    kernel = KERNELS.get(name)
    problem = Problem(1, N, 1, inputs=inputs, workload=kernel.workload)
    return sweep.case(kernel, problem, next(iter(sweep.parameter_sets(kernel, {}))), H200)


COUNTED = HardwareCounters(dram_read_bytes=50e9, dram_written_bytes=6e9, achieved_occupancy=0.97)
CACHED = msgspec.structs.replace(H200, properties={"last-level cache (bytes)": 50 * 2**20})
FEW_WARPS = Build(resources=Resources(registers=255, static_shared_bytes=120_000))


def pages() -> dict[str, str]:
    small, large = case_of("tiled", 64), case_of("tiled", 4096)
    hot = records.timing(13.7e-6)
    tensor = ("mma.sync.aligned.m16n8k8", "wmma::load_matrix_sync", "wgmma.mma_async")
    return {
        "bound by arithmetic": said(large, at(50e12)),
        "faster than the limit, which does not apply": said(large, at(300e12)),
        "bound by memory": said(small, LEAST_64 / 3.6e3),
        "caches serve most": said(case_of("naive-2d", 4096), 23e6),
        "bound by neither": said(large, 16e6),
        "much of what is modelled": said(case_of("tiled", 1024), 2 * 1024**3 / 32 * 4 / 3.2e3),
        "few blocks": said(case_of("tiled", 256), 20e3),
        "a CPU": said(large, 16e6, device_kind="cpu", backend="opencl"),
        "a cache holds everything, hot": said(small, device=CACHED, hot=hot),
        "a cache holds everything, cold": said(small, 13.7, device=CACHED),
        **{asks: said(asking(asks), at(50e12)) for asks in tensor},
        "integers": said(of_workload("cubes-blocks", 10**5, "digits"), 1e4),
        "no arithmetic": said(of_workload("reverse-static", 64, "ramp")),
        "few warps": said(case_of("tiled", 4096, 16), 16e6, build=FEW_WARPS),
        "counted": said(large, 16e6, COUNTED),
        "wrong": said(small, status="wrong", reason="result: C is off\nat row 3"),
        "interrupted": "\n".join(words(explanation(small, H200, H200, None, LIMITS))),
        "no limits": "\n".join(words(explanation(small, H200, H200, outcome_of(small, 1e6), None))),
    }


def test_no_more_is_said(file_regression: FileRegressionFixture) -> None:
    file_regression.check(paged(pages()), encoding="utf-8")
