"""Workers: whatever ends a case, its row says why, and the next case is measured."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import psutil
import pytest
from support.cli import ran
from support.dask_cluster import wait_for
from support.kernels import SPIN_BODY, KernelWriter, saved
from support.optional import present
from support.paths import programs
from support.products import case_of

from matbench import signals
from matbench.backends.protocol import Variant
from matbench.bench import device_kernels
from matbench.bench.options import Deadlines, Options
from matbench.bench.session import Session
from matbench.errors import BuildError, CaseError, LackingError, MatbenchError, OutOfMemoryError
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, DeviceInfo, Problem, Skip
from matbench.records.outcome import Outcome
from matbench.worker import builders, worker
from matbench.worker.builders import Builders
from matbench.worker.output import CapturedOutput
from matbench.worker.process import DeadlineError, DiedError, WorkerProcess
from matbench.worker.worker import Worker, WorkerPool

CHECK_ONLY = Options(timed=False)

NO_COMPILE = "{ C[0] = nothing_of_this_name; }"


# -- the process ---------------------------------------------------------------------------------


def test_calls_share_one_process(pool: WorkerProcess) -> None:
    first = pool.call(os.getpid)
    assert first != os.getpid()
    assert pool.call(os.getpid, timeout_s=30) == first
    assert pool.call(divmod, 17, 5) == [3, 2]
    pool.kill()
    pool.kill()
    assert pool.call(os.getpid) not in (first, os.getpid())


def test_errors_come_back_in_words(pool: WorkerProcess) -> None:
    process = pool.call(os.getpid)
    with pytest.raises(CaseError, match="raised ZeroDivisionError"):
        pool.call(divmod, 1, 0)
    for error in (BuildError("no"), OutOfMemoryError("7 bytes"), CaseError("lost", fatal=True)):
        with pytest.raises(type(error)) as raised:
            pool.call(_raise, error)
        assert type(raised.value) is type(error)
        assert (raised.value.reason, raised.value.fatal) == (error.reason, error.fatal)
    assert pool.call(os.getpid) == process


def test_a_thread_does_not_wait_for_a_task_that_is_ended(pool: WorkerProcess) -> None:
    pool.call(os.getpid)
    found: list[Exception] = []

    def wait() -> None:
        try:
            pool.call(time.sleep, 600)
        except DiedError as error:
            found.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    time.sleep(0.1)
    pool.kill()
    thread.join(30)
    assert [str(error) for error in found] == ["was stopped"]


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("function", "arguments", "manner"),
    [
        (os._exit, (0,), "exited with code 0"),
        (signal.raise_signal, (signal.SIGSEGV,), "crashed (segmentation fault"),
        (signal.raise_signal, (signal.SIGBUS,), "was ended by SIGBUS"),
        pytest.param(os._exit, (7,), "exited with code 7", marks=pytest.mark.long),
        pytest.param(os.abort, (), "aborted (SIGABRT)", marks=pytest.mark.long),
        pytest.param(
            *(signal.raise_signal, (signal.SIGFPE,), "crashed (arithmetic error"),
            marks=pytest.mark.long,
        ),
    ],
)
def test_how_a_process_died_is_told(
    function: Callable[..., Any], arguments: tuple[Any, ...], manner: str, pool: WorkerProcess
) -> None:
    late = f"import time; time.sleep(0.2); call({', '.join(map(repr, map(int, arguments)))})"
    with pytest.raises(DiedError) as died:  # not at once, when its task may not seem to have begun
        pool.call(exec, late, {"call": function})
    assert str(died.value).startswith(manner)
    assert pool.call(divmod, 7, 2) == [3, 1]


def test_a_task_past_its_deadline_is_stopped(pool: WorkerProcess) -> None:
    pool.call(os.getpid)
    started = time.monotonic()
    with pytest.raises(DeadlineError):
        pool.call(time.sleep, 60, timeout_s=0.3)
    assert time.monotonic() - started < 20
    assert pool.call(divmod, 7, 2) == [3, 1]


def test_a_process_that_died_between_tasks_is_replaced(pool: WorkerProcess) -> None:
    process = pool.call(os.getpid)
    os.kill(process, signal.SIGKILL)
    assert pool._running is not None
    assert wait([pool._running[0].sentinel], 10)  # the server of processes says so a little later
    assert pool.call(os.getpid) != process


def test_a_worker_does_not_hear_ctrl_c(pool: WorkerProcess) -> None:
    """A terminal sends it to all processes; only the main process acts on it."""
    process = pool.call(os.getpid)
    os.kill(process, signal.SIGINT)
    assert pool.call(os.getpid) == process


def test_a_new_process_has_matbenchs_own_kernels_parsed(pool: WorkerProcess) -> None:
    *_, parsed = pool.call(device_kernels.device_kernel.cache_info)
    assert parsed >= 18


def test_closed_builders_begin_nothing_more() -> None:
    made = Builders(60.0, 1)
    begun, waiting = (made._begun(time.sleep, 60) for _ in range(2))
    wait_for(lambda: made._processes[0]._running)
    made.close()
    with pytest.raises(DiedError):
        begun.result(30)
    assert waiting.cancelled()


# -- cases ---------------------------------------------------------------------------------------


def test_each_model_of_a_device_has_builds_of_its_own(
    device: DeviceInfo, write_kernel: KernelWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(builders, "precompiler", lambda _: print)
    monkeypatch.setattr(Builders, "_begun", lambda _, task, on, *given: begun.append(on.name))
    made, case = Builders(60.0, 1), case_of(write_kernel("good"), 20, device, TILE=8)
    for name in ("one", "other", "one"):
        made.start(msgspec.structs.replace(device, name=name), [case], ("plain",))
    made.start(msgspec.structs.replace(device, name="one"), [case], ("clocked",))
    assert begun == ["one", "other", "one"]
    made.close()


def test_only_builds_that_are_needed_are_waited_for(
    device: DeviceInfo, write_kernel: KernelWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one of the case may take longer."""
    plain, staggered = (Future[None]() for _ in range(2))
    begun = iter((plain, staggered))
    monkeypatch.setattr(builders, "precompiler", lambda _: print)
    monkeypatch.setattr(Builders, "_begun", lambda *_: next(begun))
    made, case = Builders(60.0, 1), case_of(write_kernel("good"), 20, device, TILE=8)
    variants: tuple[Variant, ...] = ("plain", "staggered")
    for variant in variants:
        made.start(device, [case], (variant,))
    plain.set_result(None)
    staggered.set_exception(BuildError("is waited for"))
    made.wait(device, case, ("plain",))
    for needed in (variants, None):
        with pytest.raises(BuildError):
            made.wait(device, case, needed)
    made.close()


def test_what_the_compiler_refused_is_compiled_once(
    device: DeviceInfo, write_kernel: KernelWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = catalogue.load(write_kernel("no-compile", body=NO_COMPILE))
    problems = [Problem(n, n, n) for n in (8, 9, 10)]
    first, *others = sweep.cases([kernel], problems, {}, device)
    with WorkerPool(CHECK_ONLY, Deadlines()) as pool:
        worker = pool.worker(device)
        reasons = {worker.measure(first).reason}
        called = mock.Mock(wraps=worker.process.call)
        monkeypatch.setattr(worker.process, "call", called)
        reasons |= {worker.measure(case).reason for case in others}
        assert not called.called
        with pytest.raises(BuildError):  # its plain build alone might be right
            worker.run(min, case=first)
        assert called.called
        pool.forget()
        assert worker.measure(others[-1]).reason in reasons
        assert Session.build in [call.args[0] for call in called.call_args_list]
    [reason] = reasons
    assert "nothing_of_this_name" in str(reason)


def test_a_killed_worker_costs_one_case(device: DeviceInfo, write_kernel: KernelWriter) -> None:
    good = case_of(write_kernel("good"), 20, device, TILE=8)
    spins = case_of(write_kernel("spins", body=SPIN_BODY), 20, device, TILE=8)
    with WorkerPool(CHECK_ONLY, Deadlines(run_s=60)) as pool:
        worker = pool.worker(device)
        assert worker.run_s == 60  # more only if there are times
        assert worker.measure(good).status == "measured"
        process = worker.process.call(os.getpid)
        Worker.doing = ""  # until now, what the case before did last

        def kill() -> None:
            wait_for(lambda: Worker.doing == "running")
            before_s = psutil.Process(process).cpu_times().user
            wait_for(lambda: psutil.Process(process).cpu_times().user > before_s + 0.3)  # it spins
            os.kill(process, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        started = time.monotonic()
        killed = worker.measure(spins)
        killer.join()
        assert time.monotonic() - started < 45
        assert killed.status == "failed"
        assert killed.reason == (
            "running: the worker process "
            "was killed from outside (SIGKILL, perhaps because memory ran out)"
        )
        assert worker.measure(good).status == "measured"
        assert worker.process.call(os.getpid) != process


def test_a_skip_starts_no_process(device: DeviceInfo, write_kernel: KernelWriter) -> None:
    kernel = catalogue.load(write_kernel("good"))
    with WorkerPool(CHECK_ONLY, Deadlines()) as pool:
        worker = pool.worker(device)
        lacking, mistake = Skip("unavailable", "as said"), Skip("mistake", "launch.grid is 0")
        skipped, failed = (
            worker.measure(Case(kernel, Problem(1, 1, 1), {}, None, skip))
            for skip in (lacking, mistake)
        )
        assert (skipped.status, skipped.skip, skipped.reason) == ("skipped", lacking, None)
        assert (failed.status, failed.reason) == ("failed", "front matter: launch.grid is 0")
        assert worker.process._running is None


# -- failures that no device produces on demand --------------------------------------------------


class Raises:
    """A pool in which every task ends in the same way."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.killed = 0

    def call(self, function: Any, *args: Any, timeout_s: float | None = None) -> Any:
        raise self.error

    def said(self) -> CapturedOutput:
        return CapturedOutput()

    def kill(self) -> None:
        self.killed += 1


def run_with(error: Exception, device: DeviceInfo, case: Case) -> tuple[Outcome, int]:
    with WorkerPool(CHECK_ONLY, Deadlines(1, 2)) as pool:
        worker = pool.worker(device)
        worker.process = raises = Raises(error)  # type: ignore[assignment]
        return worker.measure(case), raises.killed


@pytest.mark.parametrize(
    ("error", "reason", "killed"),
    [
        (CaseError("no such luck"), "no such luck", 0),
        (CaseError("device lost", fatal=True), "device lost", 1),
        (OutOfMemoryError("8 bytes requested"), "8 bytes requested", 0),
        (MemoryError("Unable to allocate 9 GiB"), "MemoryError: Unable to allocate 9 GiB", 1),
        (KeyError("half"), "raised KeyError: 'half'", 1),
        (OSError(28, "No space left on device"), "No space left on device", 1),
    ],
)
def test_every_error_is_one_failed_row(
    error: Exception, reason: str, killed: int, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    outcome, kills = run_with(error, device, case_of(write_kernel("good"), 20, device, TILE=8))
    assert outcome.status == "failed"
    assert present(outcome.reason).endswith(reason)
    assert kills == killed


def test_what_this_machine_lacks_is_skipped(device: DeviceInfo, write_kernel: KernelWriter) -> None:
    case = case_of(write_kernel("good"), 20, device, TILE=8)
    outcome, _ = run_with(LackingError("g++ is missing; install it"), device, case)
    assert outcome.status == "skipped"
    assert outcome.skip == Skip("unavailable", "g++ is missing; install it")


def test_a_worker_that_cannot_start(device: DeviceInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when memory is short."""
    start = mock.Mock(side_effect=RuntimeError("can't start new thread"))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with WorkerPool(CHECK_ONLY, Deadlines()) as pool, pytest.raises(MatbenchError) as raised:
            pool.start([device])
    told = "a worker process cannot be started: can't start new thread; raise `ulimit -u`"
    assert str(raised.value).startswith(told)


def test_ctrl_c_never_leaves_the_lock_of_a_future_taken(tmp_path: Path) -> None:
    """Or the thread that works for it waits for it, and the end for the thread."""
    script = saved(tmp_path / "script.py", programs(__file__)["a signal while a future is locked"])
    assert ran(sys.executable, script) == "ended\n"


def test_load_is_read_at_opening(monkeypatch: pytest.MonkeyPatch, device: DeviceInfo) -> None:
    """So that it is known for the first case as well."""
    read: list[DeviceInfo] = []

    class Opened:
        def __init__(self, info: DeviceInfo, *_: object) -> None:
            self.conditions = lambda: read.append(info)
            self.clock_agrees = lambda: True

    monkeypatch.setattr("matbench.backends.open_backend", Opened)
    session = "matbench.bench.session.Session"
    monkeypatch.setattr(session, lambda backend, *_: mock.Mock(backend=backend))
    monkeypatch.setattr(worker, "gc", mock.Mock())
    for name, value in {"_session": None, "_device": None, "_options": None}.items():
        monkeypatch.setattr(worker, name, value, raising=False)
    worker._begin(device, Options(), False)
    assert read == [device]


def test_other_threads_take_no_signal_from_the_main_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_is_late", True)  # it arrived while the main thread held it
    raised: list[BaseException] = []

    def hold() -> None:
        try:
            with signals.defer_interrupts():
                pass
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    assert raised == []
    assert signals._is_late
    with pytest.raises(KeyboardInterrupt), signals.defer_interrupts():
        pass
