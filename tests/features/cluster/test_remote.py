"""A sweep's desk in a Dask worker: the first case is measured, those after it are built."""

from __future__ import annotations

import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.devices import GPU
from support.kernels import own_file
from support.records import outcome

from matbench.features.cluster import bundles, remote
from matbench.kernelfile import catalogue
from matbench.measure.options import Deadlines, Options
from matbench.measure.output import CapturedOutput
from matbench.model import Case, DeviceInfo, Problem
from matbench.records.outcome import Outcome

distributed = pytest.importorskip("distributed")
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

    def worker(self, device: DeviceInfo) -> WorkerPool:
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
    monkeypatch.setattr(distributed, "get_worker", lambda: here)
    monkeypatch.setattr(remote, "WorkerPool", WorkerPool)
    monkeypatch.setattr(WorkerPool, "asked", [], raising=False)
    return WorkerPool.asked


def test_the_first_case_is_measured_and_those_after_it_are_built(asked: list[Any]) -> None:
    desk = remote.Desk(GPU, Options(), Deadlines())
    bundle = bundles.packed(KERNEL)
    answer = remote.measure(desk, remote.Errand([(case, bundle) for case in CASES]))
    assert answer == remote.Answer(outcome(), (("kernel", CapturedOutput(("hello",))),))
    assert asked == ["begin", ("build", [(GPU, 17)]), ("measure", 16, KERNEL.source, None)]
    remote.measure(desk, remote.Errand([(CASES[0], bundle)], outcome("so far")))
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
