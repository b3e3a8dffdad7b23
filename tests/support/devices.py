"""Descriptions of devices that need not exist here."""

from __future__ import annotations

from typing import Any

from matbench.model import DeviceInfo


def device(**changes: Any) -> DeviceInfo:
    """A CPU through OpenCL, unless its fields say otherwise."""
    fields: dict[str, Any] = {
        "backend": "opencl", "index": 0, "name": "A Processor", "kind": "cpu", "driver": "1.2",
        "toolkit": "OpenCL C 3.0", "limits": {"warp_size": 1},
    }  # fmt: skip
    return DeviceInfo(**(fields | changes))


def gpu(**changes: Any) -> DeviceInfo:
    """A GPU through CUDA, whose limits are not known."""
    return device(**({"backend": "cuda", "name": "A GPU", "kind": "gpu", "limits": {}} | changes))


LIMITS = {
    "max_threads_per_block": 1024, "max_block_x": 1024, "max_block_y": 1024, "max_block_z": 64,
    "max_grid_x": 2**31 - 1, "max_grid_y": 65535, "max_grid_z": 65535,
    "max_shared_bytes_per_block": 49152, "max_static_shared_bytes": 49152, "warp_size": 32,
    "multiprocessors": 4,
}  # fmt: skip
GPU = gpu(driver="1", toolkit="2", limits=LIMITS, compute_capability=(9, 0))
CPU = device(name=GPU.name, driver="1", toolkit="2", limits=LIMITS)
