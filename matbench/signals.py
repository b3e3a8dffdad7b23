"""Signals that end the main process; its end, however it comes, in those that it started."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from multiprocessing.process import BaseProcess

#: A key that is held down, or a signal that reaches a group of processes twice, is one.
_ONE_PRESS_S = 1.0
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

#: Ctrl-C, a polite request to end, and a terminal that was closed.
ENDING = frozenset(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)

_heard: int | None = None
_heard_s = float("-inf")


def is_heard() -> bool:
    """Whether one of them came."""
    return _heard is not None


def is_ctrl_c() -> bool:
    """Whether it was Ctrl-C that raised the last `KeyboardInterrupt`."""
    return _heard in (None, signal.SIGINT)


def exit_code() -> int:
    """What shells make of the signal: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
    return 128 + (_heard or signal.SIGINT)


def listen() -> None:
    """From now on all of them raise `KeyboardInterrupt` in the main thread, as Ctrl-C does."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _interrupt)


def ignore() -> None:
    """No longer: what is known is printed to its end."""
    for number in ENDING:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, _: object) -> None:
    global _heard, _heard_s
    now = time.monotonic()
    if now > _heard_s + _ONE_PRESS_S:
        _heard, _heard_s = number, now
        raise KeyboardInterrupt


def end_with_parent() -> None:
    """In a process of `multiprocessing`: end at once when its parent has ended, even by SIGKILL.

    On Linux the system does it, whatever this process is at: prctl(2), PR_SET_PDEATHSIG. Elsewhere
    a thread does, as soon as no C call holds the interpreter.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None and parent.pid is not None
    if sys.platform == "linux" and _asked_linux():
        if os.getppid() != parent.pid:  # it was gone before that
            os._exit(1)
        return
    threading.Thread(target=_wait_for_the_end_of, args=(parent,), daemon=True).start()


def _asked_linux() -> bool:
    return bool(ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL)) == 0)


def _wait_for_the_end_of(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
