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
from pathlib import Path
from typing import NamedTuple

import pytest

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


def on_terminal(
    *arguments: str | Path,
    width: int = 100,
    height: int = 40,
    interrupt_when: Callable[[str], bool] = lambda _: False,
    hang_up: bool = False,
    environment: dict[str, str] | None = None,
    stdout_to: Path | None = None,
    stderr_to: Path | None = None,
    limit_s: float = 60,
) -> Session:
    """Run the command on a pseudo-terminal of its own, and press Ctrl-C there when it is time.

    `hang_up` closes the terminal then.
    """
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    opened = [path.open("wb") if path else None for path in (stdout_to, stderr_to)]
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=inside,
        stdout=opened[0] or inside,
        stderr=opened[1] or inside,
        start_new_session=True,
        # The terminal becomes the controlling one, so that it sends Ctrl-C to the whole session.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env={**os.environ, "TERM": "xterm-256color", **(environment or {})},
    )
    os.close(inside)
    written, ends, pressed = b"", time.monotonic() + limit_s, False
    try:
        while True:
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    piece = os.read(terminal, 65536)
                except OSError:  # the last process on the terminal is gone
                    break
                if not piece:
                    break
                written += piece
            if not pressed and interrupt_when(written.decode(errors="replace")):
                if hang_up:
                    break
                os.write(terminal, b"\x03")
                pressed = True
            assert time.monotonic() < ends, written.decode(errors="replace")[-2000:]
        os.close(terminal)
        terminal = -1
        return Session(process.wait(timeout=limit_s), written.decode(errors="replace"))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if terminal >= 0:
            os.close(terminal)
        for file in opened:
            if file is not None:
                file.close()


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
