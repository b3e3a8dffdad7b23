"""Rounds: the kernels of a size take turns, and what differs between rounds is in the interval;
and how cases are handed out."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices import CPU, GPU
from support.golden import TableRegression
from support.optional import present
from support.products import case_of
from support.records import outcome, timing

from matbench.backends.protocol import Backend
from matbench.bench import checks
from matbench.bench.launches import Launches
from matbench.bench.loop import sample_until_known
from matbench.bench.options import FIRST, Options, Round
from matbench.bench.prepared import Prepared
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.model import Case, Conditions, DeviceInfo, Kernel, LaunchRules, Problem
from matbench.records.outcome import Outcome, Timing
from matbench.worker.rounds import Rounds, Visit, in_rounds, interrupted, joined
from matbench.worker.scheduler import GoneError, TaskGroup, at_the_same_time
from matbench.worker.worker import results

FLOAT32 = Kernel(name="plain", launch=LaunchRules(block=(1,), grid=(1,)))
TF32 = msgspec.structs.replace(FLOAT32, name="tensor", precision="tf32")
BY_DEFAULT = Options(rounds=None)


#: The visit after three rounds of three samples.
LAST = Round(5, (1e6,) * 9, is_sustained=True)


def cases(kernels: list[Kernel]) -> list[Case]:
    """One for each, told apart by TILE."""
    return [Case(k, Problem(8, 8, 8), {"TILE": i}, None) for i, k in enumerate(kernels)]


@given(st.lists(st.sampled_from([FLOAT32, TF32]), min_size=1, max_size=8))
def test_each_round_has_every_case_once_and_like_cases_stay_together(kernels: list[Kernel]) -> None:
    [group] = in_rounds([TaskGroup((CPU,), cases(kernels), 3.0)], BY_DEFAULT)
    visited = [rounds.case.params["TILE"] for rounds in group.tasks]
    assert Counter(visited) == dict.fromkeys(range(len(kernels)), 7)
    assert (group.devices, group.cost) == ((CPU,), 3.0)
    place = 0
    for name in dict.fromkeys(kernel.name for kernel in kernels):
        alike = [i for i, kernel in enumerate(kernels) if kernel.name == name]
        assert visited[place : place + len(alike)] == alike, "the first round is in order"
        for _ in range(7):
            assert sorted(visited[place : place + len(alike)]) == alike
            place += len(alike)
        assert visited[place - len(alike) : place] == alike, "so is the last"


def test_rounds_between_are_in_random_order() -> None:
    orders = set()
    for _ in range(20):
        [group] = in_rounds([TaskGroup((GPU,), cases([FLOAT32] * 6))], BY_DEFAULT)
        orders.add(tuple(rounds.case.params["TILE"] for rounds in group.tasks[6:12]))
    assert len(orders) > 10
    [single] = in_rounds([TaskGroup((GPU,), cases([FLOAT32] * 6))], Options())
    assert len(single.tasks) == 6


def visits(*outcomes: Outcome, rounds: int = 7) -> list[Visit | None]:
    """What becomes of a case whose measurements are these."""
    one = rounds_of(rounds)
    return [visit(one, found) for found in outcomes]


def visit(one: Rounds, found: Outcome) -> Visit | None:
    """The next visit, if there is one, which finds this."""
    return None if one.next() is None else one.taken(CPU, found)


def rounds_of(rounds: int, **changes: Any) -> Rounds:
    options = msgspec.structs.replace(BY_DEFAULT, rounds=rounds).on("cpu")
    return Rounds(cases([FLOAT32])[0], options, **changes)


def taken(count: int, ms: float = 1.0) -> Outcome:
    """The outcome of one round."""
    found = timing(samples_ns=[ms * 1e6] * count, rounds=[count])
    return outcome(cold=found, device_id=CPU.identity)


def test_a_case_is_done_after_its_rounds() -> None:
    found = visits(*[taken(3)] * 8)
    assert found.pop() is None
    assert [visit.share for visit in found if visit] == [pytest.approx(i / 7) for i in range(1, 8)]
    [last] = visits(taken(3), rounds=1)
    assert present(last).share == 1.0, "there is no other visit"


def test_a_launch_of_more_than_a_second_has_three_rounds() -> None:
    shares = [visit.share for visit in visits(*[taken(1, ms=1100)] * 3) if visit]
    assert shares == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]


@pytest.mark.parametrize(
    "ended",
    [
        outcome(status="wrong", reason="all of it", device_id=CPU.identity),
        outcome(status="failed", reason="crashed", device_id=CPU.identity),
        outcome(status="skipped", device_id=CPU.identity),
        outcome(cold=timing(), device_id=CPU.identity),  # measured, without rounds: NumPy
    ],
    ids=lambda ended: ended.status,
)
def test_what_is_over_has_no_further_round(ended: Outcome) -> None:
    assert visits(ended, ended) == [Visit(CPU.where, ended, 1.0, 1.0), None]
    begun = taken(3)
    assert visits(begun, ended, ended)[1:] == [Visit(CPU.where, ended, 1.0, 1 - 1 / 7), None]


def test_rounds_on_another_device_do_not_count() -> None:
    """A group goes on elsewhere when its device is lost: what there is then stands."""
    other = msgspec.structs.replace(CPU, properties={"UUID": "another"})
    one = rounds_of(5, outcome=taken(3))
    assert one.ended(CPU) is None
    visit = one.ended(other)
    assert visit == Visit(other.where, interrupted(taken(3)), 1.0, 1.0)
    assert visit.outcome.interrupted
    assert (one.ended(other), one.next()) == (None, None)


def test_a_visit_that_failed_with_its_device_is_taken_again() -> None:
    one = rounds_of(2)
    assert one.next() == one.next() == FIRST
    shares = [visit(one, taken(3)) for _ in range(2)]
    assert [visit.share for visit in shares if visit] == [0.5, 1.0]


def test_sustained_launches_come_after_the_rounds_of_all_cases() -> None:
    lasting = Options(rounds=3, sustained_s=1.0)
    [group] = in_rounds([TaskGroup((CPU,), cases([FLOAT32] * 2))], lasting)
    first, second = group.tasks[:2]
    assert len(group.tasks) == 2 * 4
    assert group.tasks[-2:] == [first, second]
    shares = []
    for asked in (Round(1), Round(2, (1e6,) * 3), Round(3, (1e6,) * 6), LAST):
        assert first.next() == asked
        shares.append(first.taken(CPU, taken(3)).share)
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_a_slow_case_waits_for_the_others_before_sustained_launches() -> None:
    one = rounds_of(5, is_sustained=True)
    visits = [visit(one, taken(1, ms=1100)) for _ in range(6)]
    assert [visit.share if visit else None for visit in visits] == [0.25, 0.5, 0.75, None, None, 1]
    assert one.next() is None, "it was done"


# -- the samples of several rounds -----------------------------------------------------------------


def sampled(times_ns: list[list[float]], rounds: int | None = None, **changes: Any) -> Timing:
    """Rounds of samples that take these times; a round that needs more repeats its own."""
    options = msgspec.structs.replace(BY_DEFAULT, rounds=rounds, **changes).on("cpu")
    found, passed_ns = None, 0.0

    def sample() -> float:
        nonlocal passed_ns
        passed_ns += (taken_ns := next(times))
        return taken_ns

    for number, wanted in enumerate(times_ns, 1):
        times = iter(wanted * 1000)
        last = sample_until_known(
            sample, 0, options, Conditions, launching_ns=lambda: int(passed_ns),
            number=number, earlier=found.samples_ns if found else (),
        )  # fmt: skip
        found = joined(found, last, present(options.uncertainty))
    return present(found)


def test_what_rounds_become(table_regression: TableRegression) -> None:
    """The samples of all are kept, in order; the interval covers what differs between rounds, but a
    single late sample is no difference, for a slow kernel has rounds of one."""

    def told(question: str) -> str:
        found = eval(f"sampled({question})", {"sampled": sampled})
        low, high = present(found.interval_ns)
        samples = " ".join(f"{len([*same])} × {ns:g}" for ns, same in groupby(found.samples_ns))
        ended = f"{'settled' if found.settled else 'not settled'}, {found.stopped}"
        figures = f"median {found.median_ns:g}, {low:g} to {high:g} ns, {ended}"
        before = f"{found.warmups} warm-ups, {len(found.conditions)} conditions"
        return f"{found.rounds}: {samples}; {figures}; {before}"

    table_regression("rounds.txt", told)


def test_a_clock_that_moved_between_rounds_is_told() -> None:
    options = msgspec.structs.replace(BY_DEFAULT, rounds=2, uncertainty=10.0).on("gpu")
    found = None
    for mhz in (1980, 1700):
        clocks = iter([Conditions(sm_mhz=345)] if found is None else [])  # idle before the first
        last = sample_until_known(
            lambda: 2e7, 0, options,
            lambda told=clocks, mhz=mhz: next(told, Conditions(sm_mhz=mhz)),  # type: ignore[misc]
            number=1 if found is None else 2, earlier=found.samples_ns if found else (),
        )  # fmt: skip
        found = joined(found, last, 10.0)
    [note] = present(found).notes
    assert note.startswith("SM clock varied from 1,700 to 1,980 MHz")


# -- a session -------------------------------------------------------------------------------------


def test_trials_and_blocks_come_first(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: Counter[str] = Counter()
    stamps = Launches.stamps

    def noted(*given: Any) -> Any:
        counted["blocks"] += 1
        return stamps(*given)

    monkeypatch.setattr(Launches, "stamps", noted)
    began = lambda _: counted.update(["before"])  # noqa: E731
    monkeypatch.setattr(checks, "BEFORE_TIMING", (began, *checks.BEFORE_TIMING))
    case = case_of("tiled", 24, backend.info, TILE=8)
    options = Options(max_time_s=0.001, rounds=None)
    session = Session(backend, Cache(), options)
    first = session.measure(case)
    second = Round(2, hot_ns=present(first.hot).samples_ns)
    rounds = Rounds(case, options.on("cpu"), outcome=first)
    both = rounds.taken(backend.info, session.measure(case, present(rounds.next()))).outcome
    assert counted == {"before": 1, "blocks": 1}
    assert both.blocks == first.blocks
    assert both.accuracy == first.accuracy
    assert present(both.hot).samples_ns[: len(second.hot_ns)] == second.hot_ns
    other = Session(backend, Cache(), options)
    assert len(present(other.measure(case, second).timing).rounds) == 1
    assert counted == {"before": 2, "blocks": 1}
    for size, tile in ((32, 8), (24, 16)):  # what it was not right on before
        session.measure(case_of("tiled", size, backend.info, TILE=tile), second)
    session.measure(case, second)
    assert counted == {"before": 4, "blocks": 1}

    monkeypatch.setattr(Prepared, "is_intact", lambda self: False)
    spoiled = session.measure(case, second)
    assert (spoiled.status, spoiled.check) == ("wrong", "sources")


# Cases are handed out to several devices


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
