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
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

COMMAND = [sys.executable, "-m", "matbench"]
#: How long a command may take, in seconds.
_LIMIT_S = 120.0
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9])")


class Session(NamedTuple):
    """The result of a command on a terminal: its exit code, and everything it wrote."""

    code: int
    written: str

    @property
    def lines(self) -> list[str]:
        """Every line that was shown at some time, without colours and cursor movements."""
        return re.split(r"\r\n|\r|\n", CONTROL.sub("", self.written))


def on_terminal(
    *arguments: str | Path,
    width: int = 100,
    height: int = 40,
    interrupt_when: Callable[[str], bool] = lambda _: False,
    hang_up: bool = False,
    environment: dict[str, str] | None = None,
    stdout_to: Path | None = None,
    stderr_to: Path | None = None,
) -> Session:
    """Run the command on a pseudo-terminal of its own, and press Ctrl-C there when it is time.

    `hang_up` closes the terminal then.
    """
    with ExitStack() as stack:
        terminal, inside = pty.openpty()
        ours = stack.enter_context(os.fdopen(terminal, "rb", 0))
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        outputs = [
            stack.enter_context(path.open("wb")) if path else inside
            for path in (stdout_to, stderr_to)
        ]
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdin=inside,
            stdout=outputs[0],
            stderr=outputs[1],
            start_new_session=True,
            # The terminal becomes the controlling one, and sends Ctrl-C to the whole session.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm-256color", **(environment or {})},
        )
        stack.callback(_end, process)
        os.close(inside)
        written = _until(terminal, interrupt_when, None if hang_up else b"\x03")
        ours.close()
        return Session(process.wait(timeout=_LIMIT_S), written)


def _until(terminal: int, is_time: Callable[[str], bool], key: bytes | None) -> str:
    """What is written there until its last process ends; when it is time, the key is pressed.

    Without a key that is the end.
    """
    written, ends, pressed = b"", time.monotonic() + _LIMIT_S, False
    while (piece := _read(terminal)) is not None:
        written += piece
        text = written.decode(errors="replace")
        if not pressed and is_time(text):
            if key is None:
                break
            os.write(terminal, key)
            pressed = True
        assert time.monotonic() < ends, text[-2000:]
    return written.decode(errors="replace")


def _read(terminal: int) -> bytes | None:
    """What was written within a moment; None if the last process on the terminal is gone."""
    if not select.select([terminal], [], [], 0.05)[0]:
        return b""
    try:
        return os.read(terminal, 65536) or None
    except OSError:
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def assert_gone(group: int) -> None:
    """No process of this group is left behind, except those that are ending."""
    ends = time.monotonic() + 10
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < ends:
            os.killpg(group, 0)
            time.sleep(0.05)


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    """The command in a separate session, with pipes for its output."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
