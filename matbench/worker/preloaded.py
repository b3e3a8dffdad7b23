"""What all worker processes need: the server that they are forked from imports this module.

Nothing here may start a thread or open a device: a fork would not have it. NumPy's threads are an
exception, since OpenBLAS ends them before each fork.
"""

from __future__ import annotations

from matbench import backends
from matbench.bench import device_kernels
from matbench.worker import comparing  # noqa: F401 (which imports all of `bench`)

backends.preload()
device_kernels.preload()
