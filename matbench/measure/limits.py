"""The limits of a device, measured once and cached: memory bandwidth and multiply-adds."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import msgspec

from matbench.backends import Argument, Backend, Buffer
from matbench.cache import Cache
from matbench.errors import CaseError
from matbench.measure.judge import device_kernel
from matbench.measure.launcher import Memory
from matbench.model import DeviceInfo, Launch
from matbench.records.explanation import Limits

_THREADS = 256
_SAMPLES = 5
_COPIES = 4
_FOUR_BYTES = 16
_FLOP_PER_ROUND = 2 * 8 * 8
#: The minimum time of a launch of multiply-adds, and the most rounds to try for that.
_LEAST_NS = {"gpu": 2e6, "cpu": 2e7}
_MOST_ROUNDS = 2**20
#: How often a launch reads a buffer.
_PASSES = {"gpu": 16, "cpu": 1}
#: Each of the two buffers of a copy: several times any last-level cache.
_LEAST_BYTES = 2**27
_MOST_BYTES = 2**29


def measured(backend: Backend, cache: Cache, *, anew: bool = False) -> Limits:
    """The limits of an open device: from the cache, or measured in about a second and cached.

    `anew` measures in any case, and keeps the better of old and new: other load on the machine can
    only lower them.
    """
    info = backend.info
    source = device_kernel("limits.cu", "copy_fours").sha256
    key = repr(("limits/3", info.backend, info.name, info.driver, info.toolkit, source))
    data = cache.get(key)
    kept = msgspec.json.decode(data, type=Limits) if data is not None else None
    if kept is not None and not anew:
        return kept
    copied, read = _bytes_per_s(backend)
    computed = _fma_flop_per_s(backend)
    if kept is not None:
        copied = max(copied, kept.copy_bytes_per_s)
        read = max(read, kept.read_bytes_per_s)
        computed = max(computed, kept.fma_flop_per_s)
    best = Limits(
        device=info.name,
        driver=info.driver,
        copy_bytes_per_s=copied,
        read_bytes_per_s=read,
        fma_flop_per_s=computed,
        sm_mhz=backend.conditions().sm_mhz,
        when=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    cache.put(key, msgspec.json.encode(best))
    return best


def _bytes_per_s(backend: Backend) -> tuple[float, float]:
    """The rates of the fastest copy between two large buffers, by a kernel or the driver, and of
    the fastest read."""
    info = backend.info
    cache_bytes = int(info.properties.get("last-level cache (bytes)") or 0)
    size = min(max(_LEAST_BYTES, 4 * cache_bytes), _MOST_BYTES)
    with Memory(backend) as memory:
        source, target = memory.allocate(size), memory.allocate(size)
        count = size // _FOUR_BYTES
        whole = -(-count // _THREADS)
        units = info.limits["multiprocessors"]
        passes = _PASSES[info.kind]
        grids = [8 * units, 32 * units, whole]

        def fastest_ns(entry: str, *arguments: Argument, resident: bool) -> float:
            program = backend.build(device_kernel("limits.cu", entry), {}, block_width=_THREADS)
            together = program.resident_blocks(_launch(info, units)) if resident else None
            launches = [
                _launch(info, min(blocks, whole))
                for blocks in ([units * together] if together else grids)
                for _ in range(_SAMPLES)
            ]
            return _fastest(
                [backend.time_ns(program, launch, arguments, cold=False) for launch in launches]
            )

        copy_ns = fastest_ns("copy_fours", source, target, count, resident=False)
        # Only resident blocks: later ones could find data of earlier ones in the cache.
        read_ns = fastest_ns("read_fours", source, target, count, passes, resident=True)
        driver_ns = _fastest([_driver_copy_ns(backend, target, source) for _ in range(_SAMPLES)])
        copied = 2 * size / (min(copy_ns, driver_ns) * 1e-9)
        return copied, max(copied, passes * size / (read_ns * 1e-9))


def _fma_flop_per_s(backend: Backend) -> float:
    """The highest rate of a register-only loop that keeps all lanes of all multiprocessors busy."""
    info = backend.info
    launch = _launch(info, 16 * info.limits["multiprocessors"])
    threads = launch.blocks * launch.threads_per_block
    with Memory(backend) as memory:
        out = memory.allocate(4 * threads)
        program = backend.build(
            device_kernel("limits.cu", "multiply_add"), {}, block_width=_THREADS
        )

        def once_ns(rounds: int) -> float:
            # Sums converge to addend / (1 - factor) = 1: they neither overflow nor become denormal.
            arguments: list[Argument] = [out, 0.5, 0.5, rounds]
            return backend.time_ns(program, launch, arguments, cold=False)

        rounds = 64
        while once_ns(rounds) < _LEAST_NS[info.kind] and rounds < _MOST_ROUNDS:
            rounds *= 2
        times = [once_ns(rounds) for _ in range(_SAMPLES)]
        return threads * rounds * _FLOP_PER_ROUND / (_fastest(times) * 1e-9)


def _launch(info: DeviceInfo, blocks: int) -> Launch:
    threads = min(_THREADS, info.limits["max_threads_per_block"])
    return Launch(grid=(blocks, 1, 1), block=(threads, 1, 1))


def _driver_copy_ns(backend: Backend, target: Buffer, source: Buffer) -> float:
    """The mean of some copies back to back, by the host's clock."""
    backend.synchronize()
    start = time.perf_counter_ns()
    for _ in range(_COPIES):
        backend.copy(target, source)
    backend.synchronize()
    return (time.perf_counter_ns() - start) / _COPIES


def _fastest(times_ns: list[float]) -> float:
    fastest = min(times_ns)
    if not fastest > 0:
        raise CaseError("the device's clock did not advance while its limits were measured")
    return fastest
