"""An open CUDA device: memory, builds and timing."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from matbench.backends.cuda import cublas, nvml
from matbench.backends.cuda.compilation import compiled, through_pycuda
from matbench.backends.cuda.device import driver, errors, message
from matbench.backends.cuda.program import Bindings, CudaProgram, captured
from matbench.backends.protocol import Address, Backend, Buffer, Program, Variant, Work
from matbench.cache import Cache
from matbench.errors import BuildError, CaseError
from matbench.model import (
    COMPILED,
    CUBLAS,
    CUDA_C,
    HOST,
    PYTHON,
    Conditions,
    DeviceInfo,
    Kernel,
    Params,
)

#: How many times an area as large as the last-level cache is overwritten: long enough to enqueue a
#: launch. A larger area would also evict address translations, which a cold cache does not imply.
_FLUSHES = 4
#: What tensor maps and kernels with swizzled tiles may count on; the driver guarantees 256.
_ALIGNMENT_BYTES = 1024


#: The driver maps memory in pages of this size. Pages are allocated as a whole, so that no part of
#: them escapes `memory_without`; small buffers share one, as with the driver's own allocator.
_PAGE_BYTES = 1 << 21


class _Pages:
    """One allocation of the driver, with buffers one after the other."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = -(-nbytes // _PAGE_BYTES) * _PAGE_BYTES
        self.memory = driver().mem_alloc(self.nbytes)
        self.used = 0
        self.buffers = 0


@dataclass(eq=False)
class _Buffer:
    """Device memory: `handle` is its address; views are never freed."""

    handle: int
    nbytes: int
    owner: _Pages | None = None

    def view(self, offset_bytes: int, nbytes: int) -> _Buffer:
        return _Buffer(self.handle + offset_bytes, nbytes)


class CudaBackend(Backend):
    """One CUDA device with its primary context and its own stream."""

    def __init__(self, info: DeviceInfo, cache: Cache) -> None:
        self.info = info
        self.cache = cache
        self.clock_is_sm = True  # clock64
        self.variants: tuple[Variant, ...] = ("plain", "clocked", "staggered")
        self.flush_area: _Buffer | None = None
        self._pages: list[_Pages] = []
        self.cublas: cublas.Library | None = None
        self.apart: _Buffer | None = None
        with errors():
            device = driver().Device(info.index)
            self.context = device.retain_primary_context()
            self.context.push()
            self.is_open = True
            atexit.register(self.close)
            self.stream = driver().Stream()
        self.watch = nvml.ClockMonitor(device.pci_bus_id())

    def allocate(self, nbytes: int, *, is_given: bool = False) -> _Buffer:
        whole = -(-max(nbytes, 1) // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        pages = next((p for p in reversed(self._pages) if p.nbytes == _PAGE_BYTES), None)
        if pages is None or pages.used + whole > _PAGE_BYTES:
            with errors(asked_bytes=nbytes):
                pages = _Pages(whole)
            self._pages.append(pages)
        start = int(pages.memory) + pages.used
        pages.used += whole
        pages.buffers += 1
        return _Buffer(start, nbytes, pages)

    def release(self, buffer: Buffer) -> None:
        assert isinstance(buffer, _Buffer)
        assert buffer.owner is not None
        pages = buffer.owner
        pages.buffers -= 1
        if pages.buffers == 0:
            self._pages.remove(pages)
            with errors():
                pages.memory.free()

    def memory_without(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        kept = sorted((buffer.handle, buffer.handle + buffer.nbytes) for buffer in buffers)
        parts = []
        for pages in self._pages:
            start, end = int(pages.memory), int(pages.memory) + pages.nbytes
            for first, last in [part for part in kept if start <= part[0] < end]:
                parts.append(_Buffer(start, first - start))
                start = last + -last % 4
            parts.append(_Buffer(start, end - start))
        return [part for part in parts if part.nbytes]

    def write(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        with errors():
            self.stream.synchronize()
            driver().memcpy_htod(buffer.handle, array)

    def read(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        with errors():
            self.stream.synchronize()
            driver().memcpy_dtoh(array, buffer.handle)

    def copy(self, target: Buffer, source: Buffer) -> None:
        with errors():
            driver().memcpy_dtod_async(target.handle, source.handle, source.nbytes, self.stream)

    def build(
        self, kernel: Kernel, params: Params, variant: Variant = "plain", *, block_width: int = 32
    ) -> Program:
        return _BUILDERS[kernel.kind](self, kernel, params, variant)  # nvcc needs no `block_width`

    def _module(self, kernel: Kernel, params: Params, variant: Variant) -> Program:
        from pycuda.compiler import SourceModule

        capability = self.info.compute_capability or (0, 0)
        code = compiled(kernel, params, variant, capability, self.cache)
        try:
            if kernel.code:
                module = driver().module_from_buffer(code.cubin)
            else:
                module, _ = through_pycuda(SourceModule, code.request, self.cache)
            return CudaProgram(kernel, module.get_function(code.entry), code, self.stream)
        except driver().Error as error:
            built = "the file" if kernel.code else f"code built by {self.info.toolkit}"
            raise BuildError(
                f"the driver ({self.info.driver}) rejected {built}: {message(error)}"
            ) from None

    def _python(self, kernel: Kernel, params: Params, _: Variant) -> Program:
        from matbench.backends.functions import arrays, calls, timer

        timer.loaded(self.cache)
        place = self.info.index, self.stream.handle
        return calls.PythonFunction(kernel, params, self, partial(arrays.on_cuda, *place))

    def _host(self, kernel: Kernel, params: Params, variant: Variant) -> Program:
        from matbench.backends.functions import libraries, timer

        timer.loaded(self.cache)

        def used_bytes() -> int:
            free, total = driver().mem_get_info()
            return int(total - free)

        target = libraries.cuda_target(kernel, self.info, variant)
        stream = {"stream": self.stream.handle}
        handles = self._library().handles if "cublas" in kernel.args else stream
        return libraries.HostFunction(kernel, params, target, self, used_bytes, handles)

    def _cublas(self, kernel: Kernel, params: Params, _: Variant) -> Program:
        return cublas.Baseline(self._library(), kernel, params, self.cache)

    def _library(self) -> cublas.Library:
        if self.cublas is None:
            self.cublas = cublas.Library(self, self.stream.handle)
        return self.cublas

    def timed_ns(self, work: Work) -> float:
        """The host enqueues the calls while the device is busy with what comes before them, so that
        the host's own time does not count."""
        calls, stream = work.calls, self.stream

        def before() -> None:
            work.hold()
            if work.is_cold:
                if self.flush_area is None:
                    cache_bytes = int(self.info.properties["last-level cache (bytes)"] or 0)
                    self.flush_area = self.allocate(max(cache_bytes, 1 << 26))
                area = self.flush_area
                for _ in range(_FLUSHES):
                    driver().memset_d32_async(area.handle, 0, area.nbytes // 4, stream)
            work.ready()

        def run() -> None:
            for call in calls:
                call.run()

        def finish() -> None:
            calls[0].take()
            stream.synchronize()

        with errors():
            if calls[0].runs_on_host:  # with events that its code cannot find
                from matbench.backends.functions import timer

                return timer.timed_ns(self.cache, stream.handle, before, calls[0].run, finish)
            with captured(stream, run) if work.is_graph else nullcontext(run) as enqueue:
                start, end = driver().Event(), driver().Event()
                before()
                start.record(stream)
                enqueue()
                end.record(stream)
                end.synchronize()
                return float(start.time_till(end)) * 1e6 / len(calls)

    def mapped(self, buffer: Buffer) -> Address:
        return Address(buffer.handle, None)

    def copy_apart(self, address: int, nbytes: int) -> None:
        if self.apart is None or self.apart.nbytes < nbytes:
            if self.apart is not None:
                self.release(self.apart)
            self.apart = self.allocate(nbytes)
        with errors():
            driver().memcpy_dtod_async(self.apart.handle, address, nbytes, self.stream)

    def copy_back(self, target: Buffer) -> None:
        assert self.apart is not None
        with errors():
            driver().memcpy_dtod_async(target.handle, self.apart.handle, target.nbytes, self.stream)

    def reset_cache(self) -> None:
        with suppress(CaseError):  # GPUs without a persisting cache
            Bindings("resetting the cache").call("cuCtxResetPersistingL2Cache")

    def conditions(self) -> Conditions:
        return self.watch.read() or Conditions()

    def energy_j(self) -> float | None:
        return self.watch.energy_j()

    def ticks_per_ns(self, stamps: npt.NDArray[np.uint64]) -> float:
        """The actual SM clock: cycles over globaltimer's span, median over multiprocessors."""
        stamps = stamps[stamps[:, 1] > 0]
        units, unit = np.unique(stamps[:, 4], return_inverse=True)
        first = np.full((len(units), 2), np.iinfo(np.uint64).max)
        last = np.zeros_like(first)
        np.minimum.at(first, unit, stamps[:, [0, 2]])
        np.maximum.at(last, unit, stamps[:, [1, 3]])
        ticks, span_ns = (last - first).T
        if (span_ns > 0).any():
            return float(np.median(ticks[span_ns > 0] / span_ns[span_ns > 0]))
        return int(self.info.properties["clock rate (MHz)"] or 1000) / 1000

    def synchronize(self) -> None:
        with errors():
            driver().Context.synchronize()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            if self.cublas is not None:
                self.cublas.close()
            driver().Context.pop()


#: What makes a program of a kernel, by its kind.
_BUILDERS = {
    CUDA_C: CudaBackend._module, COMPILED: CudaBackend._module, PYTHON: CudaBackend._python,
    HOST: CudaBackend._host, CUBLAS: CudaBackend._cublas,
}  # fmt: skip
