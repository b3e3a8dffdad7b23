"""Sizes, inputs, factors and batches that reveal mistakes, as cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matbench import workloads
from matbench.features.probes import shapes
from matbench.kernelfile import sweep
from matbench.model import SCALED_BLOCK, Case, DeviceInfo, Kernel, Problem

#: Of the probes of large matrices, so that they are soon done.
_MOST_OPERATIONS = 2**40
_SCALINGS: tuple[dict[str, Any], ...] = (
    {"alpha": -1.5}, {"beta": 0.75}, {"alpha": -1.5, "beta": 0.75}, {"batch": 3}
)  # fmt: skip


def probed(
    kernel: Kernel, overrides: Mapping[str, tuple[int, ...]], device: DeviceInfo,
    memory_bytes: int | None,
) -> list[tuple[str, Case]]:  # fmt: skip
    """Cases at awkward shapes, each with its purpose, grouped by problem.

    If the host's `memory_bytes` are given, also the largest C that fits easily.
    """
    workload = workloads.workload_of(kernel)
    first, *others = sweep.scalings(kernel, {})
    probes: list[tuple[str, Case]] = []
    for params in sweep.parameter_sets(kernel, overrides):
        purposes = shapes.awkward(workload, params)
        if kernel.scales == "blocks":
            purposes[65, 2 * SCALED_BLOCK + 34, 3 * SCALED_BLOCK + 16] = "blocks with scales"
        for size, purpose in list(purposes.items()):
            near = sweep.allowed(kernel, size, params, device)
            if near is not None:
                purposes.setdefault(near, f"{purpose}: nearest that `where` allows")
        for (m, n, k), purpose in purposes.items():
            for kind in workload.probed_inputs:
                problem = Problem(m, n, k, inputs=kind, workload=workload.name, **first)
                probes.append((purpose, sweep.case(kernel, problem, params, device)))
        if workload.name == workloads.DEFAULT:
            # The other factors and batches that the kernel computes, at one of the shapes.
            size = next(size for size, purpose in purposes.items() if purpose == "primes")
            m, n, k = sweep.allowed(kernel, size, params, device) or size
            for scaling in (first | scaling for scaling in (*others, *_SCALINGS)):
                problem = Problem(m, n, k, workload=kernel.workload, **scaling)
                if sweep.not_computed(kernel, problem) is None:
                    purpose = ", ".join(f"{name} = {value:g}" for name, value in scaling.items())
                    probes.append((purpose, sweep.case(kernel, problem, params, device)))
    probes.sort(key=lambda probe: probe[1].problem)
    return probes + _largest(kernel, overrides, device, memory_bytes or 0)


def _largest(
    kernel: Kernel, overrides: Mapping[str, tuple[int, ...]], device: DeviceInfo, memory_bytes: int
) -> list[tuple[str, Case]]:
    """The cases of the largest matrices, or the nearest that the kernel allows, whose references
    fit twice into the host's memory, and all that the trials need into the device's."""
    workload = workloads.workload_of(kernel)
    probes: list[tuple[str, Case]] = []
    inputs = max(workload.probed_inputs, key="signed".__eq__)  # these have the fewest trials
    first = next(sweep.scalings(kernel, {}))
    device_bytes = device.properties.get("global memory (bytes)") or memory_bytes

    def fits(shape: shapes.Large) -> bool:
        m, n, k, batch = shape
        problem = Problem(m, n, k, workload=workload.name, batch=batch)
        is_small = 2 * workload.host_bytes(problem) < memory_bytes
        return is_small and shapes.device_bytes(workload, problem) < 0.9 * int(device_bytes)

    for large in shapes.large(workload):
        if (shape := next(filter(fits, large), None)) is None:
            continue
        m, n, k, batch = shape
        for params in sweep.parameter_sets(kernel, overrides):
            size = sweep.allowed(kernel, (m, n, k), params, device) or (m, n, k)
            scaling = first | {"batch": batch}
            problem = Problem(*size, inputs=inputs, workload=workload.name, **scaling)
            is_short = workload.operations(problem) <= _MOST_OPERATIONS
            if is_short and sweep.not_computed(kernel, problem) is None:
                probes.append((large[shape], sweep.case(kernel, problem, params, device)))
    return probes
