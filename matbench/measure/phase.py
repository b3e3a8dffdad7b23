"""What is being done with the current case, told to the main process through one shared byte.

Entering a phase is a single store without a system call, so it cannot disturb a measurement.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal, get_args

Phase = Literal["", "preparing", "building", "checking", "timing", "verifying"]

_PHASES: tuple[Phase, ...] = get_args(Phase)

#: In a process that has workers, and in these, memory that they share.
_byte: Any = bytearray(1)


def shared() -> Any:
    """The byte, for worker processes to `use`; without shared memory each has its own."""
    global _byte
    if isinstance(_byte, bytearray):
        from multiprocessing.sharedctypes import RawArray

        with suppress(OSError):
            _byte = RawArray("B", 1)
    return _byte


def use(shared: Any) -> None:
    """In a worker process: report phases through the byte of the process that started it."""
    global _byte
    _byte = shared


def enter(phase: Phase) -> None:
    """Begin a phase, here or in a worker; "" between cases."""
    _byte[0] = _PHASES.index(phase)


def now() -> Phase:
    """The current phase. A kernel on a CPU may have written anything to the byte."""
    return dict(enumerate(_PHASES)).get(_byte[0], "")
