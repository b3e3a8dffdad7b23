"""Handing out to the workers of a cluster that loses some: every case once, groups together."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from distributed import CancelledError, KilledWorker
from support.devices import CPU, GPU
from support.records import outcome

from matbench.errors import MatbenchError
from matbench.kernelfile import catalogue, parcels
from matbench.measure import remote, remote_crew
from matbench.measure.cluster import Member
from matbench.measure.handing_out import Group
from matbench.measure.options import Deadlines, Options
from matbench.measure.outcomes import Found
from matbench.measure.output import Said
from matbench.measure.remote_crew import RemoteCrew
from matbench.model import Case, DeviceInfo, Problem

KERNEL = catalogue.load(catalogue.kernels_folder() / "tiled.cu", "kernels/tiled.cu")
GPUS = tuple(
    msgspec.structs.replace(GPU, properties={"UUID": f"GPU-{number}", "host": "node"})
    for number in range(3)
)
LOST = "the worker is lost"
#: What a worker does with a case: its answer, an exception, or `LOST`.
Behaviour = Callable[[Member, remote.Errand], Any]


class Future:
    def __init__(self, value: Any) -> None:
        self.value = value
        self.status = "error" if isinstance(value, BaseException) else "finished"

    def add_done_callback(self, call: Callable[[Future], None]) -> None:
        self.call = call
        if self.value is not LOST:
            call(self)

    def result(self) -> Any:
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


class Cluster:
    """Workers that do what a test says. One that is lost comes back at another address."""

    where = "tcp://node:8786"

    def __init__(self, devices: Iterable[DeviceInfo], does: Behaviour, *, back: bool = True):
        self.does = does
        self.back = back
        self.members: dict[str, Member] = {}
        self.lost: list[Member] = []
        self.began: list[tuple[str, str]] = []
        self.errands: list[tuple[str, remote.Errand]] = []
        self.forgotten: list[Future] = []
        self.is_ended = False
        self.joined = 0
        self.absent_for = 0  # how often a worker is gone that `look` has not yet found lost
        for device in devices:
            self.join(device)

    def join(self, device: DeviceInfo) -> None:
        number = self.joined
        self.joined += 1
        member = Member(f"tcp://node:{number}", device, f"{device.where} #{number}")
        self.members[member.address] = member

    @property
    def client(self) -> Cluster:
        return self

    def submit(self, function: Any, pickled: bytes, *, workers: list[str], **how: Any) -> Future:
        assert function is remote.measure
        member, errand = self.members[workers[0]], pickle.loads(pickled)
        assert how["resources"] == {member.device.kind.upper(): 1}
        assert how["allow_other_workers"] is False
        self.errands.append((member.address, errand))
        did = self.does(member, errand)
        if did is LOST:
            self.lost.append(member)
        return Future(did)

    def look(self) -> list[Member]:
        found, self.lost = self.lost, []
        for member in found:
            del self.members[member.address]
        for member in found if self.back else []:
            self.join(member.device)
        return found

    def present(self) -> set[str]:
        self.absent_for -= 1
        return set(self.members) if self.absent_for < 0 else set()

    def ask(self, call: Callable[[], Any]) -> Any:
        return call()

    def forget(self, futures: Iterable[Any]) -> None:
        """A task that was cancelled is reported as done, like any other."""
        for future in filter(None, futures):
            self.forgotten.append(future)
            if future.value is LOST:
                future.value, future.status = CancelledError(), "cancelled"
                future.call(future)

    def end(self) -> None:
        self.is_ended = True


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_crew, "_LOOK_S", 0.01)
    monkeypatch.setattr(remote_crew, "_PATIENCE_S", 0.2)


def case(size: int, tile: int = 8, **changes: Any) -> Case:
    made = Case(KERNEL, Problem(size, size, size), {"TILE": tile}, None)
    return msgspec.structs.replace(made, **changes)


def right(member: Member, errand: remote.Errand) -> remote.Answer:
    return remote.Answer(Found(outcome(notes=(errand.sent.case.label,))), ())


def measured(cluster: Cluster, groups: list[Group[Case]], **more: Any) -> list[Any]:
    """What the crew found: the label of each case, or its outcome if that has a reason."""
    crew = RemoteCrew(cluster, Options(), Deadlines(), more.get("listener"))  # type: ignore[arg-type]
    found = []
    with crew:
        begin = lambda info, case, place: cluster.began.append((place, case.label))  # noqa: E731
        for _, each in crew.measured(groups, begin):
            if each is not None:
                found.append(each.outcome if each.outcome.reason else each.outcome.notes[0])
    assert cluster.is_ended
    return found


def test_a_group_stays_on_one_worker_and_all_work() -> None:
    cluster = Cluster(GPUS, right)
    groups = [Group(GPUS, [case(size, tile) for tile in (8, 16)], size) for size in range(16, 25)]
    found = measured(cluster, groups)
    assert Counter(found) == Counter(c.label for group in groups for c in group.tasks)
    where: dict[int, set[str]] = {}
    for address, errand in cluster.errands:
        where.setdefault(errand.sent.case.problem.N, set()).add(address)
    assert all(len(each) == 1 for each in where.values())
    assert len(set.union(*where.values())) == 3
    # The most work first.
    assert cluster.errands[0][1].sent.case.problem.N == 24


def test_what_only_one_device_may_do_waits_for_it() -> None:
    cluster = Cluster(GPUS, right)
    groups = [Group(GPUS[:1], [case(size)]) for size in (16, 17)]
    measured(cluster, groups)
    assert [address for address, _ in cluster.errands] == ["tcp://node:0"] * 2


def test_a_lost_worker_costs_its_case_which_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def once(member: Member, errand: remote.Errand) -> Any:
        is_second = len(cluster.errands) == 2
        return LOST if is_second else right(member, errand)

    tasks = [case(16, tile) for tile in (8, 16, 32)]
    cluster = Cluster(GPUS[:1], once)
    assert measured(cluster, [Group(GPUS[:1], tasks)]) == [each.label for each in tasks]
    assert [label for _, label in cluster.began] == [tasks[i].label for i in (0, 1, 1, 2)]
    assert len(cluster.forgotten) == 1
    [record] = caplog.records
    assert record.getMessage() == (
        "lost the worker on cuda:0 on node #0 (tcp://node:0); tiled TILE=16 at 16 is tried again"
    )


@pytest.mark.parametrize(
    "how", [LOST, CancelledError(), TimeoutError(), KilledWorker("a", None, 3)], ids=repr
)
def test_a_case_that_loses_two_workers_has_failed(how: Any) -> None:
    cluster = Cluster(
        GPUS,
        lambda member, errand: how if errand.sent.case.problem.N == 16 else right(member, errand),
    )
    found = measured(cluster, [Group(GPUS, [case(16), case(17)])])
    assert found[1] == case(17).label
    assert found[0].status == "failed"
    assert found[0].reason.startswith("its worker was lost 2 times, last on cuda:0 on node #")
    assert found[0].case.device_id in {info.identity for info in GPUS}
    assert len(cluster.errands) == 3


def test_a_lost_case_is_not_sent_to_a_worker_that_has_gone() -> None:
    cluster = Cluster(GPUS[:1], lambda m, e: LOST if len(cluster.errands) == 1 else right(m, e))
    cluster.absent_for = 2
    assert measured(cluster, [Group(GPUS[:1], [case(16)])]) == [case(16).label]
    assert len(cluster.errands) == 2
    assert cluster.absent_for < 0


def test_an_end_comes_if_no_worker_is_left() -> None:
    cluster = Cluster(GPUS[:1], lambda *_: LOST, back=False)
    with pytest.raises(
        MatbenchError, match=r"no worker is left for 2 cases; .* continue with --resume$"
    ):
        measured(cluster, [Group(GPUS[:1], [case(16), case(17)])])
    assert cluster.is_ended


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
        measured(cluster, [Group(GPUS[:1], [case(16), case(17)])])
    assert str(raised.value) == f"cuda:0 on node #0: {said}"
    assert len(cluster.errands) == 1


def test_files_are_sent_once_to_each_worker_and_again_if_it_lost_them() -> None:
    def forgetful(member: Member, errand: remote.Errand) -> Any:
        is_third = len(cluster.errands) == 3
        return parcels.NotSentError() if is_third else right(member, errand)

    cluster = Cluster(GPUS[:1], forgetful)
    tasks = [case(size) for size in (16, 17, 18)]
    assert len(measured(cluster, [Group(GPUS[:1], tasks)])) == 3
    files = [errand.sent.files for _, errand in cluster.errands]
    assert [each is not None for each in files] == [True, False, False, True]
    assert files[0] == {"tiled.cu": KERNEL.source.encode()}
    assert [len(errand.ahead) for _, errand in cluster.errands] == [2, 0, 0, 0]


def test_skipped_cases_do_not_travel() -> None:
    cluster = Cluster(GPUS[:1], right)
    groups = [Group((CPU,), [case(16, skip="cannot run")]), Group(GPUS, [case(17)])]
    first, second = measured(cluster, groups)
    assert (first.status, first.reason, first.case.device) == ("skipped", "cannot run", CPU.name)
    assert second == case(17).label
    assert len(cluster.errands) == 1


def test_output_of_kernels_is_passed_on() -> None:
    said = (("kernel", Said(("hello",))),)
    heard = []
    cluster = Cluster(GPUS[:1], lambda m, e: right(m, e)._replace(said=said))
    measured(
        cluster,
        [Group(GPUS[:1], [case(16)])],
        listener=lambda printer, what: heard.append((printer, what)),
    )
    assert heard == list(said)


def test_each_repetition_has_another_name_so_that_processes_are_new() -> None:
    cluster = Cluster(GPUS[:1], right)
    crew = RemoteCrew(cluster, Options(), Deadlines(), None)  # type: ignore[arg-type]
    for _ in range(2):
        list(crew.measured([Group(GPUS[:1], [case(16), case(17)])], lambda *_: None))
        crew.renew()
    names = [errand.job.name for _, errand in cluster.errands]
    assert names[0] == names[1] != names[2] == names[3]
