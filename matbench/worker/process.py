"""One process that may die: tasks one at a time, each with a deadline.

Processes are forked from a server, a process that has imported what they need and does nothing
else; see `preloaded`. Starting one takes a tenth of the time of a new interpreter.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import functools
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from matbench import signals, temporary
from matbench.errors import CaseError, MatbenchError, explanation
from matbench.worker import output

if sys.platform == "linux":
    from multiprocessing.context import ForkServerContext as Context
    from multiprocessing.context import ForkServerProcess as Process
else:  # where system libraries may not survive a fork
    from multiprocessing.context import SpawnContext as Context
    from multiprocessing.context import SpawnProcess as Process

T = TypeVar("T")

#: A socket's path has 107 bytes at most, two names in this folder among them.
_SOCKET_FOLDER_BYTES = 60
#: Stands for exit code 0.
_EXIT_0 = 256
#: How long a process may take to say its number.
_PID_S = 60.0


class DiedError(MatbenchError):
    """The process ended in the middle of a task; the message says how."""


class DeadlineError(MatbenchError):
    """The task missed its deadline and its process was killed."""


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Processes started here ignore Ctrl-C and similar signals, which may be sent to a whole
    process group but are for the main process only."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals.ENDING)
    try:
        yield  # the mask is inherited
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


#: Held while `__main__` is another module; several pools may start processes at once.
_main = threading.Lock()


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes started here do not run the main module again: they need nothing from it."""
    with _main:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


class _Deaf(Process):
    def start(self) -> None:
        with signals_blocked(), _without_main():
            super().start()

    def terminate(self) -> None:
        self.kill()

    @property
    def exitcode(self) -> int | None:
        """Pebble would take 0 for the end of a process that has nothing left to do."""
        return _EXIT_0 if super().exitcode == 0 else super().exitcode


class _DeafContext(Context):
    Process = _Deaf


@functools.cache
def _context() -> _DeafContext:
    """The server's socket lies in a folder that a later run removes if this one is killed."""
    folder = ExitStack()
    atexit.register(folder.close)
    parent = tempfile.gettempdir()
    if len(os.fsencode(parent)) > _SOCKET_FOLDER_BYTES:
        parent = "/tmp"  # noqa: S108 (nobody else can enter the folder)
    place = str(folder.enter_context(temporary.folder(parent)))
    multiprocessing.current_process()._config.setdefault("tempdir", place)  # type: ignore
    context = _DeafContext()
    context.set_forkserver_preload(["matbench.worker.preloaded"])
    return context


class _Clock:
    """What Pebble needs of `time`, by a clock that is never set."""

    time, sleep = staticmethod(time.monotonic), staticmethod(time.sleep)


class Pool:
    """Pebble processes that are reused, and replaced when they die; by default one.

    They work in a private folder, which is removed with all that compilers leave there. Libraries,
    compilers and linkers search the working folder, and the user's may be anyone's.

    `initializer` runs first in each process, with `initargs`. `leads`: what a task starts can be
    `stopped`, and ends with the pool; for a single process.
    """

    def __init__(
        self,
        initializer: Callable[..., None] | None = None,
        *initargs: Any,
        processes: int = 1,
        leads: bool = False,
    ) -> None:
        self._start = (initializer, initargs)
        self._processes = processes
        self._leads = leads
        self._group: int | None = None  # of its last process that was stopped
        self._pool: Any = None
        self._output: output.Output | None = None
        self._folder = ExitStack()
        self._lock = threading.RLock()  # for the threads of several workers
        self._pending: set[Any] = set()

    @signals.defer_interrupts()
    def schedule(
        self, function: Callable[..., object], *args: Any, timeout_s: float | None = None
    ) -> Any:
        """Start a task; `result` waits for it."""
        with self._lock:
            return self._schedule(function, args, timeout_s)

    def _schedule(
        self, function: Callable[..., object], args: tuple[Any, ...], timeout_s: float | None
    ) -> Any:
        import pebble
        import pebble.pool.process
        from pebble import ProcessPool

        # Deadlines are Pebble's, which would take another wall clock for time that has passed.
        pebble.pool.process.time = _Clock  # type: ignore
        pebble.CONSTS.sleep_unit = 0.02  # how long the end of a pool may take
        if self._pool is not None and not self._pool.active:  # its process died between two tasks
            self.kill()
        is_new = self._pool is None
        try:
            if is_new:
                folder = self._folder.enter_context(temporary.folder())
                self._output = output.Output()
                with signals_blocked():
                    resource_tracker.ensure_running()
                self._pool = ProcessPool(
                    max_workers=self._processes,
                    context=_context(),
                    initializer=_begin,
                    initargs=(
                        *(*self._start, folder, self._output.writer, self._leads),
                        dict(os.environ),
                    ),
                )
            future = self._pool.schedule(_flushed, args=(function, args), timeout=timeout_s)
            self._pending.add(future)
            future.add_done_callback(self._pending.discard)
            return future
        except (MemoryError, OSError, RuntimeError) as error:  # also if a thread cannot be started
            if not is_new:
                raise  # only this task fails
            # Pebble's `BrokenProcessPool` says nothing, but its cause does.
            why = explanation(error.__cause__ or error)
            raise MatbenchError(f"a worker process cannot be started: {why}") from None

    def call(self, function: Callable[..., T], *args: Any, timeout_s: float | None = None) -> T:
        """The task's result. `DiedError` or `DeadlineError` leave a fresh process behind."""
        value: T = result(self.schedule(function, *args, timeout_s=timeout_s))
        return value

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Meanwhile its only process does nothing, nor does what its tasks have started."""
        if self._pool is not None:
            with suppress(MatbenchError):
                group = self.call(os.getpid, timeout_s=_PID_S)
                if group != self._group:
                    self._signal(signal.SIGKILL)  # what another process has left
                    self._group = group
                self._signal(signal.SIGSTOP)
                _wait_for_stop(group)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._group is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._group, number)

    def said(self) -> output.CapturedOutput:
        """The output of the processes since the last call."""
        return self._output.taken() if self._output is not None else output.CapturedOutput()

    @signals.defer_interrupts()
    def kill(self) -> None:
        """End the processes; the next task starts others."""
        with self._lock:
            if self._pool is not None:
                pool, self._pool = self._pool, None
                pool.stop()
                pool.join()
                self._signal(signal.SIGKILL)
                self._group = None
                for future in list(self._pending):  # pebble leaves them as they are
                    with suppress(concurrent.futures.InvalidStateError):
                        future.set_exception(DiedError("was stopped"))
            if self._output is not None:
                self._output.close()
            self._folder.close()


def _wait_for_stop(process: int) -> None:
    """Wait, for a second at most: until one thread has seen the signal, all others go on."""
    import psutil

    awake = {psutil.STATUS_RUNNING, psutil.STATUS_SLEEPING, psutil.STATUS_DISK_SLEEP}
    with suppress(psutil.Error):
        for _ in range(5000):
            if psutil.Process(process).status() not in awake:
                return
            time.sleep(0.0002)


def result(future: Any) -> Any:
    """A task's result; `DeadlineError` or `DiedError` if its process was lost."""
    from concurrent.futures.process import BrokenProcessPool

    from pebble import ProcessExpired

    _wait(future)
    try:
        with signals.defer_interrupts():
            return future.result()
    except concurrent.futures.TimeoutError:
        raise DeadlineError("deadline missed") from None
    except ProcessExpired as error:
        raise DiedError(_manner_of_death(error.exitcode)) from None
    except BrokenProcessPool:
        raise DiedError("exited before the task began") from None


def _wait(future: Any) -> None:
    """Wait for a task; a signal ends the wait at once.

    `Future.result` waits too, but a signal may reach it between taking and using the future's lock,
    which then stays locked: the pool's threads, and whoever joins them, would wait for ever.
    """
    done = threading.Lock()
    done.acquire()
    with signals.defer_interrupts():
        future.add_done_callback(lambda _: done.release())
    done.acquire()


def _manner_of_death(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        try:
            name = signal.Signals(-exitcode).name
        except ValueError:
            name = f"signal {-exitcode}"
        words = {
            "SIGSEGV": "crashed (segmentation fault: access to an invalid address)",
            "SIGABRT": "aborted (SIGABRT)",
            "SIGFPE": "crashed (arithmetic error, such as a division by zero)",
            "SIGKILL": "was killed from outside (SIGKILL, perhaps because memory ran out)",
        }
        return words.get(name, f"was ended by {name}")
    return f"exited with code {exitcode if exitcode != _EXIT_0 else 0}"


def _begin(
    initializer: Callable[..., None] | None,
    initargs: tuple[Any, ...],
    folder: Path,
    writer: Connection,
    leads: bool,
    environment: dict[str, str],
) -> None:
    """Move to a private folder, keep kernels' output out of the table, and end with the main
    process, which removes that folder."""
    alive = getattr(forkserver._forkserver, "_forkserver_alive_fd", None)
    if alive is not None:
        os.close(alive)  # the server ends with the main process, whatever becomes of this one
    signals.end_with_parent()
    if leads:
        os.setpgid(0, 0)  # which gets no signals from a terminal
        with suppress(OSError):  # an old kernel
            signals.end_group_with_this()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.ENDING)  # what it starts may need them
    os.chdir(folder)
    os.environ.clear()  # it is the server's, which may be older
    os.environ.update(environment)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for platforms without signal masks
    output.redirect(writer)
    if initializer is not None:
        initializer(*initargs)


def _crosses(error: MatbenchError) -> bool:
    """Whether the main process can read it: its class may be a kernel's, which only this process
    knows, or need more than its arguments."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 (made here)
    except Exception:
        return False
    return type(error).__module__.startswith("matbench.")


def _flushed(function: Callable[..., T], args: tuple[Any, ...]) -> T:
    """Call the function, and flush its output."""
    try:
        return function(*args)
    except BaseException as error:
        if isinstance(error, MatbenchError) and _crosses(error):
            raise
        said = f"{type(error).__name__}: {explanation(error)}"
        raise CaseError(f"the worker process raised {said}", fatal=True) from None
    finally:
        output.flush()
