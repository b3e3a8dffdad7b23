"""The output of the worker processes: read at once, and discarded except for its beginning."""

from __future__ import annotations

import multiprocessing
import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

MAX_LINES = 20
MAX_BYTES = 2000
_PIECE = 1 << 16
#: A process that never stops printing must not block the reader.
_PIECES_AT_ONCE = 64


class CapturedOutput(NamedTuple):
    """The first lines of the output, and how many more there were."""

    lines: tuple[str, ...] = ()
    more: int = 0


#: Receives the source of output (such as the kernel) and the output.
Listener = Callable[[str, CapturedOutput], None]


class Output:
    """A pipe that is standard output and standard error of other processes. A thread empties it, so
    that megabytes of output neither block nor take memory."""

    def __init__(self) -> None:
        reader, self.writer = multiprocessing.Pipe(duplex=False)
        os.set_blocking(reader.fileno(), False)
        self._lock = threading.Lock()
        self._kept = b""
        self._lines = 0
        self._last = b"\n"
        self._reader = reader
        threading.Thread(target=self._empty, daemon=True).start()

    def taken(self) -> CapturedOutput:
        """The output since the last call."""
        with self._lock:
            self._read_on()
            text = self._kept.decode("utf-8", "replace")
            count = self._lines + (self._last != b"\n")
            self._kept, self._lines, self._last = b"", 0, b"\n"
        lines = tuple(text.split("\n")[: min(count, MAX_LINES)])
        return CapturedOutput(lines, count - len(lines))

    def close(self) -> None:
        """Keep the output so far for `taken`; later output of other processes is lost."""
        with self._lock:
            self._read_on()
            self.writer.close()
            self._reader.close()

    def _empty(self) -> None:
        with suppress(OSError, ValueError):  # just closed
            while True:
                select.select([self._reader], [], [], 1.0)  # `close` does not wake it
                with self._lock:
                    if not self._read_on():
                        return

    def _read_on(self) -> bool:
        """Read the available output; returns whether more may come."""
        if not self._reader.closed:
            for _ in range(_PIECES_AT_ONCE):
                try:
                    piece = os.read(self._reader.fileno(), _PIECE)
                except BlockingIOError:
                    return True
                if not piece:
                    return False
                self._kept += piece[: MAX_BYTES - len(self._kept)]
                self._lines += piece.count(b"\n")
                self._last = piece[-1:]
        return not self._reader.closed
