"""Puts together the explanation of a case's speed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from matbench import workloads
from matbench.analysis.limits import of_case
from matbench.analysis.ranking import held_mhz
from matbench.features.explain import other_devices
from matbench.features.explain.bounds import bound
from matbench.features.explain.traffic import of_code, traffic
from matbench.model import Case, DeviceInfo, Kernel, Problem
from matbench.records.explanation import Explanation, HardwareCounters, Limits, MachineCode, Width
from matbench.records.outcome import CaseRecord, Outcome

#: Tensor-core instructions in a source, in PTX or CUDA C++.
_TENSOR_CORES = re.compile(r"\b(?:wg)?mma(?:\.|_sync|_async)|\bwmma::|\btcgen05\.mma")


def chosen(
    kernel: Kernel,
    problem: Problem,
    params: Sequence[dict[str, int]],
    tile: int | None,
    outcomes: Iterable[tuple[Case, Outcome]],
) -> tuple[Case, Outcome | None]:
    """The case to explain: the fastest of those found, with that TILE if one is given.

    If none was measured, the first of them; if none was found, the first of `params`, without
    launch and outcome.
    """
    fit = [values for values in params if tile is None or values.get("TILE") == tile]
    mine = [(case, outcome) for case, outcome in outcomes if case.params in fit]
    timed = [(outcome.median_ns, i) for i, (_, outcome) in enumerate(mine) if outcome.median_ns]
    if timed:
        return mine[min(timed)[1]]
    return mine[0] if mine else (Case(kernel, problem, fit[0], None), None)


def explanation(
    case: Case,
    device: DeviceInfo | None,
    outcome: Outcome | None,
    limits: Limits | None,
    widths: Sequence[Width],
    counters: HardwareCounters | None = None,
    code: MachineCode | None = None,
) -> Explanation:
    """The explanation of a case; without a device nothing is measured.

    Without `[model]`, the traffic is that of the machine code.
    """
    workload = workloads.workload_of(case.problem)
    whole_numbers = workload.element == "int32"
    tensor_cores = _TENSOR_CORES.search(case.kernel.source) is not None
    # Without a device: the first of the requested architectures.
    named = (width.architecture for width in widths if width.architecture is not None)
    at = device or other_devices.device_of(other_devices.named(next(named)))
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
        widths=tuple(widths),
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
