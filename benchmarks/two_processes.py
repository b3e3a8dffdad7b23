"""What it costs to keep the judge and the judged in two processes: hand-over, contexts, L2, memory.

The judge owns A, B and C; the judged opens them: by CUDA's IPC handles, or on a CPU as POSIX shared
memory, which is all that runs without CUDA. Each figure is a median in microseconds, with the 5th
and the 95th percentile.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import common
import numpy as np

from matbench import backends
from matbench.kernelfile import catalogue

TILE = 16
FLUSHED_BYTES = 4 * (50 << 20)


def spread(times_us: list[float]) -> dict[str, float]:
    low, high = np.percentile(times_us, (5, 95))
    return {"median": statistics.median(times_us), "5%": float(low), "95%": float(high)}


def timed_us(do: Callable[[], object], count: int) -> list[float]:
    taken = []
    for _ in range(count + 5):
        began_ns = time.perf_counter_ns()
        do()
        taken.append((time.perf_counter_ns() - began_ns) / 1e3)
    return taken[5:]


# -- a CPU -----------------------------------------------------------------------------------------


def judged_on_cpu(asked: int, done: int, name: str) -> None:
    """Answers: an empty call, with C in shared memory."""
    shared = SharedMemory(name)
    memory: Any = shared.buf
    while os.eventfd_read(asked) == 1:
        memory[0] = 1
        os.eventfd_write(done, 1)
    shared.close()


def on_cpu(count: int) -> list[dict[str, Any]]:
    asked, done = os.eventfd(0), os.eventfd(0)
    n = 256
    shared = SharedMemory(create=True, size=3 * 4 * n * n)
    memory: Any = shared.buf
    private = bytearray(4 * n * n)
    process = multiprocessing.get_context("fork").Process(
        target=judged_on_cpu, args=(asked, done, shared.name)
    )
    process.start()

    def call() -> None:
        os.eventfd_write(asked, 1)
        os.eventfd_read(done)

    def call_and_copy() -> None:
        call()
        private[:] = memory[-len(private) :]

    def stop() -> None:
        os.kill(process.pid or 0, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid or 0, os.WSTOPPED | os.WNOWAIT | os.WEXITED)

    def stopped_call() -> None:
        os.kill(process.pid or 0, signal.SIGCONT)
        call()
        stop()
        private[:] = memory[-len(private) :]

    rows = [{"what": "an empty call, blocking on eventfd", **spread(timed_us(call, count))}]
    copied = spread(timed_us(call_and_copy, count))
    rows.append({"what": f"the same, and C copied (n = {n})", **copied})
    stop()
    stopped = spread(timed_us(stopped_call, count))
    rows.append({"what": "the same, the judged stopped before and after", **stopped})
    os.kill(process.pid or 0, signal.SIGCONT)
    os.eventfd_write(asked, 2)
    process.join()
    shared.close()
    shared.unlink()
    return rows


# -- a GPU -----------------------------------------------------------------------------------------


class Gpu:
    """A context, a stream, and the kernel `tiled`."""

    def __init__(self) -> None:
        import pycuda.driver as driver
        from pycuda.compiler import SourceModule

        driver.init()
        self.driver = driver
        self.context = driver.Device(0).retain_primary_context()
        self.context.push()
        self.stream = driver.Stream()
        tiled = catalogue.Catalogue(catalogue.builtin()).get("tiled")
        module = SourceModule(tiled.source, no_extern_c=True, options=[f"-DTILE={TILE}"])
        self.kernel = module.get_function(tiled.entry)
        self.flushed = driver.mem_alloc(FLUSHED_BYTES)

    def flush(self) -> None:
        self.driver.memset_d32_async(int(self.flushed), 0, FLUSHED_BYTES // 4, self.stream)

    def launch(self, n: int, A: int, B: int, C: int) -> None:
        blocks = -(-n // TILE)
        sizes = [np.int32(n)] * 3
        matrices = map(np.uintp, (A, B, C))
        grid, block = (blocks, blocks, 1), (TILE, TILE, 1)
        self.kernel(*matrices, *sizes, grid=grid, block=block, stream=self.stream)

    def event_us(self, work: Callable[[], None], *, is_cold: bool) -> float:
        start, end = self.driver.Event(), self.driver.Event()
        if is_cold:
            self.flush()
        start.record(self.stream)
        work()
        end.record(self.stream)
        end.synchronize()
        return float(start.time_till(end)) * 1e3


def judged_on_gpu(connection: Connection, n: int, handles: list[Any]) -> None:
    """Does what it is asked, on the judge's memory; answers with the time of events."""
    gpu = Gpu()
    opened = [gpu.driver.IPCMemoryHandle(handle) for handle in handles]
    A, B, C = map(int, opened)
    connection.send(0.0)
    while (asked := connection.recv()) != "end":
        if asked == "nothing":
            connection.send(0.0)
        elif asked == "an empty launch":
            connection.send(gpu.event_us(lambda: None, is_cold=False))
        else:
            work = lambda: gpu.launch(n, A, B, C)  # noqa: E731
            connection.send(gpu.event_us(work, is_cold=asked == "cold"))
    for handle in opened:
        handle.close()
    gpu.context.pop()


def on_gpu(n: int, count: int) -> list[dict[str, Any]]:
    gpu = Gpu()
    driver = gpu.driver
    A, source, B, C, copied = (driver.mem_alloc(4 * n * n) for _ in range(5))
    for each in (source, B):
        driver.memcpy_htod(each, np.random.default_rng(1).random((n, n), np.float32))

    def complete() -> None:
        driver.memcpy_dtod_async(int(A), int(source), 4 * n * n, gpu.stream)
        gpu.stream.synchronize()

    def copy() -> None:
        driver.memcpy_dtod_async(int(copied), int(C), 4 * n * n, gpu.stream)
        gpu.stream.synchronize()

    rows: list[dict[str, Any]] = []

    def row(what: str, times_us: list[float]) -> None:
        rows.append({"what": what, **spread(times_us)})

    work = lambda: gpu.launch(n, *map(int, (A, B, C)))  # noqa: E731
    for is_cold in (True, False):
        taken = []
        for _ in range(count):
            complete()
            taken.append(gpu.event_us(work, is_cold=is_cold))
        row(f"one process, {'cold' if is_cold else 'right after A was written'}: events", taken)
    row("one process: C copied", timed_us(copy, count))

    free, _ = driver.mem_get_info()
    connection, its_own = multiprocessing.Pipe()
    handles = [driver.mem_get_ipc_handle(each) for each in (A, B, C)]
    process = multiprocessing.get_context("spawn").Process(
        target=judged_on_gpu, args=(its_own, n, handles)
    )
    process.start()
    connection.recv()
    used = (free - driver.mem_get_info()[0]) / 2**20

    def ask(what: str) -> float:
        connection.send(what)
        return float(connection.recv())

    row("two: nothing asked, round trip", timed_us(lambda: ask("nothing"), count))
    row("two: an empty launch, round trip", timed_us(lambda: ask("an empty launch"), count))
    for what in ("cold", "right after A was written"):
        events_us, judges_us, copies_us = [], [], []
        for _ in range(count):
            complete()
            began_ns = time.perf_counter_ns()
            events_us.append(ask(what))
            answered_ns = time.perf_counter_ns()
            copy()
            ended_ns = time.perf_counter_ns()
            judges_us.append((ended_ns - began_ns) / 1e3)
            copies_us.append((ended_ns - answered_ns) / 1e3)
        row(f"two, {what}: events in the judged", events_us)
        row(f"two, {what}: judge's clock, to C copied", judges_us)
        row(f"two, {what}: of it, C copied after the answer", copies_us)
    connection.send("end")
    process.join()
    rows.append({"what": "memory of the second context (MiB)", "median": used})
    gpu.context.pop()
    return rows


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--count", type=int, default=300, help="calls of each kind, at least")
    chosen = parser.parse_args()
    info = backends.choose(chosen.backend, chosen.device)
    findings = common.Findings("two_processes", chosen, info)
    rows = on_cpu(10 * chosen.count)
    findings.table("A function on the host", rows)
    findings.figures.append(common.Figure("an empty call", rows[0]["median"], "µs", 60.0))
    for n in (256, 1000, 4096) if info.backend == "cuda" else ():
        findings.table(f"{n}×{n}", on_gpu(n, chosen.count if n < 4096 else chosen.count // 5))
    findings.close()


if __name__ == "__main__":
    main()
