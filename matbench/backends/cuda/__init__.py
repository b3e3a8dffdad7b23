"""CUDA through PyCUDA: compiled by nvcc, run in the primary context, timed by events or clock64."""

from __future__ import annotations

from collections.abc import Sequence

from matbench.backends.cuda import compilation
from matbench.backends.cuda.backend import CudaBackend
from matbench.backends.cuda.compilation import compiled_by_nvcc, find
from matbench.backends.cuda.device import devices, preload
from matbench.backends.cuda.libcuda import gpu_is_present
from matbench.backends.protocol import Variant
from matbench.cache import Cache
from matbench.model import HOST, DeviceInfo, Kernel

__all__ = [
    "compiled_by_nvcc", "devices", "find", "gpu_is_present", "open_device", "precompile", "preload",
]  # fmt: skip

#: Opens a device that `devices` listed, with the cache for compiled code.
open_device = CudaBackend


def precompile(
    info: DeviceInfo,
    kernel: Kernel,
    params: dict[str, int],
    cache: Cache,
    variants: Sequence[Variant],
) -> None:
    """Put these builds of a kernel, or of a function on the host, into the cache."""
    from matbench.backends.functions import libraries

    ahead = {None: compilation.precompile, HOST: libraries.precompile}.get(kernel.library)
    if ahead is not None:
        ahead(info, kernel, params, cache, variants)
