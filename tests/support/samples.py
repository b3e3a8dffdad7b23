"""Samples as the device makes them."""

from __future__ import annotations

from collections.abc import Iterable

from matbench import workloads
from matbench.bench.device_kernels import DeviceKernels
from matbench.bench.prepared import Prepared
from matbench.bench.samples import Samples
from matbench.cache import Cache
from matbench.model import Kernel, LaunchRules, NumericContract, Problem
from matbench.workloads.oracle import Trial


def sampled(
    kernels: DeviceKernels,
    problem: Problem,
    keys: Iterable[int],
    contract: NumericContract = NumericContract(),  # noqa: B008
    *,
    signed: bool = True,
) -> list[Trial]:
    """The inputs for these keys with their expected C."""
    prepared = Prepared(kernels, problem, contract, Cache(), guards=False)
    try:
        kernel = Kernel(name="any", launch=LaunchRules((1,), (1,)), scales=contract.scales)
        shape = workloads.workload_of(problem).shape("C", problem)
        buffers = prepared.buffers(shape, kernel if contract.scales else None)
        samples = Samples(prepared, signed=signed)
        return [samples.trial(buffers, samples.draw(key)) for key in keys]
    finally:
        prepared.release()
