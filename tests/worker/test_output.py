"""The output of workers: shortened, never blocking."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from matbench.worker.output import MAX_LINES, CapturedOutput, Output
from matbench.worker.process import DiedError, WorkerProcess

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
