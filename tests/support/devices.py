"""Descriptions of devices that need not exist here."""

from __future__ import annotations

import msgspec

from matbench.model import DeviceInfo

LIMITS = {
    "max_threads_per_block": 1024, "max_block_x": 1024, "max_block_y": 1024, "max_block_z": 64,
    "max_grid_x": 2**31 - 1, "max_grid_y": 65535, "max_grid_z": 65535,
    "max_shared_bytes_per_block": 49152, "max_static_shared_bytes": 49152, "warp_size": 32,
    "multiprocessors": 4,
}  # fmt: skip
GPU = DeviceInfo(
    backend="cuda", index=0, name="A GPU", kind="gpu", driver="1", toolkit="2", limits=LIMITS,
    compute_capability=(9, 0),
)  # fmt: skip
CPU = msgspec.structs.replace(GPU, backend="opencl", kind="cpu", compute_capability=None)
