"""CUDA through PyCUDA: compiled by nvcc, run in the primary context, timed by events or clock64."""

from __future__ import annotations

from matbench.backends.cuda.backend import CudaBackend
from matbench.backends.cuda.compilation import compiled_by_nvcc, find, precompile
from matbench.backends.cuda.device import devices
from matbench.backends.cuda.libcuda import gpu_is_present

__all__ = ["compiled_by_nvcc", "devices", "find", "gpu_is_present", "open_device", "precompile"]

#: Opens a device that `devices` listed, with the cache for compiled code.
open_device = CudaBackend
