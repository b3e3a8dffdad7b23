"""Compiles the kernels of a sweep in parallel, ahead of the worker that times them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from matbench import signals
from matbench.backends import precompiler
from matbench.backends.protocol import Variants
from matbench.model import BuildKey, Case, DeviceInfo, Kernel
from matbench.worker.process import WorkerProcess

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
        count = processes or max(1, min(8, (os.cpu_count() or 1) // 2))
        self.futures: dict[tuple[_Model, BuildKey, Variants], Future[None]] = {}
        self._own: set[_Model] = set()
        self._threads = ThreadPoolExecutor(count)
        self._processes = [WorkerProcess() for _ in range(count)]
        self._free = deque(self._processes)  # never empty: there are as many threads

    def start(self, device: DeviceInfo, cases: Iterable[Case], variants: Variants) -> None:
        """Start compiling every distinct build of these cases, in order."""
        for case in cases if precompiler(device) else ():
            key = (device.backend, device.name), case.build_key, variants
            if case.skip is None and key not in self.futures:
                given = device, case.kernel, case.params, variants
                self.futures[key] = self._begun(_precompile, *given)

    def start_own(self, device: DeviceInfo) -> None:
        """Start compiling matbench's own kernels."""
        model = device.backend, device.name
        wanted = precompiler(device) and model not in self._own
        self._own.add(model)
        for own in _OWN if wanted else ():
            self._begun(_precompile, device, own, {}, ("plain",))

    @signals.defer_interrupts()
    def _begun(self, task: Callable[..., None], *args: Any) -> Future[None]:
        def build() -> None:
            process = self._free.popleft()
            try:
                process.call(task, *args, timeout_s=self.deadline_s)
            finally:
                self._free.append(process)

        return self._threads.submit(build)

    def wait(self, device: DeviceInfo, case: Case, variants: Variants | None = None) -> None:
        """Wait until these builds of the case, or all, are in the cache; raises their errors."""
        wanted = (device.backend, device.name), case.build_key
        for (model, build, begun), future in list(self.futures.items()):
            if (model, build) == wanted and (variants is None or {*begun} & {*variants}):
                signals.result(future)

    def forget(self) -> None:
        """Let go of builds that are done; they are in the cache."""
        self.futures = {key: one for key, one in self.futures.items() if not one.done()}

    def close(self) -> None:
        """End the processes, and what they do."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.kill()


def _precompile(
    device: DeviceInfo, kernel: Kernel | tuple[str, str], params: dict[str, int], variants: Variants
) -> None:
    """Compile a kernel, or one of matbench's own: its file and entry."""
    from matbench.bench.device_kernels import device_kernel
    from matbench.cache import Cache

    make = precompiler(device)
    assert make is not None
    kernel = device_kernel(*kernel) if isinstance(kernel, tuple) else kernel
    make(device, kernel, params, Cache(), variants)
