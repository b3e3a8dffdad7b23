"""Hands work out to the devices of a host: GPUs work at the same time, each on its own group.

A group is done by one device, in order, because times are ranked together only if one device
measured them. A CPU works alone: whatever else runs there would slow it down.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from matbench.model import DeviceInfo

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Group(Generic[T]):
    """Tasks for one of these devices; `cost` is their expected duration, in any unit."""

    devices: tuple[DeviceInfo, ...]
    tasks: Sequence[T]
    cost: float = 0.0


class HandingOut:
    """Threads that each do the groups of one GPU; `end` stops them after their current task."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def results(
        self, groups: Iterable[Group[T]], do: Callable[[DeviceInfo, T], R]
    ) -> Iterator[tuple[T, R]]:
        """Every task with its result, as soon as it is done, here in the calling thread.

        If several GPUs can work, `do` is called in a thread for each. The first exception that it
        raises is raised here.
        """
        every = list(groups)
        gpus = {info.label: info for group in every for info in group.devices if _is_gpu(info)}
        if len(gpus) > 1:
            # Whatever only one device may do goes first, then the longest.
            ordered = sorted(every, key=lambda group: (len(group.devices), -group.cost))
            shared = [group for group in ordered if _is_gpu(group.devices[0])]
            yield from self._at_the_same_time(list(gpus.values()), shared, do)
            every = [group for group in every if not _is_gpu(group.devices[0])]
        for group in every:
            for task in group.tasks:
                yield task, do(group.devices[0], task)

    def _at_the_same_time(
        self, gpus: Sequence[DeviceInfo], left: list[Group[T]], do: Callable[[DeviceInfo, T], R]
    ) -> Iterator[tuple[T, R]]:
        found: queue.SimpleQueue[tuple[T, R] | BaseException | None] = queue.SimpleQueue()
        lock = threading.Lock()

        def take(gpu: DeviceInfo) -> Group[T] | None:
            with lock:
                group = next((group for group in left if gpu in group.devices), None)
                if group is not None:
                    left.remove(group)
                return group

        def work(gpu: DeviceInfo) -> None:
            try:
                while (group := take(gpu)) is not None:
                    for task in group.tasks:
                        if self._ended.is_set():
                            return
                        found.put((task, do(gpu, task)))
            except BaseException as error:
                found.put(error)
            finally:
                found.put(None)

        for gpu in gpus:
            thread = threading.Thread(target=work, args=(gpu,), daemon=True)
            self._threads.append(thread)
            thread.start()
        working = len(gpus)
        while working:
            result = found.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                working -= 1
            else:
                yield result

    def end(self) -> None:
        """Let no thread begin another task."""
        self._ended.set()

    def join(self) -> None:
        """Wait for the threads; what they are doing must have been stopped."""
        for thread in self._threads:
            thread.join()


def _is_gpu(info: DeviceInfo) -> bool:
    return info.kind == "gpu"
