"""The limits of a device, measured once and cached: memory bandwidth and multiply-adds."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import msgspec

from matbench.backends.protocol import Argument, Work
from matbench.bench import bandwidth
from matbench.bench.bandwidth import SAMPLES, THREADS, fastest, launch_of
from matbench.bench.device_kernels import device_kernel
from matbench.bench.kernel_arguments import Memory
from matbench.bench.session import Session
from matbench.features.explain.record import Limits

_FLOP_PER_ROUND = 2 * 8 * 8
#: The minimum time of a launch of multiply-adds, and the most rounds to try for that.
_LEAST_NS = {"gpu": 2e6, "cpu": 2e7}
_MOST_ROUNDS = 2**20


def measured(session: Session, anew: bool = False) -> Limits:
    """The limits of a session's device: from the cache, or measured in about a second and cached.

    `anew` measures in any case, and keeps the better of old and new: other load on the machine can
    only lower them.
    """
    backend, cache = session.backend, session.cache
    kernel = device_kernel("multiply_add.cu", "multiply_add", Path(__file__).parent)
    key = bandwidth.cache_key(backend.info, device_kernel("bandwidth.cu", "copy_fours"), kernel)
    data = cache.get(key)
    kept = msgspec.json.decode(data, type=Limits) if data is not None else None
    if kept is not None and not anew:
        return kept
    memory = bandwidth.measured(backend, cache, anew=anew)
    info = backend.info
    # A loop in registers only, which keeps all lanes of all multiprocessors busy.
    launch = launch_of(info, 16 * info.limits["multiprocessors"])
    threads = launch.blocks * launch.threads_per_block
    with Memory(backend) as on_device:
        out = on_device.allocate(4 * threads)
        program = backend.build(kernel, {}, block_width=THREADS)

        def once_ns(rounds: int) -> float:
            # Sums converge to addend / (1 - factor) = 1: they neither overflow nor become denormal.
            arguments: list[Argument] = [out, 0.5, 0.5, rounds]
            return backend.timed_ns(Work([program.call(launch, arguments)]))

        rounds = 64
        while once_ns(rounds) < _LEAST_NS[info.kind] and rounds < _MOST_ROUNDS:
            rounds *= 2
        times = [once_ns(rounds) for _ in range(SAMPLES)]
    computed = threads * rounds * _FLOP_PER_ROUND / (fastest(times) * 1e-9)
    best = Limits(
        device=info.name,
        driver=info.driver,
        copy_bytes_per_s=memory.copy_bytes_per_s,
        read_bytes_per_s=memory.read_bytes_per_s,
        fma_flop_per_s=max(computed, kept.fma_flop_per_s) if kept is not None else computed,
        sm_mhz=backend.conditions().sm_mhz,
        when=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    cache.put(key, msgspec.json.encode(best))
    return best
