"""Puts together the explanation of a case's speed: its traffic, and what limits it."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence

import msgspec

from matbench import workloads
from matbench.analysis.limits import held_by_cache, of_case
from matbench.analysis.ranking import held_mhz
from matbench.errors import UsageError
from matbench.features.explain import record
from matbench.kernelfile import expressions
from matbench.model import INTEGERS, WORD_BYTES, Case, DeviceInfo, Kernel, Problem
from matbench.records.outcome import CaseRecord, Outcome

#: Tensor-core instructions in a source, in PTX or CUDA C++.
_TENSOR_CORES = re.compile(r"\b(?:wg)?mma(?:\.|_sync|_async)|\bwmma::|\btcgen05\.mma")
#: A case that reaches this share of a limit is bound by it.
BOUND_SHARE = 0.7
#: Reads alone can exceed the bandwidth of a copy, by this factor at most.
_MOST_OF_A_COPY = 1.2
_CLAIMS = ("global_loads", "global_stores", "shared_loads")


def explanation(
    case: Case, device: DeviceInfo | None, at: DeviceInfo, outcome: Outcome | None,
    limits: record.Limits | None, fits: Sequence[record.Fit] = (),
    counters: record.HardwareCounters | None = None, machine_code: record.MachineCode | None = None,
) -> record.Explanation:  # fmt: skip
    """The explanation of a case; without a device nothing is measured, and it is launched `at` one.

    Without `[model]`, the traffic is that of the machine code.
    """
    whole_numbers = case.kernel.contract.storage in INTEGERS
    tensor_cores = _TENSOR_CORES.search(case.kernel.source) is not None
    moved = traffic(case.kernel, case.problem, case.params, at.limits)
    if moved.loads is None and machine_code is not None:
        moved = of_code(moved, machine_code, case.kernel)
    about = outcome.case if outcome is not None else CaseRecord.from_case(case, device)
    # The clock while the case was sampled, or else while the limits were measured.
    mhz = held_mhz(outcome.timing) if outcome is not None else None
    mhz = mhz or (limits.sm_mhz if limits is not None else None)

    rate, bound = None, record.Bottleneck(by="not known")
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
            bound = record.Bottleneck(
                by=_by(computed or 0.0, least, counted, cached),
                computed_share=computed,
                least_share=least,
                modelled_share=moved.bytes / copied_bytes if moved.bytes is not None else None,
                counted_share=counted,
                idle_multiprocessors=idle,
            )
    return record.Explanation(
        case=about,
        outcome=outcome,
        tensor_cores=tensor_cores,
        whole_numbers=whole_numbers,
        traffic=moved,
        operations_per_s=rate,
        limits=limits,
        clock_flop_per_s=of_case(device, mhz, about) if device and not whole_numbers else None,
        sm_mhz=mhz,
        fits=tuple(fits),
        counters=counters,
        code=machine_code,
        bound=bound,
    )


def _by(computed: float, least: float, counted: float | None, cached: bool) -> record.BoundBy:
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


def traffic(
    kernel: Kernel, problem: Problem, params: Mapping[str, int], limits: Mapping[str, int]
) -> record.Traffic:
    """The traffic of one case by `[model]`; without `global_stores`, the output is written once.

    `limits` are the device's, which front matter may name. `UsageError` if the model cannot be
    evaluated or gives no traffic.
    """
    try:
        constants = expressions.constants(kernel.let, params)
        values = {**limits, **constants, **kernel.values(problem)}
        texts = {name: kernel.model[name] for name in _CLAIMS if name in kernel.model}
        claimed = {n: float(expressions.evaluate(text, values)) for n, text in texts.items()}
    except expressions.ExpressionError as error:
        raise UsageError(f"{kernel.path}: [model]: {error}") from None
    workload = workloads.workload_of(problem)
    operations = workload.operations(problem)
    loaded, stored = WORD_BYTES[kernel.contract.storage], WORD_BYTES[kernel.contract.result]
    least_bytes = workload.least_bytes(problem, loaded, stored)
    shared, intensity = claimed.get("shared_loads"), operations / least_bytes
    least = record.Traffic(
        operations, least_bytes, intensity, shared_loads=shared, claims=kernel.model
    )
    if "global_loads" not in claimed:
        return least
    loads = claimed["global_loads"]
    stores = claimed.get("global_stores")
    if stores is None:  # each element of C once; if the host finishes the sum, one of each block
        stores = float(workload.words("C", problem) * problem.batch)
        if kernel.finish is not None:
            with contextlib.suppress(expressions.ExpressionError):
                grid = [expressions.whole(axis, values) for axis in kernel.launch.grid]
                stores = float(math.prod(grid))
    moved = loaded * loads + stored * stores
    if not moved > 0:
        raise UsageError(f"{kernel.path}: [model] gives {moved:g} bytes of traffic for {params}")
    if moved < least_bytes:
        return msgspec.structs.replace(least, claimed_bytes=moved)
    return msgspec.structs.replace(
        least, loads=loads, stores=stores, bytes=moved, intensity=operations / moved
    )


def of_code(least: record.Traffic, code: record.MachineCode, kernel: Kernel) -> record.Traffic:
    """The traffic that machine code requests, if all of its addresses could be derived."""
    loaded, stored = code.global_load_bytes, code.global_store_bytes
    if loaded is None or stored is None or loaded + stored < least.least_bytes:
        return least
    return msgspec.structs.replace(
        least,
        loads=loaded / WORD_BYTES[kernel.contract.storage],
        stores=stored / WORD_BYTES[kernel.contract.result],
        bytes=loaded + stored,
        intensity=least.operations / (loaded + stored),
        claimed_bytes=None,
        is_derived=True,
    )
