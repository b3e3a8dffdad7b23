"""Several GPUs of one model: stand-ins that the OpenCL CPU computes for.

Each has its own worker process, and they work at the same time, as GPUs do.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from matbench import backends
from matbench.bench.options import Options
from matbench.errors import CaseError
from matbench.model import DeviceInfo
from matbench.worker import worker

_begin = worker._begin


def cards(cpu: DeviceInfo, count: int = 2, name: str = "A Card") -> list[DeviceInfo]:
    """GPUs of one model, with UUIDs."""
    return [
        msgspec.structs.replace(
            cpu,
            index=index,
            name=name,
            kind="gpu",
            properties=cpu.properties | {"UUID": f"GPU-{name[-1]}{index}"},
        )
        for index in range(count)
    ]


def installed(patch: pytest.MonkeyPatch, found: list[DeviceInfo]) -> None:
    """Pretend that these are the devices of this machine."""

    def devices(name: str) -> list[DeviceInfo]:
        if name != "opencl":
            raise backends.UnavailableError(f"no {name} here")
        return found

    patch.setattr(backends, "devices", devices)
    patch.setattr(worker, "_begin", begin)


def begin(device: DeviceInfo, options: Options) -> None:
    """In a worker process: any of the cards is the first OpenCL device, the CPU.

    Its bandwidth is not measured: that of a GPU takes a CPU long.
    """
    from matbench.backends import opencl_runtimes
    from matbench.bench import bandwidth

    real: Any = opencl_runtimes.devices
    measured = bandwidth.measured

    def known(backend: backends.Backend, *args: Any, **more: Any) -> Any:
        if backend.info.kind == "gpu":
            raise CaseError("not measured")
        return measured(backend, *args, **more)

    if not hasattr(opencl_runtimes, "is_dealt"):  # a process may begin again
        opencl_runtimes.is_dealt = True  # type: ignore[attr-defined]
        opencl_runtimes.devices = lambda: [real()[0]] * 8
        bandwidth.measured = known
    # It relies on a GPU's clock, and on processors that do nothing else.
    checks = options.checks - {"impossible"}
    _begin(device, msgspec.structs.replace(options, checks=checks))
