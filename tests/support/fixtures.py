"""Shared fixtures: separate state folders, commands that run no case, devices and sessions."""

from __future__ import annotations

import importlib
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from matbench import backends, signals
from matbench.analysis.statistics import ComparisonPlan
from matbench.backends.protocol import Backend, UnavailableError, Work
from matbench.bench.options import FIRST, Options, Round
from matbench.bench.outcomes import skipped
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.features.probes import cases
from matbench.features.tune import search
from matbench.model import Case, DeviceInfo, Skip
from matbench.records.environment import last_run_path
from matbench.records.outcome import Outcome
from matbench.worker import comparing, worker
from support import scripted
from support.cli import Matbench, Plan, Refusal, last_run
from support.golden import TableRegression, answered
from support.paths import ROOT
from support.repository import git


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """A cache of the test's own."""
    return Cache(tmp_path / "cache")


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate last run for each test, and an empty working folder."""
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process and its children; empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def scripted_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """Commands, here and in other processes, find the device of `scripted` and no other, except in
    tests that are marked `real`."""
    if request.node.get_closest_marker("real"):
        yield
        return
    with scripted.device():
        yield


@pytest.fixture
def few_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the sizes at which a call must be right, which take most of the time on a CPU."""
    probed = cases.probed
    monkeypatch.setattr(
        cases, "probed", lambda *given: [p for p in probed(*given) if not p[1].skip][::5]
    )


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """When tuning, equally fast candidates are compared for 0.2 s, not for 10 s."""
    monkeypatch.setattr(search, "ComparisonPlan", partial(ComparisonPlan, maximum_time_ns=2e8))


@pytest.fixture
def few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adopted kernels are checked at their smallest sizes: all would take most of the time."""
    monkeypatch.setattr("matbench.features.adopt.search._MOST_OPERATIONS", 2 * 9**3)


@pytest.fixture
def plainly_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's own worker says how two cases compare."""

    def compare(workers: Any, cases: Any, *given: Any) -> Any:
        return workers[0].compare(*cases, *given)

    monkeypatch.setattr(comparing, "compare", compare)


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No case is run, or the test fails."""

    for method in ("unfit", "run"):
        monkeypatch.setattr(worker.Worker, method, mock.Mock(side_effect=AssertionError))


#: The fixture `noted`.
Noted = Callable[[Any, str], list[tuple[Any, ...]]]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """The positional arguments of each call of a function from now on; it does what it did."""

    def note(place: Any, name: str) -> list[tuple[Any, ...]]:
        calls, function = list[tuple[Any, ...]](), getattr(place, name)

        def called(*given: Any, **named: Any) -> Any:
            calls.append(given)
            return function(*given, **named)

        monkeypatch.setattr(place, name, called)
        return calls

    return note


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Signals have the same effect as in a process of its own."""
    for name in ("_heard", "_heard_s", "_is_late"):
        monkeypatch.setattr(signals, name, getattr(signals, name))
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before = {number: signal.getsignal(number) for number in signals.ENDING}
    signals.listen()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def refusal(own_state: None, matbench: Matbench) -> Refusal:
    """Runs a command that is refused in one line, without losing or writing anything."""

    def refused(*arguments: str | Path) -> str:
        last = last_run_path()
        Path("kept.jsonl").write_bytes(b"kept as it is")
        last.parent.mkdir(exist_ok=True)
        last.write_bytes(b"kept as well")
        before = {path.name for path in Path().iterdir()}
        result = matbench(*arguments, code=2)
        assert result.stdout == ""
        assert result.stderr.endswith("\n")
        assert result.stderr.count("\n") == 1
        assert result.stderr.startswith("matbench")
        assert Path("kept.jsonl").read_bytes() == b"kept as it is"
        assert last.read_bytes() == b"kept as well"
        assert {path.name for path in Path().iterdir()} == before
        return result.stderr.rstrip("\n").split(": ", 1)[1]

    return refused


@pytest.fixture
def planned(
    own_state: None, monkeypatch: pytest.MonkeyPatch, matbench: Matbench, device: DeviceInfo
) -> Plan:
    """The cases that a command line selects, without running them."""

    def skip(self: worker.Worker, case: Case, which: Round = FIRST) -> Outcome:
        return skipped(case, self.device, Skip("unavailable", "for this test"))

    monkeypatch.setattr(worker.Worker, "measure", skip)
    monkeypatch.setattr(worker.WorkerPool, "start", lambda *_: None)
    monkeypatch.setattr(worker.WorkerPool, "build_ahead", lambda *_: None)

    def plan(*arguments: str | Path) -> list[Outcome]:
        matbench("run", "--allow-skips", *arguments)
        return last_run()

    return plan


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new repository, with none above it."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    git(folder, "init", "-q", "-b", "main", ".")
    return folder


@pytest.fixture
def table_regression(
    request: pytest.FixtureRequest, file_regression: FileRegressionFixture
) -> TableRegression:
    """A table beside the test has the answers to its questions (`golden.answered`)."""

    def compared(name: str, answer: Callable[[str], str]) -> None:
        table = request.path.with_name(name)
        file_regression.check(answered(table, answer), fullpath=table, encoding="utf-8")

    return compared


@pytest.fixture
def benchmarked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Kernels of all kinds, and the verdicts that they must have."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("judge").candidates


# The first device of each backend, and sessions on it


#: As little sampling as possible.
QUICK = Options(uncertainty=1e9, max_time_s=0.01, minimum_samples=3, blocks=False)
#: The fixture `watch`.
Watch = Callable[..., None]


@pytest.fixture(scope="module")
def opencl(own_folders: None) -> Iterator[Backend]:
    """Only machines with CUDA may have no device of OpenCL."""
    try:
        info = backends.devices("opencl")[0]
    except UnavailableError as error:
        backends.devices("cuda")
        pytest.skip(str(error))
    with closing(backends.open_backend(info, Cache())) as opened:
        yield opened


@pytest.fixture(scope="module")
def info(own_folders: None) -> DeviceInfo:
    """The first CUDA device; without one tests that need it fail, because they were requested."""
    return backends.devices("cuda")[0]


@pytest.fixture(scope="module")
def cuda(info: DeviceInfo) -> Iterator[Backend]:
    with closing(backends.open_backend(info, Cache())) as opened:
        yield opened


@pytest.fixture(scope="module")
def checks(cuda: Backend) -> Session:
    """Checks good kernels in this process, without timing."""
    return Session(cuda, Cache(), Options(timed=False))


@pytest.fixture(params=["session", pytest.param("checks", marks=pytest.mark.gpu)])
def anywhere(request: pytest.FixtureRequest) -> Session:
    """Checks good kernels on a CPU, and on a GPU."""
    found: Session = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def timed(backend: Backend) -> Session:
    """A session with timing, on the device that is already open."""
    return Session(backend, Cache(), QUICK)


@pytest.fixture
def watch(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Calls `before` with all that is timed from now on, and `after` with the time that it took,
    too, for the time that is told."""

    def look(
        before: Callable[[Work], Any] = lambda _: None,
        after: Callable[[Work, float], float] = lambda _, taken_ns: taken_ns,
    ) -> None:
        take = backend.timed_ns

        def timed_ns(work: Work) -> float:
            before(work)
            return after(work, take(work))

        monkeypatch.setattr(backend, "timed_ns", timed_ns)

    return look
