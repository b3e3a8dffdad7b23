"""The command in a separate process, with or without a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

COMMAND = [sys.executable, "-m", "matbench"]
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9])")


class Session(NamedTuple):
    """The result of a command on a terminal: its exit code, and everything it wrote."""

    code: int
    written: str

    @property
    def lines(self) -> list[str]:
        """Every line that was shown at some time, without colours and cursor movements."""
        return re.split(r"\r\n|\r|\n", CONTROL.sub("", self.written))


#: Whatever a test does, its command ends then.
_LIMIT_S = 120


def on_terminal(
    *arguments: str | Path, width: int = 100, height: int = 40,
    interrupt_when: Callable[[str], bool] = lambda _: False, hang_up: bool = False,
    environment: dict[str, str] | None = None, stdout_to: Path | None = None,
) -> Session:  # fmt: skip
    """Run the command on a pseudo-terminal of its own, and press Ctrl-C there when it is time.

    `hang_up` closes the terminal then.
    """
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    with ExitStack() as closing:
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdin=inside,
            stdout=closing.enter_context(stdout_to.open("wb")) if stdout_to else inside,
            stderr=inside,
            start_new_session=True,
            # The terminal becomes the controlling one: it sends Ctrl-C to the whole session.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm-256color", **(environment or {})},
        )
        os.close(inside)
        closing.callback(_end, process)
        with os.fdopen(terminal, "r+b", buffering=0) as outside:
            written = _read(outside, interrupt_when, hang_up)
        return Session(process.wait(timeout=_LIMIT_S), written)


def _read(terminal: FileIO, interrupt_when: Callable[[str], bool], hang_up: bool) -> str:
    """What is written to the terminal until it is closed, by the last process or to hang up."""
    written, ends, is_pressed = b"", time.monotonic() + _LIMIT_S, False
    while True:
        assert time.monotonic() < ends, written.decode(errors="replace")[-2000:]
        if select.select([terminal], [], [], 0.05)[0]:
            piece = b""
            with suppress(OSError):  # the last process on the terminal is gone
                piece = terminal.read(65536) or b""
            if not piece:
                break
            written += piece
        if not is_pressed and interrupt_when(written.decode(errors="replace")):
            if hang_up:
                break
            terminal.write(b"\x03")
            is_pressed = True
    return written.decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def alive(group: int) -> list[int]:
    """The processes of a group, except those that are ending; on Linux."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, of_group = path.read_text().rpartition(")")[2].split()[:3]
            if int(of_group) == group and state not in "ZX":
                found.append(int(path.parent.name))
    return found


def assert_gone(group: int) -> None:
    """No process of this group is left behind."""
    ends = time.monotonic() + 10
    while alive(group):
        assert time.monotonic() < ends, alive(group)
        time.sleep(0.05)


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    """The command in a separate session, with pipes for its output."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
