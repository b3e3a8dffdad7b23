"""Global memory traffic by the model in a kernel's front matter, and the minimum traffic."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping

import msgspec

from matbench import workloads
from matbench.errors import UsageError
from matbench.features.explain.record import MachineCode, Traffic
from matbench.kernelfile import expressions
from matbench.model import WORD_BYTES, Kernel, Problem

_CLAIMS = ("global_loads", "global_stores", "shared_loads")


def traffic(
    kernel: Kernel, problem: Problem, params: Mapping[str, int], limits: Mapping[str, int]
) -> Traffic:
    """The traffic of one case by `[model]`; without `global_stores`, the output is written once.

    `limits` are the device's, which front matter may name. `UsageError` if the model cannot be
    evaluated or gives no traffic.
    """
    try:
        constants = expressions.constants(kernel.let, params)
        values = {**limits, **constants, **kernel.values(problem)}
        claimed = {
            name: float(expressions.evaluate(kernel.model[name], values))
            for name in _CLAIMS
            if name in kernel.model
        }
    except expressions.ExpressionError as error:
        raise UsageError(f"{kernel.path}: [model]: {error}") from None
    workload = workloads.workload_of(problem)
    operations = workload.operations(problem)
    # Each input is read once, in its storage type, and the output is written once.
    loaded, stored = (
        WORD_BYTES[kind] for kind in (kernel.contract.storage, kernel.contract.result)
    )
    read = sum(workload.words(buffer, problem) for buffer in workload.reads)
    written = workload.words("C", problem) * (2 if problem.beta else 1)
    least_bytes = (loaded * read + stored * written) * problem.batch
    least = Traffic(
        operations,
        least_bytes,
        operations / least_bytes,
        shared_loads=claimed.get("shared_loads"),
        claims=kernel.model,
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


def of_code(least: Traffic, code: MachineCode, kernel: Kernel) -> Traffic:
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
