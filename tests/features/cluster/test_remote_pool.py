"""Handing out to the workers of a cluster that loses some: every case once, groups together."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from support.dask_cluster import wait_for
from support.devices import CPU, GPU
from support.kernels import own_file
from support.records import outcome

from matbench.bench.options import Deadlines, Options, Round
from matbench.errors import MatbenchError
from matbench.features.cluster import bundles, remote, remote_pool
from matbench.features.cluster.remote_pool import RemoteWorkerPool
from matbench.kernelfile import catalogue
from matbench.model import Case, DeviceInfo, Kernel, Problem, Skip
from matbench.records.outcome import Outcome
from matbench.worker.output import CapturedOutput
from matbench.worker.scheduler import GoneError, TaskGroup

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="no Dask")
KERNEL = catalogue.load(own_file("tiled"), "kernels/tiled.cu")
GPUS = tuple(
    msgspec.structs.replace(GPU, properties={"UUID": f"GPU-{number}", "host": "node"})
    for number in range(3)
)
LOST = "the worker is lost"
#: What a worker does with a case: its answer, an exception, or `LOST`.
Behaviour = Callable[[DeviceInfo, Case], Any]


class Future:
    def __init__(self, key: str, value: Any) -> None:
        self.key = key
        self.value = value

    def add_done_callback(self, call: Callable[[Future], None]) -> None:
        if self.value is not LOST:
            call(self)

    def result(self, timeout: float) -> Any:
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


class Cluster:
    """A worker for each device, which does what a test says. One that is lost comes back elsewhere,
    unless it was the `last`."""

    def __init__(self, devices: Iterable[DeviceInfo], does: Behaviour, last: int = 99) -> None:
        self.does = does
        self.last = last
        self.members: dict[str, DeviceInfo] = {}
        self.desks: dict[str, tuple[str, Any]] = {}
        self.errands: list[tuple[str, str, list[Any]]] = []
        self.ended: list[dict[str, str]] = []
        self.joined = 0
        for device in devices:
            self.join(device)

    def join(self, device: DeviceInfo) -> None:
        self.members[f"tcp://node:{self.joined}"] = device
        self.joined += 1

    @property
    def client(self) -> Cluster:
        return self

    def address(self, device: DeviceInfo) -> str:
        for address, info in self.members.items():
            if info == device:
                return address
        raise GoneError("no worker is left")

    def has(self, address: str) -> bool:
        return address in self.members

    def submit(
        self, function: Any, *given: Any, key: str, workers: list[str], resources: Any = None
    ) -> Future:
        [address] = workers
        device = self.members[address]
        if function is remote.Desk:
            self.desks[key] = address, given
            return Future(key, None)
        assert function is remote.measure
        assert resources == {device.kind.upper(): 1}
        desk, errand = given
        assert self.desks[desk.key] == (address, (device, Options(), Deadlines()))
        assert errand.desk == desk.key
        self.errands.append((address, desk.key, errand.cases))
        did = self.does(device, errand.cases[0][0])
        if isinstance(did, Exception) or did is LOST:
            del self.members[address]
            if self.joined < self.last:
                self.join(device)
        return Future(key, did)

    def end(self, desks: dict[str, str]) -> None:
        self.ended.append(desks)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_pool, "_LOOK_S", 0.01)


def case(size: int, tile: int = 8, **changes: Any) -> Case:
    made = Case(KERNEL, Problem(size, size, size), {"TILE": tile}, None)
    return msgspec.structs.replace(made, **changes)


def right(device: DeviceInfo, case: Case) -> remote.RemoteOutcome:
    return remote.RemoteOutcome(outcome(notes=(case.label,)), ())


def measured(cluster: Cluster, groups: list[TaskGroup[Case]], **more: Any) -> list[Any]:
    """What the pool found: the label of each case, or its outcome if that has a reason."""
    pool = RemoteWorkerPool(cluster, Options(), Deadlines(), more.get("listener"))  # type: ignore[arg-type]
    with pool:
        outcomes = [visit.outcome for visit in pool.measured(groups, lambda *_: None)]
    used = {address: key for address, key, _ in cluster.errands if address in cluster.members}
    assert cluster.ended[-1].items() >= used.items()
    return [outcome if outcome.reason or outcome.skip else outcome.notes[0] for outcome in outcomes]


def test_a_group_stays_on_one_worker() -> None:
    cluster = Cluster(GPUS, right)
    groups = [
        TaskGroup(GPUS, [case(size, tile) for tile in (8, 16)], size) for size in range(16, 25)
    ]
    found = measured(cluster, groups)
    assert Counter(found) == Counter(case.label for group in groups for case in group.tasks)
    where: dict[int, set[str]] = {}
    for address, _, [(first, _), *_] in cluster.errands:
        where.setdefault(first.problem.N, set()).add(address)
    assert all(len(addresses) == 1 for addresses in where.values())
    # Each worker has one desk.
    assert len({key for _, key, _ in cluster.errands}) == len(set.union(*where.values()))


def test_a_lost_worker_costs_a_case_that_is_retried(caplog: pytest.LogCaptureFixture) -> None:
    tasks = [case(16, tile) for tile in (8, 16, 32)]
    cluster = Cluster(GPUS[:1], lambda d, c: LOST if len(cluster.errands) == 2 else right(d, c))
    assert measured(cluster, [TaskGroup(GPUS[:1], tasks)]) == [task.label for task in tasks]
    labels = [cases[0][0].label for _, _, cases in cluster.errands]
    assert labels == [tasks[number].label for number in (0, 1, 1, 2)]
    [record] = caplog.records
    assert record.getMessage() == (
        "lost the worker on cuda:0 on node (tcp://node:0); tiled TILE=16 at 16 is tried again"
    )


@pytest.mark.parametrize("how", [LOST, "CancelledError", "TimeoutError", "KilledWorker"])
def test_a_case_that_loses_two_workers_has_failed(how: Any) -> None:
    if how is not LOST:
        import distributed

        given = ("a", None, 3) if how == "KilledWorker" else ()
        how = getattr(distributed, how)(*given)
    cluster = Cluster(GPUS[:1], lambda d, c: how if c.problem.N == 16 else right(d, c))
    found = measured(cluster, [TaskGroup(GPUS[:1], [case(16), case(17)])])
    assert found[1] == case(17).label
    assert found[0].status == "failed"
    assert found[0].reason == ("its worker was lost 2 times, last on cuda:0 on node (tcp://node:1)")
    assert found[0].case.device_id == GPUS[0].identity
    assert len(cluster.errands) == 3


def test_another_device_does_what_a_lost_one_leaves() -> None:
    tasks = [case(16, tile) for tile in (8, 16, 32)]
    cluster = Cluster(
        GPUS[:2], lambda d, c: LOST if len(cluster.errands) == 2 else right(d, c), last=2
    )
    assert measured(cluster, [TaskGroup(GPUS[:2], tasks)]) == [task.label for task in tasks]
    assert len({address for address, _, _ in cluster.errands}) == 2


def test_an_end_comes_if_no_worker_is_left() -> None:
    cluster = Cluster(GPUS[:1], lambda *_: LOST, last=1)
    with pytest.raises(MatbenchError, match="no worker is left"):
        measured(cluster, [TaskGroup(GPUS[:1], [case(16), case(17)])])
    assert cluster.ended == [{}]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MatbenchError("cache folder /x: not a folder"), "cache folder /x: not a folder"),
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero"),
    ],
)
def test_what_concerns_every_case_ends_the_sweep(error: Exception, said: str) -> None:
    cluster = Cluster(GPUS[:1], lambda *_: error)
    with pytest.raises(MatbenchError) as raised:
        measured(cluster, [TaskGroup(GPUS[:1], [case(16), case(17)])])
    assert str(raised.value) == f"cuda:0 on node: {said}"
    assert len(cluster.errands) == 1


@pytest.mark.parametrize(("device", "builds"), [(GPUS[0], 2), (CPU, 0)])
def test_the_first_case_of_a_group_brings_others(device: DeviceInfo, builds: int) -> None:
    cluster = Cluster([device], right)
    measured(cluster, [TaskGroup((device,), [case(size) for size in (16, 17, 18)])])
    sent = [cases for _, _, cases in cluster.errands]
    assert [len(ahead) for _, *ahead in sent] == [builds, 0, 0]
    for (first, bundle), *_ in sent:
        assert bundle.files == {own_file("tiled").name: KERNEL.source.encode()}
        assert first.kernel == bundle.kernel


def test_skipped_cases_do_not_travel() -> None:
    cluster = Cluster(GPUS[:1], right)
    skip = Skip("unavailable", "cannot run")
    groups = [TaskGroup((CPU,), [case(16, skip=skip)]), TaskGroup(GPUS[:1], [case(17)])]
    second, first = sorted(measured(cluster, groups), key=lambda found: not isinstance(found, str))
    assert (first.status, first.skip, first.case.device) == ("skipped", skip, CPU.name)
    assert second == case(17).label
    assert len(cluster.errands) == 1


def test_output_of_kernels_is_passed_on() -> None:
    said = (("kernel", CapturedOutput(("hello",))),)
    heard = []
    cluster = Cluster(GPUS[:1], lambda d, c: msgspec.structs.replace(right(d, c), said=said))
    measured(
        cluster,
        [TaskGroup(GPUS[:1], [case(16)])],
        listener=lambda printer, what: heard.append((printer, what)),
    )
    assert heard == list(said)


def test_each_repetition_has_another_desk_so_that_processes_are_new() -> None:
    cluster = Cluster(GPUS[:1], right)
    pool = RemoteWorkerPool(cluster, Options(), Deadlines(), None)  # type: ignore[arg-type]
    for _ in range(2):
        list(pool.measured([TaskGroup(GPUS[:1], [case(16), case(17)])], lambda *_: None))
        pool.renew()
    desks = [key for _, key, _ in cluster.errands]
    assert desks[0] == desks[1] != desks[2] == desks[3]
    assert cluster.ended == [{"tcp://node:0": desks[0]}, {"tcp://node:0": desks[2]}]


def test_a_sweep_that_is_over_sends_nothing_more() -> None:
    cluster = Cluster(GPUS[:1], right)
    pool = RemoteWorkerPool(cluster, Options(), Deadlines(), None)  # type: ignore[arg-type]

    def interrupted(*_: Any) -> None:
        pool.__exit__()

    with pytest.raises(MatbenchError, match="the sweep is over"):
        list(pool.measured([TaskGroup(GPUS[:1], [case(16)])], interrupted))
    assert (cluster.desks, cluster.errands) == ({}, [])


# In the worker


CASES = [Case(KERNEL, Problem(size, size, size), {"TILE": 8}, None) for size in (16, 17)]


class WorkerPool:
    """Records what it is asked for; its one worker is itself."""

    asked: list[Any]
    listener: Any

    def __init__(self, options: Options, deadlines: Deadlines) -> None:
        self.asked.append("begin")

    def build_ahead(self, cases: list[tuple[DeviceInfo, Case]]) -> None:
        self.asked.append(("build", [(device, case.problem.N) for device, case in cases]))

    def worker(self, device: DeviceInfo, kernel: Kernel) -> WorkerPool:
        assert device == GPU
        return self

    def measure(self, case: Case, which: Round) -> Outcome:
        source = Path(case.kernel.file).read_text()
        self.asked.append(("measure", case.problem.N, source, which.number))
        self.listener("kernel", CapturedOutput(("hello",)))
        return outcome()

    def __exit__(self) -> None:
        self.asked.append("end")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    here = SimpleNamespace(local_directory=str(tmp_path))
    monkeypatch.setattr("distributed.get_worker", lambda: here)
    monkeypatch.setattr(remote, "WorkerPool", WorkerPool)
    monkeypatch.setattr(WorkerPool, "asked", [], raising=False)
    return WorkerPool.asked


def test_the_first_case_is_measured_and_those_after_it_are_built(asked: list[Any]) -> None:
    desk = remote.Desk(GPU, Options(), Deadlines())
    bundle = bundles.packed(KERNEL)
    answer = remote.measure(desk, remote.Errand("desk", [(case, bundle) for case in CASES]))
    assert answer == remote.RemoteOutcome(outcome(), (("kernel", CapturedOutput(("hello",))),))
    assert asked == ["begin", ("build", [(GPU, 17)]), ("measure", 16, KERNEL.source, 1)]
    remote.measure(desk, remote.Errand("desk", [(CASES[0], bundle)], Round(2)))
    assert asked[-1] == ("measure", 16, KERNEL.source, 2)


def test_a_desk_that_dask_drops_ends_its_pool(asked: list[Any]) -> None:
    desk = remote.Desk(GPU, Options(), Deadlines())
    del desk
    gc.collect()
    assert asked == ["begin", "end"]


def test_only_desks_of_the_sweep_are_ended(asked: list[Any]) -> None:
    desk, other = (remote.Desk(GPU, Options(), Deadlines()) for _ in range(2))
    dask = SimpleNamespace(data={"a": desk, "b": other, "c": 1})
    remote.end(["a", "c", "gone"], dask)
    assert asked == ["begin", "begin", "end"]


def test_a_desk_that_has_ended_measures_nothing_that_arrives_late(asked: list[Any]) -> None:
    remote.end(["late"], SimpleNamespace(data={}))  # before the desk was there
    desk = remote.Desk(GPU, Options(), Deadlines())
    with pytest.raises(MatbenchError, match="its sweep has ended"):
        remote.measure(desk, remote.Errand("late", [(CASES[0], bundles.packed(KERNEL))]))
    assert asked == ["begin"]


def test_the_end_waits_for_what_starts(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the case's steps starts a process, which only an end after that can stop."""

    def measure(pool: WorkerPool, *_: Any) -> Outcome:
        for step in (1, 2):
            asked.append(f"start {step}")
            wait_for(lambda: asked[-1] == "end")
        asked.append("start 3")
        return outcome()

    monkeypatch.setattr(WorkerPool, "measure", measure)
    desk = remote.Desk(GPU, Options(), Deadlines())
    errand = remote.Errand("desk", [(CASES[0], bundles.packed(KERNEL))])
    case = Thread(target=remote.measure, args=(desk, errand), daemon=True)
    case.start()
    wait_for(lambda: asked[-1] == "start 1")
    desk.end()
    assert asked[-1] == "end"
    assert [word for word in asked if "start" in word] == ["start 1", "start 2", "start 3"]
