"""Puts together the explanation of a case's speed: its traffic, and what limits it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from matbench import workloads
from matbench.analysis.limits import held_by_cache, of_case
from matbench.analysis.ranking import held_mhz
from matbench.features.explain.record import (
    Bottleneck,
    BoundBy,
    Explanation,
    Fit,
    HardwareCounters,
    Limits,
    MachineCode,
)
from matbench.features.explain.traffic import of_code, traffic
from matbench.model import Case, DeviceInfo
from matbench.records.outcome import CaseRecord, Outcome

#: Tensor-core instructions in a source, in PTX or CUDA C++.
_TENSOR_CORES = re.compile(r"\b(?:wg)?mma(?:\.|_sync|_async)|\bwmma::|\btcgen05\.mma")
#: A case that reaches this share of a limit is bound by it.
BOUND_SHARE = 0.7
#: Reads alone can exceed the bandwidth of a copy, by this factor at most.
_MOST_OF_A_COPY = 1.2


def explanation(
    case: Case,
    device: DeviceInfo | None,
    at: DeviceInfo,
    outcome: Outcome | None,
    limits: Limits | None,
    fits: Sequence[Fit] = (),
    counters: HardwareCounters | None = None,
    code: MachineCode | None = None,
) -> Explanation:
    """The explanation of a case; without a device nothing is measured, and it is launched `at` one.

    Without `[model]`, the traffic is that of the machine code.
    """
    whole_numbers = workloads.workload_of(case.problem).element == "int32"
    tensor_cores = _TENSOR_CORES.search(case.kernel.source) is not None
    moved = traffic(case.kernel, case.problem, case.params, at.limits)
    if moved.loads is None and code is not None:
        moved = of_code(moved, code, case.kernel)
    about = outcome.case if outcome is not None else CaseRecord.from_case(case, device)
    # The clock while the case was sampled, or else while the limits were measured.
    mhz = held_mhz(outcome.timing) if outcome is not None else None
    mhz = mhz or (limits.sm_mhz if limits is not None else None)

    rate, bound = None, Bottleneck(by="not known")
    if outcome is not None and outcome.median_ns:
        seconds = outcome.median_ns * 1e-9
        rate = moved.operations / seconds
        if device is not None and limits is not None:
            copied_bytes = limits.copy_bytes_per_s * seconds
            has_own_limit = rate > 0 and not (whole_numbers or tensor_cores)
            computed = rate / limits.fma_flop_per_s if has_own_limit else None
            least = moved.least_bytes / copied_bytes
            dram_bytes = counters.dram_bytes if counters is not None else None
            counted = dram_bytes / copied_bytes if dram_bytes is not None else None
            cached = held_by_cache(device, moved.least_bytes, outcome.mode)
            idle = 0
            if device.kind == "gpu" and about.launch is not None:
                idle = max(0, device.limits["multiprocessors"] - about.launch.blocks)
            bound = Bottleneck(
                by=_by(computed or 0.0, least, counted, cached),
                computed_share=computed,
                least_share=least,
                modelled_share=moved.bytes / copied_bytes if moved.bytes is not None else None,
                counted_share=counted,
                idle_multiprocessors=idle,
            )
    return Explanation(
        case=about,
        outcome=outcome,
        tensor_cores=tensor_cores,
        whole_numbers=whole_numbers,
        traffic=moved,
        operations_per_s=rate,
        limits=limits,
        clock_flop_per_s=(
            of_case(device, mhz, about) if device is not None and not whole_numbers else None
        ),
        sm_mhz=mhz,
        fits=tuple(fits),
        counters=counters,
        code=code,
        bound=bound,
    )


def _by(computed: float, least: float, counted: float | None, cached: bool) -> BoundBy:
    """The limit that a case reaches, by its share of each."""
    if computed > 1:
        return "doubtful limit"
    if computed >= BOUND_SHARE:
        return "arithmetic"
    if counted is not None:
        return "memory" if counted >= BOUND_SHARE else "neither"
    if least >= BOUND_SHARE and cached:
        return "cache"
    return "memory" if BOUND_SHARE <= least <= _MOST_OF_A_COPY else "neither"
