"""Puts together the explanation of a case's speed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from matbench import workloads
from matbench.analysis.limits import of_case
from matbench.analysis.ranking import held_mhz
from matbench.features.explain.bounds import bound
from matbench.features.explain.record import (
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
    workload = workloads.workload_of(case.problem)
    whole_numbers = workload.element == "int32"
    tensor_cores = _TENSOR_CORES.search(case.kernel.source) is not None
    moved = traffic(case.kernel, case.problem, case.params, at.limits)
    if moved.loads is None and code is not None:
        moved = of_code(moved, code, case.kernel)
    median_ns = outcome.median_ns if outcome is not None else None
    # The clock while the case was sampled, or else while the limits were measured.
    mhz = held_mhz(outcome.timing) if outcome is not None else None
    mhz = mhz or (limits.sm_mhz if limits is not None else None)
    about = outcome.case if outcome is not None else CaseRecord.from_case(case, device)
    return Explanation(
        case=about,
        outcome=outcome,
        tensor_cores=tensor_cores,
        whole_numbers=whole_numbers,
        traffic=moved,
        operations_per_s=moved.operations / median_ns * 1e9 if median_ns else None,
        limits=limits,
        clock_flop_per_s=(
            of_case(device, mhz, about) if device is not None and not whole_numbers else None
        ),
        sm_mhz=mhz,
        fits=tuple(fits),
        counters=counters,
        code=code,
        bound=bound(
            outcome,
            moved,
            limits,
            device,
            counters,
            has_own_limit=not (whole_numbers or tensor_cores),
        ),
    )
