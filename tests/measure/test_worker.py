"""Workers: whatever ends a case, its row says so and the next case is measured."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SPIN_BODY, KernelWriter

from matbench.errors import BuildError, CaseError, OutOfMemoryError, UsageError
from matbench.kernelfile import catalogue, sweep
from matbench.measure.bench import Options
from matbench.measure.worker import (
    Crew,
    DeadlineError,
    Deadlines,
    DiedError,
    LocalExecutor,
    Worker,
)
from matbench.model import Case, DeviceInfo, Outcome, Problem

CHECK_ONLY = Options(timed=False)

SIGNATURE = """
extern "C" __global__ void ENTRY(const float *A, const float *B, float *C, int M, int N, int K)
"""
BAD_BODIES = {
    "null-write": SIGNATURE + "{ *(volatile int *)0 = 1; }",
    "spins": SPIN_BODY,
    "no-compile": SIGNATURE + "{ C[0] = nothing_of_this_name; }",
    "wrong-answer": SIGNATURE + "{ C[threadIdx.x] = 1; }",
}


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    made = LocalExecutor()
    yield made
    made.kill()


# -- the process ---------------------------------------------------------------------------------


def test_calls_share_one_process(executor: LocalExecutor) -> None:
    first = executor.call(os.getpid)
    assert first != os.getpid()
    assert executor.call(os.getpid, timeout_s=30) == first
    assert executor.call(divmod, 17, 5) == (3, 2)
    executor.kill()
    executor.kill()
    assert executor.call(os.getpid) not in (first, os.getpid())


def test_errors_come_back_as_they_were(executor: LocalExecutor) -> None:
    process = executor.call(os.getpid)
    with pytest.raises(ZeroDivisionError):
        executor.call(divmod, 1, 0)
    for error in (BuildError("no"), OutOfMemoryError("7 bytes"), CaseError("lost", fatal=True)):
        with pytest.raises(type(error)) as raised:
            executor.call(_raise, error)
        assert type(raised.value) is type(error)
        assert (raised.value.reason, raised.value.fatal) == (error.reason, error.fatal)
    assert executor.call(os.getpid) == process


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("function", "arguments", "manner"),
    [
        (os._exit, (7,), "it exited with code 7"),
        (os.abort, (), "it aborted (SIGABRT)"),
        (signal.raise_signal, (signal.SIGSEGV,), "it crashed (segmentation fault"),
        (signal.raise_signal, (signal.SIGFPE,), "it crashed (arithmetic error"),
        (signal.raise_signal, (signal.SIGKILL,), "it was killed from outside (SIGKILL"),
        (signal.raise_signal, (signal.SIGBUS,), "it was ended by SIGBUS"),
    ],
)
def test_how_a_process_died_is_told(
    function: Callable[..., Any], arguments: tuple[Any, ...], manner: str, executor: LocalExecutor
) -> None:
    with pytest.raises(DiedError) as died:
        executor.call(function, *arguments)
    assert str(died.value).startswith(manner)
    assert executor.call(divmod, 7, 2) == (3, 1)


def test_a_task_past_its_deadline_is_stopped(executor: LocalExecutor) -> None:
    executor.call(os.getpid)
    started = time.monotonic()
    with pytest.raises(DeadlineError):
        executor.call(time.sleep, 60, timeout_s=0.3)
    assert time.monotonic() - started < 20
    assert executor.call(divmod, 7, 2) == (3, 1)


def test_a_process_that_leaves_as_if_all_were_well_is_stopped_too(executor: LocalExecutor) -> None:
    with pytest.raises(DeadlineError):
        executor.call(os._exit, 0, timeout_s=0.5)
    assert executor.call(divmod, 7, 2) == (3, 1)


def test_a_process_that_died_between_tasks_is_replaced(executor: LocalExecutor) -> None:
    process = executor.call(os.getpid)
    os.kill(process, signal.SIGKILL)
    time.sleep(1)
    assert executor.call(os.getpid) != process


def test_a_worker_does_not_hear_ctrl_c(executor: LocalExecutor) -> None:
    """A terminal sends it to all processes; only the main one decides."""
    process = executor.call(os.getpid)
    os.kill(process, signal.SIGINT)
    assert executor.call(os.getpid) == process


def test_no_process_is_left_behind(executor: LocalExecutor) -> None:
    process = executor.call(os.getpid)
    executor.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert process not in [child.pid for child in multiprocessing.active_children()]


# -- cases ---------------------------------------------------------------------------------------


def case_of(path: Path, device: DeviceInfo, size: int = 20) -> Case:
    kernel = catalogue.load(path)
    return sweep.case(kernel, Problem(size, size, size), {"TILE": 8}, device)


def test_the_sweep_goes_on_whatever_a_kernel_does(
    device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    deadlines = Deadlines(build_s=60, run_s=2)
    good = case_of(write_kernel("good"), device)
    found: list[Outcome] = []
    with Crew(CHECK_ONLY, deadlines) as crew:
        worker = crew.worker(device)
        found.append(worker.run(good))
        for name, body in BAD_BODIES.items():
            found.append(worker.run(case_of(write_kernel(name, body=body), device)))
            found.append(worker.run(good))
    for outcome in found[::2]:
        assert (outcome.kernel, outcome.status, outcome.reason) == ("good", "measured", None)
    null_write, spins, no_compile, wrong = found[1::2]
    for outcome in (null_write, spins, no_compile):
        assert outcome.status == "failed"
        assert outcome.median_ns is None
    assert null_write.reason is not None
    if device.backend == "opencl":
        assert null_write.reason.startswith("running ended its process: it crashed (segmentation")
    else:
        assert "illegal" in null_write.reason
    assert spins.reason == "running took longer than 2 s and was stopped (see --timeout)"
    assert no_compile.reason is not None
    assert "nothing_of_this_name" in no_compile.reason
    assert "no-compile.cu" in no_compile.reason
    assert wrong.status == "wrong"


def test_a_worker_killed_from_outside_costs_one_case(
    device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    good, spins = (
        case_of(write_kernel("good"), device),
        case_of(write_kernel("spins", body=SPIN_BODY), device),
    )
    with Crew(CHECK_ONLY, Deadlines(run_s=60)) as crew:
        worker = crew.worker(device)
        assert worker.run(good).status == "measured"
        process = worker.executor.call(os.getpid)
        killer = threading.Timer(1.0, os.kill, (process, signal.SIGKILL))
        killer.start()
        started = time.monotonic()
        killed = worker.run(spins)
        killer.join()
        assert time.monotonic() - started < 15
        assert killed.status == "failed"
        assert killed.reason == (
            "running ended its process: "
            "it was killed from outside (SIGKILL, as when memory runs out)"
        )
        assert worker.run(good).status == "measured"
        assert worker.executor.call(os.getpid) != process


def test_a_skip_starts_no_process(device: DeviceInfo, write_kernel: KernelWriter) -> None:
    kernel = catalogue.load(write_kernel("good"))
    with Crew(CHECK_ONLY, Deadlines()) as crew:
        worker = crew.worker(device)
        outcome = worker.run(Case(kernel, Problem(1, 1, 1), {}, None, "for a reason"))
        assert (outcome.status, outcome.reason) == ("skipped", "for a reason")
        assert worker.executor.pool is None  # type: ignore[attr-defined]


def test_numpy_needs_no_device(device: DeviceInfo) -> None:
    with Crew(Options(minimum_samples=3, max_time_s=0.01), Deadlines()) as crew:
        outcome = crew.worker(device).run(Case(catalogue.NUMPY, Problem(9, 8, 7), {}, None))
    assert outcome.status == "measured"
    assert outcome.median_ns is not None
    assert outcome.median_ns > 0


# -- what no device does on demand ---------------------------------------------------------------


class Raises:
    """An executor whose every task ends in the same way."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.killed = 0

    def call(self, function: Any, *args: Any, timeout_s: float | None = None) -> Any:
        raise self.error

    def kill(self) -> None:
        self.killed += 1


def run_with(error: Exception, device: DeviceInfo, case: Case) -> tuple[Outcome, int]:
    executor = Raises(error)
    with Crew(CHECK_ONLY, Deadlines(1, 2)) as crew:
        worker = Worker(device, CHECK_ONLY, Deadlines(1, 2), executor, crew.builders)
        return worker.run(case), executor.killed


@pytest.mark.parametrize(
    ("error", "reason", "killed"),
    [
        (CaseError("no such luck"), "no such luck", 0),
        (CaseError("device lost", fatal=True), "device lost", 1),
        (OutOfMemoryError("8 bytes were asked for"), "8 bytes were asked for", 0),
        (MemoryError("Unable to allocate 9 GiB"), "MemoryError: Unable to allocate 9 GiB", 1),
        (KeyError("half"), "raised KeyError: 'half'", 1),
        (OSError(28, "No space left on device"), "No space left on device", 1),
    ],
)
def test_every_error_is_one_failed_row(
    error: Exception, reason: str, killed: int, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    outcome, kills = run_with(error, device, case_of(write_kernel("good"), device))
    assert outcome.status == "failed"
    assert outcome.reason is not None
    assert outcome.reason.endswith(reason)
    assert kills == killed


def test_what_is_wrong_with_every_case_ends_the_sweep(
    device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    with pytest.raises(UsageError, match="others can write to it"):
        error = UsageError("cache folder: others can write to it")
        run_with(error, device, case_of(write_kernel("good"), device))
