"""Handing out: every task once, groups never divided, GPUs at the same time, CPUs alone."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices import CPU, GPU

from matbench.model import DeviceInfo
from matbench.worker.scheduler import GoneError, TaskGroup, at_the_same_time, results

GPUS = tuple(msgspec.structs.replace(GPU, index=index) for index in range(4))
Task = tuple[int, int]
THREADS = ThreadPoolExecutor(4)


def made(plan: list[tuple[set[int], int, float]]) -> list[TaskGroup[Task]]:
    """Groups of so many tasks for these GPUs; a task is its group and its number."""
    return [
        TaskGroup(tuple(GPUS[i] for i in sorted(where)), [(number, t) for t in range(tasks)], cost)
        for number, (where, tasks, cost) in enumerate(plan)
    ]


plans = st.lists(
    st.tuples(
        st.sets(st.integers(0, 3), min_size=1), st.integers(0, 4), st.floats(0, 1e12)
    ),
    max_size=12,
)  # fmt: skip


@given(plans)
def test_tasks_are_done_once_and_groups_kept(plan: list[tuple[set[int], int, float]]) -> None:
    lock = threading.Lock()
    where: dict[int, set[int]] = defaultdict(set)
    order: dict[int, list[int]] = defaultdict(list)

    def do(info: DeviceInfo, task: Task) -> str:
        with lock:
            where[task[0]].add(info.index)
            order[task[0]].append(task[1])
        return f"{task} by {info.index}"

    found = list(results(made(plan), do, THREADS))
    assert Counter(task for task, _ in found) == Counter(
        (number, t) for number, (_, tasks, _) in enumerate(plan) for t in range(tasks)
    )
    for number, (allowed, tasks, _) in enumerate(plan):
        assert where[number] <= allowed
        assert len(where[number]) == (tasks > 0)
        assert order[number] == list(range(tasks))
    assert all(result.startswith(str(task)) for task, result in found)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_all_gpus_work_at_the_same_time(count: int) -> None:
    together = threading.Barrier(count, timeout=30)

    def do(info: DeviceInfo, task: Task) -> int:
        together.wait()  # breaks unless as many tasks run at once
        return info.index

    groups = made([(set(range(count)), 1, 1.0)] * count)
    assert sorted(index for _, index in results(groups, do, THREADS)) == list(range(count))


def test_the_longest_group_begins_first_and_what_only_one_can_do_before_it() -> None:
    begun: dict[int, list[int]] = {0: [], 1: []}
    first = threading.Barrier(2, timeout=30)

    def do(info: DeviceInfo, task: Task) -> None:
        begun[info.index].append(task[0])
        if len(begun[info.index]) == 1:
            first.wait()

    both = {0, 1}
    plan = [(both, 1, 1.0), (both, 1, 9.0), ({1}, 1, 5.0), (both, 1, 4.0)]
    list(results(made(plan), do, THREADS))
    assert begun[0][0] == 1
    assert begun[1][0] == 2
    assert [number for number in begun[0] + begun[1] if number in (0, 3)].count(3) == 1


def test_one_gpu_and_cpus_work_in_order_in_the_calling_thread() -> None:
    other = msgspec.structs.replace(CPU, index=1)
    groups = [
        TaskGroup((CPU, other), ["a", "b"], 1.0),
        TaskGroup((GPUS[0],), ["c"], 2.0),
        TaskGroup((other,), ["d"], 9.0),
    ]
    done: list[tuple[str, str]] = []

    def do(info: DeviceInfo, task: str) -> None:
        assert threading.current_thread() is threading.main_thread()
        done.append((info.place, task))

    assert [task for task, _ in results(groups, do, THREADS)] == ["a", "b", "c", "d"]
    assert done == [("opencl:0", "a"), ("opencl:0", "b"), ("cuda:0", "c"), ("opencl:1", "d")]


def test_cpus_wait_for_the_gpus() -> None:
    groups: list[TaskGroup[Any]] = [
        TaskGroup((CPU,), ["cpu"]),
        *made([({0, 1}, 2, 1.0), ({0, 1}, 2, 1.0)]),
    ]
    done = [task for task, _ in results(groups, lambda *_: None, THREADS)]
    assert done[-1] == "cpu"
    assert len(done) == 5


def test_an_error_of_one_gpu_ends_the_work() -> None:
    def do(info: DeviceInfo, task: Task) -> None:
        if task == (1, 0):
            raise ValueError("of one")

    with pytest.raises(ValueError, match="of one"):
        list(results(made([({0, 1}, 3, 1.0)] * 2), do, THREADS))


def test_nothing_begins_unless_a_result_is_awaited() -> None:
    """So whoever is interrupted has to stop what is running, and nothing else."""
    done: list[Task] = []
    with ThreadPoolExecutor(2) as threads:
        found = results(
            made([({0}, 9, 1.0), ({1}, 9, 1.0)]), lambda _, task: done.append(task), threads
        )
        next(found)
    assert len(done) <= 3


def test_others_do_what_a_device_that_is_gone_leaves() -> None:
    begun = threading.Barrier(2, timeout=30)
    where: dict[Task, int] = {}

    def do(info: DeviceInfo, task: Task) -> int:
        if task[1] == 0 and task not in where:
            begun.wait()
        where[task] = info.index
        if info.index == 0 and task[1] == 1:
            raise GoneError("lost")
        return info.index

    both = {0, 1}
    results = list(at_the_same_time(made([(both, 3, 1.0), (both, 1, 1.0)]), do, THREADS))
    assert sorted(task for task, _ in results) == [(0, 0), (0, 1), (0, 2), (1, 0)]
    if where[1, 0] == 1:
        assert dict(results) == {(0, 0): 0, (0, 1): 1, (0, 2): 1, (1, 0): 1}


def test_it_ends_if_every_device_that_may_is_gone() -> None:
    done: list[Task] = []

    def do(info: DeviceInfo, task: Task) -> None:
        if info.index < 2:
            raise GoneError(f"{info.index} is lost")
        done.append(task)

    plan = [({0, 1}, 2, 1.0), ({2}, 2, 1.0)]
    with pytest.raises(GoneError, match="is lost"):
        list(at_the_same_time(made(plan), do, THREADS))
    assert done == [(1, 0), (1, 1)]
