"""Handles signals that end the main process, and ends child processes with their parent."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TimeoutOfFuture  # another before Python 3.11
from contextlib import contextmanager, suppress
from typing import TypeVar

T = TypeVar("T")

#: Signals within this time count as one: a key held down, or a signal sent twice.
_ONE_PRESS_S = 1.0
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

#: Ctrl-C, a request to end, and a closed terminal.
ENDING = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))

_heard: int | None = None
_heard_s = float("-inf")
_is_held = False
_is_late = False


def is_heard() -> bool:
    return _heard is not None


def is_ctrl_c() -> bool:
    """Whether Ctrl-C raised the last `KeyboardInterrupt`."""
    return _heard in (None, signal.SIGINT)


def exit_code() -> int:
    """The exit code that shells use for the signal: 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP."""
    return 128 + (_heard or signal.SIGINT)


def listen() -> None:
    """From now on, all of them raise `KeyboardInterrupt` in the main thread, as Ctrl-C does."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _interrupt)
    sys.unraisablehook = _unraisable


def ignore() -> None:
    """From now on, ignore them, so that the results so far can be printed."""
    for number in ENDING:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Delay signals until the end of this block in the main thread; others never get any. For code
    that must not be interrupted, such as that of queues."""
    global _is_held, _is_late
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _is_held = _is_held, True
    try:
        yield
    finally:
        _is_held = before
        if _is_late and not before:
            _is_late = False
            raise KeyboardInterrupt


def result(future: Future[T]) -> T:
    """What a future gives when it is done; a signal soon ends the wait.

    It must not come between taking and using the future's lock, which would stay locked.
    """
    while True:
        with suppress(TimeoutOfFuture), defer_interrupts():
            return future.result(0.1)


def _interrupt(number: int, _: object) -> None:
    global _heard, _heard_s, _is_late
    now = time.monotonic()
    if now <= _heard_s + _ONE_PRESS_S:
        return
    _heard, _heard_s = number, now
    if not _is_held:
        raise KeyboardInterrupt
    _is_late = True


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Send a signal again that arrived in an interpreter callback, which cannot raise."""
    global _heard_s
    if unraisable.exc_type is not KeyboardInterrupt or _heard is None:
        sys.__unraisablehook__(unraisable)
        return
    _heard_s = float("-inf")
    main = threading.main_thread().ident
    threading.Timer(0.01, signal.pthread_kill, [main, _heard]).start()


def end_with_parent() -> None:
    """In a `multiprocessing` child: end at once when the parent has ended, even by SIGKILL.

    On Linux the kernel does it at any time: prctl(2), PR_SET_PDEATHSIG. Elsewhere a thread does it,
    as soon as no C call holds the interpreter.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    if sys.platform == "linux" and _asked_linux():  # of the server, which ends with the parent
        if not parent.is_alive():  # it ended before that
            os._exit(1)
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def end_with(parent: int) -> None:
    """In a forked child, on Linux: end at once when its parent has ended, even by SIGKILL."""
    _asked_linux()
    if os.getppid() != parent:
        os._exit(1)


def end_group_with_this() -> None:
    """On Linux: when this process has ended, even by SIGKILL, so does the group that it leads."""
    if not hasattr(os, "pidfd_open"):
        return
    leader, end = os.getpid(), os.pidfd_open(os.getpid())
    if child := os.fork():
        os.waitpid(child, 0)  # its own child waits below: a function may wait for all of ours
        return
    try:
        os.setsid()  # what is sent to the group is not for it
        if os.fork() == 0:
            select.select([end], [], [])
            os.killpg(leader, signal.SIGKILL)
    finally:
        os._exit(0)


def _asked_linux() -> bool:
    return bool(ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL)) == 0)
