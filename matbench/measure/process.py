"""One spawned process that may die: tasks one at a time, each with a deadline."""

from __future__ import annotations

import concurrent.futures
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any, TypeVar

from matbench import signals
from matbench.errors import MatbenchError
from matbench.measure import output

T = TypeVar("T")


class DiedError(MatbenchError):
    """The process ended in the middle of a task; says how."""


class DeadlineError(MatbenchError):
    """The task passed its deadline and its process was killed."""


@contextmanager
def _deaf() -> Iterator[None]:
    """What is started here is deaf to Ctrl-C and its like: they may be sent to all of a group, and
    only the main process is to hear them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals.ENDING)
    try:
        yield  # the mask is inherited
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """What is started here does not run the main module again: nothing in it is needed there."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class _Deaf(SpawnProcess):
    def start(self) -> None:
        with _deaf(), _without_main():
            super().start()

    def terminate(self) -> None:
        self.kill()


class _Spawn(SpawnContext):
    Process = _Deaf


class Pool:
    """Processes of pebble's that are kept, and replaced when they die; one unless told otherwise.

    `initializer` runs first in each process, with `initargs`.
    """

    def __init__(
        self, initializer: Callable[..., None] | None = None, *initargs: Any, processes: int = 1
    ) -> None:
        self._start = (initializer, initargs)
        self._processes = processes
        self._pool: Any = None
        self._output: output.Output | None = None

    @property
    def is_started(self) -> bool:
        return self._pool is not None

    @signals.held()
    def schedule(
        self, function: Callable[..., object], *args: Any, timeout_s: float | None = None
    ) -> Any:
        """Start on a task; `result` waits for it."""
        from pebble import ProcessPool

        if self._pool is not None and not self._pool.active:  # its process died between two tasks
            self.kill()
        is_new = self._pool is None
        try:
            if is_new:
                self._output = output.Output()
                with _deaf():
                    resource_tracker.ensure_running()
                self._pool = ProcessPool(
                    max_workers=self._processes,
                    context=_Spawn(),
                    initializer=_begin,
                    initargs=(*self._start, self._output.writer),
                )
            return self._pool.schedule(_flushed, args=(function, args), timeout=timeout_s)
        except (MemoryError, RuntimeError) as error:  # of a thread that cannot be started, too
            if not is_new:
                raise  # the loss of a task
            reason = str(error) or "out of memory"
            raise MatbenchError(f"a worker process cannot be started: {reason}") from None

    def call(self, function: Callable[..., T], *args: Any, timeout_s: float | None = None) -> T:
        """The task's result. `DiedError` or `DeadlineError` leave a fresh process behind."""
        found: T = result(self.schedule(function, *args, timeout_s=timeout_s))
        return found

    def said(self) -> output.Said:
        """What the processes printed since this was asked last."""
        return self._output.taken() if self._output is not None else output.Said()

    @signals.held()
    def kill(self) -> None:
        """End the processes; the next task starts others."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            pool.stop()
            pool.join()
        if self._output is not None:
            self._output.close()


def result(future: Any) -> Any:
    """A task's result; the ways in which its process can be lost as errors of ours."""
    from concurrent.futures.process import BrokenProcessPool

    from pebble import ProcessExpired

    try:
        return future.result()
    except concurrent.futures.TimeoutError:
        raise DeadlineError("past its deadline") from None
    except ProcessExpired as error:
        raise DiedError(_manner_of_death(error.exitcode)) from None
    except BrokenProcessPool:
        raise DiedError("it was gone before the task began") from None


def _manner_of_death(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        try:
            name = signal.Signals(-exitcode).name
        except ValueError:
            name = f"signal {-exitcode}"
        words = {
            "SIGSEGV": "it crashed (segmentation fault: an address outside its memory)",
            "SIGABRT": "it aborted (SIGABRT)",
            "SIGFPE": "it crashed (arithmetic error, such as a division by zero)",
            "SIGKILL": "it was killed from outside (SIGKILL, as when memory runs out)",
        }
        return words.get(name, f"it was ended by {name}")
    return f"it exited with code {exitcode}"


def _begin(
    initializer: Callable[..., None] | None, initargs: tuple[Any, ...], writer: Connection
) -> None:
    """What a kernel prints must not mix with the table; nothing outlives the main process."""
    signals.end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where there are no masks
    output.redirect(writer)
    if initializer is not None:
        initializer(*initargs)


def _flushed(function: Callable[..., T], args: tuple[Any, ...]) -> T:
    """What the function returns; all that it has printed is handed over by then."""
    try:
        return function(*args)
    finally:
        output.flush()
