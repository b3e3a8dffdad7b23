"""The traffic of a case, what limits it, and the contents of an explanation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support import records
from support.golden import TableRegression, paged
from support.h200 import H200, KERNELS, LIMITS, case_of, outcome_of
from support.records import outcome

from matbench.errors import UsageError
from matbench.features.explain import occupancy
from matbench.features.explain.explanation import explanation, traffic
from matbench.features.explain.record import (
    Bottleneck,
    Explanation,
    HardwareCounters,
    Limits,
    Traffic,
)
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


def moved(
    name: str, size: tuple[int, int, int], *, beta: float = 0.0, batch: int = 1,
    **params: int,
) -> Traffic:  # fmt: skip
    kernel = KERNELS.get(name) if name in KERNELS.kernels else CHANGED[name]
    problem = Problem(*size, beta=beta, batch=batch, workload=kernel.workload)
    return traffic(kernel, problem, params, H200.limits)


HALF = (*(Parameter("__half", name, True) for name in "AB"), Parameter("float", "C", True))
CHANGED = {
    "naive-2d of float16": msgspec.structs.replace(KERNELS.get("naive-2d"), parameters=HALF),
    **{
        f"tiled with {model}": msgspec.structs.replace(KERNELS.get("tiled"), model=model)
        for model in ({}, {"global_loads": "0 - M * N"}, {"global_loads": "M * TILES"})
    },
}


def test_what_is_moved(table_regression: TableRegression) -> None:
    """What a kernel claims, or only the least without a claim; a claim of nothing is refused."""

    def said(question: str) -> str:
        try:
            found = msgspec.to_builtins(eval(f"moved({question})", {"moved": moved}))
        except UsageError as error:
            return str(error)
        return ", ".join(f"{key} {n!r}" for key, n in found.items() if n and key != "claims")

    table_regression("traffic.txt", said)


@pytest.mark.parametrize("batch", [1, 3])
def test_every_product_of_a_batch_is_stored(batch: int) -> None:
    found = moved("batched-small", (20, 30, 40), batch=batch, TILE=16)
    case = outcome("batched-small", problem=Problem(20, 30, 40, batch=batch)).case
    shown = Explanation(case=case, traffic=found, bound=Bottleneck(by="memory"))
    [stores] = [fact for fact in facts(shown) if fact.name == "modelled stores"]
    assert "the output, once" in str(stores)


# What limits a case


def at(flop_per_s: float, n: int = 4096) -> float:
    """Nanoseconds for a product of size n at this rate."""
    return 2 * n**3 / flop_per_s * 1e9


LEAST_64 = 3 * 64 * 64 * 4


def bounded(
    n: int, median_ns: float, read: float | None = None, written: float | None = 6e9,
    device: DeviceInfo | None = H200, limits: Limits | None = LIMITS, status: str = "measured",
) -> Bottleneck:  # fmt: skip
    """Tiles of 32 at size n that took this long on an H200, where ncu counted these bytes."""
    case = case_of("tiled", n)
    counted = HardwareCounters(dram_read_bytes=read, dram_written_bytes=written)
    outcome = outcome_of(case, median_ns, status=status) if status else None
    counters = counted if read is not None else None
    return explanation(case, device, H200, outcome, limits, counters=counters).bound


def test_what_limits_it(table_regression: TableRegression) -> None:
    """From seven tenths of a limit on, and not above it. Counted traffic takes precedence over the
    least, and settles whether memory bounds it; nothing is known without a time, a device or its
    limits."""
    names = {"bounded": bounded, "at": at, "CPU": msgspec.structs.replace(H200, kind="cpu")}

    def said(question: str) -> str:
        found = msgspec.to_builtins(eval(f"bounded({question})", names))
        shares = (f"{key} {n:.5g}" for key, n in found.items() if n is not None and key != "by")
        return ", ".join([found["by"], *shares])

    table_regression("bounds.txt", said)


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
