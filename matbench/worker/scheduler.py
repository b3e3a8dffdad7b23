"""Hands work out to devices that work at the same time, each on its own group.

A group is done by one device, in order, because times are ranked together only if one device
measured them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Generic, TypeVar

from matbench import signals
from matbench.errors import MatbenchError
from matbench.model import DeviceInfo

T = TypeVar("T")
R = TypeVar("R")


class GoneError(MatbenchError):
    """A device can do nothing more. Others may do what it leaves."""


@dataclass(frozen=True)
class TaskGroup(Generic[T]):
    """Tasks for one of these devices; `cost` is their expected duration, in any unit."""

    devices: tuple[DeviceInfo, ...]
    tasks: Sequence[T]
    cost: float = 0.0


def at_the_same_time(
    groups: Iterable[TaskGroup[T]], do: Callable[[DeviceInfo, T], R], threads: ThreadPoolExecutor
) -> Iterator[tuple[T, R]]:
    """Every task with its result, as soon as it is done, here in the calling thread; each device is
    given its tasks in another one. Nothing begins but while a result is awaited.

    The first exception that `do` raises is raised here. After a `GoneError`, the other devices do
    the rest of the group; it is raised here if none is left that may.
    """
    # Whatever only one device may do goes first, then the longest.
    order = sorted(groups, key=lambda group: (len(group.devices), -group.cost))
    left = [group for group in order if group.tasks]
    devices = {_key(info): info for group in left for info in group.devices}
    done: SimpleQueue[tuple[DeviceInfo, TaskGroup[T], Future[R]]] = SimpleQueue()

    working: set[tuple[str, str]] = set()
    gone: GoneError | None = None

    @signals.defer_interrupts()
    def begin(device: DeviceInfo, group: TaskGroup[T]) -> None:
        working.add(_key(device))
        future = threads.submit(do, device, group.tasks[0])
        future.add_done_callback(lambda future: done.put((device, group, future)))

    def begin_all() -> None:
        for device in [info for key, info in devices.items() if key not in working]:
            group = next((group for group in left if device in group.devices), None)
            if group is not None:
                left.remove(group)
                begin(device, group)

    begin_all()
    while working:
        device, group, future = done.get()
        working.remove(_key(device))
        try:
            result = signals.result(future)
        except GoneError as error:
            gone = error
            left.insert(0, group)
            del devices[_key(device)]
            begin_all()
            continue
        if rest := group.tasks[1:]:
            begin(device, replace(group, tasks=rest))
        begin_all()
        yield group.tasks[0], result
    if gone is not None and left:
        raise gone


def _key(info: DeviceInfo) -> tuple[str, str]:
    return info.backend, info.identity
