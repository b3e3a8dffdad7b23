"""What bounds a case: memory, arithmetic or neither; and the conclusion in words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support import records
from support.h200 import H200, KERNELS, LIMITS, case_of, outcome_of

from matbench.features.explain import occupancy
from matbench.features.explain.explanation import explanation
from matbench.features.explain.record import Bottleneck, HardwareCounters
from matbench.features.explain.view import words
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo, Problem, Resources
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


def words_of(
    n: int, median_ns: float, *, name: str = "tiled", counters: HardwareCounters | None = None
) -> str:
    """The conclusion about a kernel with T = 32 at size n that took this long on an H200."""
    return said(case_of(name, n), median_ns, counters)


MEMORY = "It is memory-bound"
COMPUTE = "It is compute-bound"


@pytest.mark.parametrize(
    ("name", "n", "median_ns", "bound", "parts"),
    [
        ("tiled", 4096, 2 * 4096**3 / 50e3, COMPUTE, [
            "It computes at 50.0 TFLOP/s, 83% of the 60.0 TFLOP/s measured for multiply-adds alone",
        ]),
        ("tiled", 4096, 2 * 4096**3 / 300e3, "", ["That limit does not apply to it"]),
        ("tiled", 64, 3 * 64 * 64 * 4 / 3.6e3, f"{MEMORY}: no kernel can move less.", [
            "the minimum traffic takes 90% of the bandwidth of a copy",
        ]),
        ("naive-2d", 4096, 23e6, "", [
            "would need 6.0 times the bandwidth of a copy, so caches serve at least 83% of it",
            "These figures do not show",
        ]),
        ("tiled", 4096, 16e6, "", [
            "It reaches neither limit; the model does not show what limits it.",
            "Its occupancy is 100%.",
            "`--counters` measures DRAM traffic",
        ]),
        ("tiled", 1024, 2 * 1024**3 / 32 * 4 / (0.8 * 4e3), "", [
            "The modelled traffic would take 81% of the bandwidth of a copy",
            "which the model does not show",
        ]),
        ("tiled", 256, 20e3, "", [
            "The launch has 64 blocks for 132 multiprocessors: 68 are idle.",
        ]),
    ],
)  # fmt: skip
def test_no_more_is_said_than_was_modelled_or_measured(
    name: str, n: int, median_ns: float, bound: str, parts: list[str]
) -> None:
    found = words_of(n, median_ns, name=name)
    for part in parts:
        assert part in found
    limits = (MEMORY, COMPUTE)
    assert [b for b in limits if b in found] == [b for b in limits if b in bound]
    assert bound in found


def test_what_a_cpu_lacks_is_no_model_of_a_gpu() -> None:
    found = said(case_of("tiled", 4096), 16e6, device_kind="cpu", backend="opencl")
    assert "It reaches neither limit; a CPU's caches and vector instructions are not" in found
    assert "the model does not show" not in found


def test_a_cache_that_holds_everything_is_no_memory() -> None:
    cached = msgspec.structs.replace(
        H200, properties={"last-level cache (bytes)": 50 * 1024 * 1024}
    )
    hot = records.timing(13.7e-6)
    found = said(case_of("tiled", 64), device=cached, hot=hot)
    assert "All data fits in the last-level cache" in found
    assert "-bound" not in found
    assert MEMORY in said(case_of("tiled", 64), 13.7, device=cached), "cold samples miss it"


@pytest.mark.parametrize(
    "asks", ["mma.sync.aligned.m16n8k8", "wmma::load_matrix_sync", "wgmma.mma_async"]
)
def test_tensor_cores_are_not_held_against_multiply_adds(asks: str) -> None:
    case = case_of("tiled", 4096)
    kernel = msgspec.structs.replace(case.kernel, source=f'{case.kernel.source}\n// asm("{asks}")')
    case = msgspec.structs.replace(case, kernel=kernel)
    found = said(case, 2 * 4096**3 / 50e12 * 1e9)
    assert "It uses tensor cores, whose limit is not measured" in found
    assert "-bound" not in found


def test_integers_are_not_held_against_floating_point() -> None:
    problem = Problem(1, 10**5, 1, inputs="digits", workload="cubes")
    kernel = KERNELS.get("cubes-blocks")
    case = sweep.case(kernel, problem, next(iter(sweep.parameter_sets(kernel, {}))), H200)
    found = said(case, 1e4)
    assert "It computes at 30.0 Gop/s with integers, for which no limit is measured" in found
    assert "flop" not in found.lower()


def test_what_computes_nothing_says_so() -> None:
    problem = Problem(1, 64, 1, inputs="ramp", workload="reverse")
    case = sweep.case(KERNELS.get("reverse-static"), problem, {}, H200)
    assert "It does no arithmetic; the minimum traffic takes" in said(case)


def test_few_resident_warps_are_said_to_be_few() -> None:
    resources = Resources(registers=255, static_shared_bytes=120_000)
    build = Build(resources=resources)
    found = said(case_of("tiled", 4096, 16), 16e6, build=build)
    assert "Its occupancy is 12%: few warps" in found


def test_with_counters_it_is_said_whether_memory_bounds_it() -> None:
    counted = HardwareCounters(
        dram_read_bytes=50e9, dram_written_bytes=6e9, achieved_occupancy=0.97
    )
    found = words_of(4096, 16e6, counters=counted)
    assert "its measured DRAM traffic takes 88% of the bandwidth of a copy" in found
    assert "It is memory-bound." in found
    assert "`--counters`" not in found


def test_without_a_time_the_reason_is_said() -> None:
    case = case_of("tiled", 64)
    found = said(case, status="wrong", reason="result: C is off\nat row 3")
    assert found.endswith("What limits it is not known: wrong, result: C is off.")
    interrupted = words(explanation(case, H200, H200, None, LIMITS))
    assert list(interrupted)[-1] == "What limits it is not known: the run was interrupted."
    unlimited = words(explanation(case, H200, H200, outcome_of(case, 1e6), None))
    assert list(unlimited)[-1] == "What limits it is not known: no limits were measured."
