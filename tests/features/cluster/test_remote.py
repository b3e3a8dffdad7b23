"""A sweep's desk in a Dask worker: the first case is measured, those after it are built."""

from __future__ import annotations

import gc
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from support.dask_cluster import wait_for
from support.devices import GPU
from support.kernels import own_file
from support.records import outcome

from matbench.bench.options import Deadlines, Options
from matbench.errors import MatbenchError
from matbench.features.cluster import bundles, remote
from matbench.kernelfile import catalogue
from matbench.model import Case, DeviceInfo, Kernel, Problem
from matbench.records.outcome import Outcome
from matbench.worker.output import CapturedOutput

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="no Dask")
KERNEL = catalogue.load(own_file("tiled"), "kernels/tiled.cu")
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

    def measure(self, case: Case, so_far: Outcome | None) -> Outcome:
        source = Path(case.kernel.file).read_text()
        self.asked.append(("measure", case.problem.N, source, so_far))
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
    assert asked == ["begin", ("build", [(GPU, 17)]), ("measure", 16, KERNEL.source, None)]
    remote.measure(desk, remote.Errand("desk", [(CASES[0], bundle)], outcome("so far")))
    assert asked[-1] == ("measure", 16, KERNEL.source, outcome("so far"))


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


def test_the_end_waits_until_a_case_starts_no_other_process(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
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
