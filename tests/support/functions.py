"""Functions, each measured in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from matbench import backends
from matbench.bench.options import CHECKS, Deadlines, Options
from matbench.kernelfile import sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.model import DeviceInfo, Kernel
from matbench.records.outcome import Outcome
from matbench.worker import worker
from matbench.worker.worker import WorkerPool
from matbench.workloads import MATMUL

_begin = worker._begin


def begin_without_isolation(device: DeviceInfo, options: Options, _: bool) -> None:
    """A worker process begins as where functions cannot have a process of their own."""
    _begin(device, options, False)


def measured(
    kernel: Kernel, size: str, *, backend: str = "opencl", checks: frozenset[str] = CHECKS,
    max_time_s: float = 0.2, factors: Mapping[str, float | str] | None = None,
) -> Outcome:  # fmt: skip
    """The outcome with these checks, at the first values of its constants."""
    device = backends.choose(backend, None)
    [problem] = parse_problems(size, MATMUL, "uniform")
    problem = msgspec.structs.replace(problem, **(factors or {}))
    params = {name: values[0] for name, values in kernel.sweep.items()}
    case = sweep.case(kernel, problem, params, device)
    options = Options(checks=checks, max_time_s=max_time_s).on(device.kind)
    with WorkerPool(options, Deadlines(run_s=60)) as pool:
        return pool.worker(device, kernel).measure(case)
