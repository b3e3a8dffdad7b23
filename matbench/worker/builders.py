"""Compiles the kernels of a sweep in parallel, ahead of the worker that times them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from matbench.backends import Variant
from matbench.model import BuildKey, Case, DeviceInfo
from matbench.worker.process import Pool, result

#: Devices that share their builds: the backend and the model's name.
_Model = tuple[str, str]

#: Device code, each file with one of its kernels; the worker itself compiles `memory.cu`.
_OWN = (
    ("matmul/samples.cu", "draw_order"),
    ("poison.cu", "poison_shared"),
    ("bandwidth.cu", "copy_fours"),
)


class Builders:
    """Processes that put builds into the cache, for devices whose timing they do not disturb."""

    def __init__(self, deadline_s: float, processes: int | None = None) -> None:
        self.deadline_s = deadline_s
        self.pool = Pool(processes=processes or max(1, min(8, (os.cpu_count() or 1) // 2)))
        self.futures: dict[tuple[_Model, BuildKey, tuple[Variant, ...]], Any] = {}
        self._own: set[_Model] = set()

    def start(
        self, device: DeviceInfo, cases: Iterable[Case], variants: tuple[Variant, ...]
    ) -> None:
        """Start compiling every distinct build of these cases, in order."""
        from matbench.backends import can_precompile

        for case in cases if can_precompile(device) else ():
            key = (device.backend, device.name), case.build_key, variants
            if case.skip is None and key not in self.futures:
                self.futures[key] = self.pool.schedule(
                    _precompile, device, case, variants, timeout_s=self.deadline_s
                )

    def start_own(self, device: DeviceInfo) -> None:
        """Start compiling matbench's own kernels."""
        from matbench.backends import can_precompile

        model = device.backend, device.name
        wanted = can_precompile(device) and model not in self._own
        self._own.add(model)
        for file, entry in _OWN if wanted else ():
            self.pool.schedule(_precompile_own, device, file, entry, timeout_s=self.deadline_s)

    def wait(self, device: DeviceInfo, case: Case) -> None:
        """Wait until the case's builds are in the cache; raises their errors."""
        wanted = (device.backend, device.name), case.build_key
        for (model, build, _), future in list(self.futures.items()):
            if (model, build) == wanted:
                result(future)

    def forget(self) -> None:
        """Let go of builds that are done; they are in the cache."""
        self.futures = {key: one for key, one in self.futures.items() if not one.done()}

    def close(self) -> None:
        self.pool.kill()


def _precompile_own(device: DeviceInfo, file: str, entry: str) -> None:
    from matbench import backends
    from matbench.bench.device_kernels import device_kernel
    from matbench.cache import Cache

    backends.precompile(device, device_kernel(file, entry), {}, Cache(), ("plain",))


def _precompile(device: DeviceInfo, case: Case, variants: tuple[Variant, ...]) -> None:
    from matbench import backends
    from matbench.cache import Cache

    backends.precompile(device, case.kernel, case.params, Cache(), variants)
