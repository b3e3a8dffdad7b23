"""The memory bandwidth of a device, measured once and cached."""

from __future__ import annotations

import time

import msgspec

from matbench.analysis.limits import Bandwidth
from matbench.backends.protocol import Argument, Backend, Work
from matbench.bench.device_kernels import device_kernel
from matbench.bench.kernel_arguments import Memory
from matbench.cache import Cache
from matbench.errors import CaseError
from matbench.model import DeviceInfo, Kernel, Launch

THREADS = 256
SAMPLES = 5
_COPIES = 4
_FOUR_BYTES = 16
#: How often a launch reads a buffer.
_PASSES = {"gpu": 16, "cpu": 1}
#: Each of the two buffers of a copy: several times any last-level cache.
_LEAST_BYTES = 2**27
_MOST_BYTES = 2**29


def measured(backend: Backend, cache: Cache, *, anew: bool = False) -> Bandwidth:
    """That of an open device: from the cache, or measured in about a second and cached. `anew`
    measures in any case; the better one is kept, because other load can only lower it."""
    key = cache_key(backend.info, device_kernel("bandwidth.cu", "copy_fours"))
    data = cache.get(key)
    kept = msgspec.json.decode(data, type=Bandwidth) if data is not None else None
    if kept is not None and not anew:
        return kept
    best = Bandwidth(*map(max, _bytes_per_s(backend), kept or (0.0, 0.0)))
    cache.put(key, msgspec.json.encode(best))
    return best


def cache_key(info: DeviceInfo, *kernels: Kernel) -> str:
    """The key of what these kernels measure on a device."""
    sources = [kernel.sha256 for kernel in kernels]
    return repr(("rates", info.backend, info.name, info.driver, info.toolkit, *sources))


def _bytes_per_s(backend: Backend) -> Bandwidth:
    """The rates of the fastest copy between two large buffers, by a kernel or the driver, and of
    the fastest read."""
    info = backend.info
    cache_bytes = int(info.properties.get("last-level cache (bytes)") or 0)
    size = min(max(_LEAST_BYTES, 4 * cache_bytes), _MOST_BYTES)
    with Memory(backend) as memory:
        source, target = memory.allocate(size), memory.allocate(size)
        count = size // _FOUR_BYTES
        whole = -(-count // THREADS)
        units = info.limits["multiprocessors"]
        passes = _PASSES[info.kind]
        grids = [8 * units, 32 * units, whole]

        def fastest_ns(entry: str, *arguments: Argument, resident: bool) -> float:
            program = backend.build(device_kernel("bandwidth.cu", entry), {}, block_width=THREADS)
            together = program.resident_blocks(launch_of(info, units)) if resident else None
            launches = [
                launch_of(info, min(blocks, whole))
                for blocks in ([units * together] if together else grids)
                for _ in range(SAMPLES)
            ]
            works = [Work([program.call(launch, arguments)]) for launch in launches]
            return fastest([backend.timed_ns(work) for work in works])

        copy_ns = fastest_ns("copy_fours", source, target, count, resident=False)
        # Only resident blocks: later ones could find data of earlier ones in the cache.
        read_ns = fastest_ns("read_fours", source, target, count, passes, resident=True)
        copies_ns = []  # back to back, by the host's clock
        for _ in range(SAMPLES):
            backend.synchronize()
            start = time.perf_counter_ns()
            for _ in range(_COPIES):
                backend.copy(target, source)
            backend.synchronize()
            copies_ns.append((time.perf_counter_ns() - start) / _COPIES)
        driver_ns = fastest(copies_ns)
        copied = 2 * size / (min(copy_ns, driver_ns) * 1e-9)
        return Bandwidth(copied, max(copied, passes * size / (read_ns * 1e-9)))


def launch_of(info: DeviceInfo, blocks: int) -> Launch:
    threads = min(THREADS, info.limits["max_threads_per_block"])
    return Launch(grid=(blocks, 1, 1), block=(threads, 1, 1))


def fastest(times_ns: list[float]) -> float:
    fastest = min(times_ns)
    if not fastest > 0:
        raise CaseError("the device's clock did not advance while its limits were measured")
    return fastest
