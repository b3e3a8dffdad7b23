"""Worker processes: where they work, what they print, and what is left of them."""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.cli import ran
from support.kernels import saved
from support.optional import present

from matbench import signals
from matbench.errors import CaseError
from matbench.kernelfile import syntax
from matbench.worker import process as processes
from matbench.worker.output import MAX_LINES, CapturedOutput, Output
from matbench.worker.process import DeadlineError, DiedError, WorkerProcess


def test_processes_are_in_a_private_folder(
    process: WorkerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(process.call(os.getcwd))
    assert folder != tmp_path
    assert folder.stat().st_mode & 0o077 == 0
    assert Path(process.call(tempfile.mkdtemp)).parent == folder
    assert process.call(os.getenv, "TMPDIR") == str(folder)
    with pytest.raises(DiedError):
        process.call(os.abort)
    process.kill()
    assert not folder.exists()
    assert Path.cwd() == tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="processes are not forked")
def test_what_is_forked_from_has_no_threads_or_devices(
    process: WorkerProcess, leader: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor its own environment: a process has that of the main one."""
    monkeypatch.setenv("MATBENCH_TEST", "set later")
    pools = [process, leader]
    servers = {pool.call(os.getppid) for pool in pools}
    assert [pool.call(os.getenv, "MATBENCH_TEST") for pool in pools] == ["set later"] * 2
    [server] = map(psutil.Process, servers)
    assert server.num_threads() == 1
    loaded = {Path(library.path).name for library in server.memory_maps()}
    assert any("_multiarray_umath" in name for name in loaded)
    assert any(name.startswith(("_cl.", "_driver.")) for name in loaded)  # PyOpenCL's, or PyCUDA's
    assert not any(name.startswith("libintelocl") for name in loaded)
    monkeypatch.delenv("HOME")  # which they are forked with
    pools[0].kill()
    assert pools[0].call(os.getenv, "HOME") is None


def test_a_system_without_pidfds_has_no_watch_over_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process was started"))
    signals.end_group_with_this()


def test_what_a_lost_process_has_started_ends(
    leader: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: killed.append((group, number)))
    monkeypatch.setattr(processes, "_wait_for_stop", lambda _: None)
    lost = leader.call(os.getpid)
    with leader.stopped():
        pass
    started = psutil.Process(leader.call(os.spawnlp, os.P_NOWAIT, "sleep", "sleep", "60"))
    with pytest.raises(DiedError):
        leader.call(os._exit, 1)
    with leader.stopped():  # on a system that did not end it already
        assert (lost, signal.SIGKILL) in killed
    assert _has_ended(started)


def test_what_a_process_has_started_ends_if_all_are_killed(tmp_path: Path) -> None:
    script = saved(
        tmp_path / "script.py",
        "import os, time\nfrom matbench.worker.process import WorkerProcess\n"
        "pool = WorkerProcess(leads=True)\n"
        "print(pool.call(os.spawnlp, os.P_NOWAIT, 'sleep', 'sleep', '60'), flush=True)\n"
        "time.sleep(60)\n",
    )
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        started = psutil.Process(int(present(process.stdout).readline()))
        os.killpg(process.pid, signal.SIGKILL)
    assert _has_ended(started)


def test_a_script_that_ends_none_of_its_processes_ends() -> None:
    script = (
        "from matbench.worker.process import WorkerProcess\n"
        "pool = WorkerProcess()\n"
        "print(pool.call(max, 1, 2))\n"
    )
    assert ran(sys.executable, "-c", script) == "2\n"


def test_a_process_is_stopped_once_it_has_stopped(
    leader: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loaded machine may be late to stop it."""
    real = os.killpg
    working = psutil.Process(leader.call(os.getpid))
    late = functools.partial(threading.Timer, 0.2)
    monkeypatch.setattr(os, "killpg", lambda *args: late(real, args).start())
    with leader.stopped():
        assert working.status() == psutil.STATUS_STOPPED
        monkeypatch.setattr(os, "killpg", real)
    assert leader.call(os.getpid) == working.pid


def test_a_process_whose_parent_ended_as_it_began_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = types.SimpleNamespace(is_alive=lambda: False)
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: gone)
    monkeypatch.setattr(signals, "_asked_linux", lambda: True)
    monkeypatch.setattr(os, "_exit", sys.exit)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(SystemExit):
        signals.end_with_parent()


def test_a_function_has_no_children_but_its_own_and_ends_nothing_but_its_task(
    leader: WorkerProcess,
) -> None:
    with pytest.raises(CaseError, match="ChildProcessError"):
        leader.call(os.wait)
    with pytest.raises(CaseError, match="SourceError: its macros"):  # which cannot be pickled
        leader.call(syntax.require_few, 10**9)
    with pytest.raises(CaseError, match="the worker process raised SystemExit: 3"):
        leader.call(sys.exit, 3)


def _number() -> int:
    return "none"  # type: ignore[return-value]


def _writes(*data: bytes) -> int:
    gc.unfreeze()
    [own] = (one for one in gc.get_objects() if isinstance(one, Connection) and not one.closed)
    for part in data:
        os.write(own.fileno(), part)
    return 1


@pytest.mark.parametrize(
    ("task", "data"),
    [(_number, ()), (_writes, (b"\xff" * 9,)), (_writes, (b"\0\0\0\1", b"\1"))],
    ids=["another type", "no length", "another answer"],
)
def test_what_is_no_answer_is_refused_and_the_process_replaced(
    process: WorkerProcess, task: Any, data: Any
) -> None:
    before = process.call(os.getpid)
    with pytest.raises(DiedError, match="sent data that is no answer"):
        process.call(task, *data)
    assert process.call(os.getpid) != before


def test_a_part_of_an_answer_is_late(process: WorkerProcess) -> None:
    process.call(os.getpid)
    with pytest.raises(DeadlineError):
        process.call(_writes, b"\0\1\0\0", timeout_s=0.5)


def test_a_group_that_has_ended_gets_no_more_signals(
    leader: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may have its number."""
    groups: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: groups.append(group))
    monkeypatch.setattr(processes, "_wait_for_stop", lambda _: None)
    first = leader.call(os.getpid)
    with leader.stopped():
        pass
    leader.kill()
    assert {*groups} == {first}
    groups.clear()
    second = leader.call(os.getpid)
    with leader.stopped():
        pass
    assert {*groups} == {second}


def test_a_process_that_leads_no_group_signals_none(
    process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it has ended, its number may be that of another's group."""
    groups: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: groups.append(group))
    process.call(os.getpid)
    process.kill()
    assert groups == []


def _has_ended(process: psutil.Process) -> bool:
    try:
        process.wait(10)
    except psutil.TimeoutExpired:
        return process.status() == psutil.STATUS_ZOMBIE
    return True


# -- their output: shortened, never blocking -----------------------------------------------------


MEGABYTES = 20


def _prints(text: bytes, descriptor: int = 1) -> int:
    while text:
        text = text[os.write(descriptor, text) :]
    return os.getpid()


def _prints_and_dies() -> None:
    os.write(2, b"last words")
    os.kill(os.getpid(), signal.SIGKILL)


def _prints_much() -> int:
    line = b"x" * 99 + b"\n"
    return _prints(line * (MEGABYTES * 10_000))


def _prints_until_nobody_listens(marker: Path) -> None:
    if os.fork() == 0:
        with suppress(OSError):
            while True:
                os.write(1, b"again\n" * 1000)
        marker.touch()
        os._exit(0)


def test_both_streams_are_heard_once(pool: WorkerProcess) -> None:
    pool.call(_prints, b"a\nb")
    assert pool.said() == CapturedOutput(("a", "b"))
    pool.call(_prints, b"\n\n", 2)
    assert pool.said() == CapturedOutput(("", ""))
    assert pool.said() == CapturedOutput()


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_lines_beyond_the_first_are_counted(pool: WorkerProcess, end: bytes) -> None:
    pool.call(_prints, b"\n".join(b"%d" % number for number in range(100)) + end)
    assert pool.said() == CapturedOutput(tuple(map(str, range(MAX_LINES))), 100 - MAX_LINES)


def test_who_prints_megabytes_does_not_wait(pool: WorkerProcess) -> None:
    pool.call(_prints_much, timeout_s=60)
    said = pool.said()
    assert sum(map(len, said.lines)) <= 2000
    assert len(said.lines) + said.more == MEGABYTES * 10_000


def test_bytes_that_are_no_text_are_replaced(pool: WorkerProcess) -> None:
    pool.call(_prints, b"\xff\x00")
    assert pool.said() == CapturedOutput(("\ufffd\x00",))


def test_last_words_of_a_killed_process_are_heard_and_the_next_is_too(
    process: WorkerProcess,
) -> None:
    with pytest.raises(DiedError):
        process.call(_prints_and_dies)
    assert process.said() == CapturedOutput(("last words",))
    process.kill()
    process.call(_prints, b"first words")
    assert process.said() == CapturedOutput(("first words",))
    process.kill()
    assert process.said() == CapturedOutput()


def test_the_thread_of_closed_output_ends() -> None:
    before = {*threading.enumerate()}
    closed = Output()
    [thread] = {*threading.enumerate()} - before
    kept = os.dup(closed.writer.fileno())  # as by a process that is left
    time.sleep(0.1)  # until it waits
    closed.close()
    thread.join(20)
    os.close(kept)
    assert not thread.is_alive()


def test_a_process_that_prints_all_the_time_does_not_keep_us(
    process: WorkerProcess, tmp_path: Path
) -> None:
    marker = tmp_path / "ended"
    process.call(_prints_until_nobody_listens, marker)
    started = time.monotonic()
    for _ in range(3):
        process.said()
    assert time.monotonic() - started < 5
    process.kill()
    while not marker.exists():
        assert time.monotonic() - started < 20
        time.sleep(0.05)
