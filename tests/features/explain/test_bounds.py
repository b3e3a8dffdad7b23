"""What bounds a case: memory, arithmetic or neither; and the conclusion in words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support import records
from support.golden import paged
from support.h200 import H200, KERNELS, LIMITS, case_of, outcome_of

from matbench.features.explain import occupancy
from matbench.features.explain.explanation import explanation
from matbench.features.explain.record import Bottleneck, HardwareCounters
from matbench.features.explain.view import words
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo, Inputs, Problem, Resources
from matbench.records.outcome import Build


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
    for outcome, limits, device in (
        (None, LIMITS, H200), (wrong, LIMITS, H200), (timed, None, H200), (timed, LIMITS, None),
    ):  # fmt: skip
        found = explanation(case, device, H200, outcome, limits)
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
