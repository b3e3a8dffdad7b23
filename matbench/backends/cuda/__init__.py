"""CUDA through PyCUDA: compiled by nvcc, run in the primary context, timed by events or clock64."""

from __future__ import annotations

from collections.abc import Sequence

from matbench.backends.cuda.backend import CudaBackend
from matbench.backends.cuda.compilation import compiled
from matbench.backends.cuda.device import devices
from matbench.backends.cuda.libcuda import gpu_is_present
from matbench.backends.protocol import Variant
from matbench.cache import Cache
from matbench.errors import BuildError
from matbench.model import DeviceInfo, Kernel, Params

__all__ = ["LIBRARY", "devices", "gpu_is_present", "open_device", "precompile"]

LIBRARY = "pycuda.driver"

#: Opens a device that `devices` listed, with the cache for compiled code.
open_device = CudaBackend


def precompile(
    info: DeviceInfo, kernel: Kernel, params: Params, cache: Cache, variants: Sequence[Variant]
) -> None:
    """Put these builds of a kernel, or a function on the host, into the cache; needs no context, so
    any process can do it."""
    from matbench.backends.functions import libraries

    if kernel.kind.is_native:
        libraries.prepare(kernel, params, libraries.cuda_target(kernel, info), cache)
    for variant in variants if kernel.kind.is_launched else ():
        try:
            compiled(kernel, params, variant, info.compute_capability or (0, 0), cache)
        except BuildError:  # for an instrumented build, the error comes again when it is needed
            if variant == "plain":
                raise
