"""A Dask cluster of CPU workers in a process of its own, and the processes below it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import psutil

from support.paths import programs
from support.scripted import ENVIRONMENT

T = TypeVar("T")

SCRIPT = programs(__file__)["a local cluster"]


class DaskCluster:
    """The address of a scheduler, and the processes of its workers."""

    def __init__(self, address: str, process: psutil.Process) -> None:
        self.address = address
        self.process = process

    def workers(self) -> list[psutil.Process]:
        """The Dask workers' processes."""
        return spawned(self.process)

    def measuring(self) -> dict[psutil.Process, psutil.Process]:
        """The processes that measure, by the Dask worker above them and their server."""
        return {
            worker: process
            for worker in self.workers()
            for server in spawned(worker, "forkserver")
            for process in server.children()
        }

    def lose_a_worker(self) -> None:
        """Kill a Dask worker in the middle of a case, which stands still from its start on."""
        worker, measuring = next(iter(wait_for(self.measuring).items()))
        measuring.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        worker.kill()
        measuring.kill()  # it may have been stopped before it was bound to the worker's life
        wait_for(lambda: not worker.is_running())


def spawned(process: psutil.Process, how: str = "spawn_main") -> list[psutil.Process]:
    """The children that `multiprocessing` started to work, the oldest first."""
    found = []
    for child in process.children():
        try:
            if any(how in word for word in child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue
    return found


def wait_for(condition: Callable[[], T], limit_s: float = 60) -> T:
    """The first value that is true."""
    ends = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < ends
        time.sleep(0.02)
    return found


@contextmanager
def dask_cluster(workers: int) -> Iterator[DaskCluster]:
    """A cluster until the end of the block; nothing of it is left behind. Its workers have the
    scripted device."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(workers)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield DaskCluster(process.stdout.readline().strip(), psutil.Process(process.pid))
    finally:
        try:
            process.communicate(timeout=30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
