"""Hands work out to the devices of a host: GPUs work at the same time, each on its own group.

A group is done by one device, in order, because times are ranked together only if one device
measured them. A CPU works alone: whatever else runs there would slow it down.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from matbench.errors import MatbenchError
from matbench.model import DeviceInfo

T = TypeVar("T")
R = TypeVar("R")


class GoneError(MatbenchError):
    """A device can do nothing more. Others may do what it leaves."""

    def __init__(self, device: DeviceInfo, reason: str) -> None:
        super().__init__(reason)
        self.device = device


@dataclass(frozen=True)
class TaskGroup(Generic[T]):
    """Tasks for one of these devices; `cost` is their expected duration, in any unit."""

    devices: tuple[DeviceInfo, ...]
    tasks: Sequence[T]
    cost: float = 0.0


class Scheduler:
    """Threads that each do the groups of one device; `end` stops them after their current task."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def results(
        self, groups: Iterable[TaskGroup[T]], do: Callable[[DeviceInfo, T], R]
    ) -> Iterator[tuple[T, R]]:
        """Every task with its result, as soon as it is done, here in the calling thread.

        If several GPUs can work, `do` is called in a thread for each. The first exception that it
        raises is raised here.
        """
        every = list(groups)
        gpus = {_key(info) for group in every for info in group.devices if _is_gpu(info)}
        if len(gpus) > 1:
            shared = [group for group in every if _is_gpu(group.devices[0])]
            yield from self.at_the_same_time(shared, do)
            every = [group for group in every if not _is_gpu(group.devices[0])]
        for group in every:
            for task in group.tasks:
                yield task, do(group.devices[0], task)

    def at_the_same_time(
        self, groups: Iterable[TaskGroup[T]], do: Callable[[DeviceInfo, T], R]
    ) -> Iterator[tuple[T, R]]:
        """The same with a thread for each device.

        If `do` raises a `GoneError`, the other devices do the rest of the group; it is raised here
        if none is left that may.
        """
        # Whatever only one device may do goes first, then the longest.
        left = sorted(groups, key=lambda group: (len(group.devices), -group.cost))
        devices = {_key(info): info for group in left for info in group.devices}
        gone: GoneError | None = None
        while left and not self._ended.is_set():
            able = [info for info in devices.values() if any(info in g.devices for g in left)]
            if not able:
                assert gone is not None
                raise gone
            results = self._work(able, left, do)
            working = len(able)
            while working:
                result = results.get()
                if isinstance(result, GoneError):
                    gone = result
                    del devices[_key(gone.device)]
                elif isinstance(result, BaseException):
                    raise result
                elif result is None:
                    working -= 1
                else:
                    yield result

    def _work(
        self,
        devices: Iterable[DeviceInfo],
        left: list[TaskGroup[T]],
        do: Callable[[DeviceInfo, T], R],
    ) -> queue.SimpleQueue[tuple[T, R] | BaseException | None]:
        """Start a thread for each device; the last that it puts into the queue is None."""
        results: queue.SimpleQueue[tuple[T, R] | BaseException | None] = queue.SimpleQueue()
        lock = threading.Lock()

        def take(device: DeviceInfo) -> TaskGroup[T] | None:
            with lock:
                group = next((group for group in left if device in group.devices), None)
                if group is not None:
                    left.remove(group)
                return group

        def work(device: DeviceInfo) -> None:
            try:
                while (group := take(device)) is not None:
                    for number, task in enumerate(group.tasks):
                        if self._ended.is_set():
                            return
                        try:
                            results.put((task, do(device, task)))
                        except GoneError:
                            with lock:
                                left.insert(0, replace(group, tasks=group.tasks[number:]))
                            raise
            except BaseException as error:
                results.put(error)
            finally:
                results.put(None)

        for device in devices:
            thread = threading.Thread(target=work, args=(device,), daemon=True)
            self._threads.append(thread)
            thread.start()
        return results

    def end(self) -> None:
        """Let no thread begin another task."""
        self._ended.set()

    def join(self) -> None:
        """Wait for the threads; what they are doing must have been stopped."""
        for thread in self._threads:
            thread.join()


def _key(info: DeviceInfo) -> tuple[str, str]:
    return info.backend, info.identity


def _is_gpu(info: DeviceInfo) -> bool:
    return info.kind == "gpu"
