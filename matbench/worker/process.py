"""A process that may die: it does one task at a time, each with a deadline.

Processes are forked from a server, a process that has imported what they need and does nothing
else; see `preloaded`. Starting one takes a tenth of the time of a new interpreter.

A kernel may change anything in its process, also what that sends. So an answer is data, and is
decoded as the type that its task returns; nothing that comes from a process is unpickled.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess as Process
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from matbench import answers, files, signals
from matbench.errors import MatbenchError, explanation
from matbench.worker import output

T = TypeVar("T")

#: A socket's path has 107 bytes at most, two names in this folder among them.
_SOCKET_FOLDER_BYTES = 60
#: A socket and two pipes to the server.
_SERVER_DESCRIPTORS = 5
#: How long a process may take to end after it has closed its connection.
_END_S = 5.0


class DiedError(MatbenchError):
    """The process ended in the middle of a task, or broke; the message says how."""


class DeadlineError(MatbenchError):
    """The task missed its deadline and its process was killed."""


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Processes started here ignore Ctrl-C and similar signals, which may be sent to a whole
    process group but are for the main process only."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals.ENDING)
    try:
        resource_tracker.ensure_running()  # if it starts, it lets signals through again
        signal.pthread_sigmask(signal.SIG_BLOCK, signals.ENDING)
        yield  # the mask is inherited
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


#: Held while `__main__` is another module, and to read whether a process has ended: starting one
#: reads that of all.
_main = threading.Lock()


@functools.cache
def _context() -> Any:
    """The server's socket lies in a folder that a later run removes if this one is killed."""
    folder = ExitStack()
    atexit.register(folder.close)
    parent = tempfile.gettempdir()
    if len(os.fsencode(parent)) > _SOCKET_FOLDER_BYTES:
        parent = "/tmp"  # noqa: S108 (nobody else can enter the folder)
    place = str(folder.enter_context(files.temporary_folder(parent)))
    multiprocessing.current_process()._config.setdefault("tempdir", place)  # type: ignore
    # Elsewhere system libraries may not survive a fork.
    context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
    context.set_forkserver_preload(["matbench.worker.preloaded"])
    return context


def start_server() -> None:
    """Start what processes are forked from: it imports what they need while this one goes on. An
    error appears again with the first process."""
    with suppress(MemoryError, OSError), signals_blocked():
        if _context().get_start_method() == "forkserver":
            forkserver.ensure_running()


class WorkerProcess:
    """A process that starts with its first task, and is replaced when it dies.

    It works in a private folder, which is removed with all that compilers leave there. Libraries,
    compilers and linkers search the working folder, and the user's may be anyone's.

    `initializer` runs first in it, with `initargs`. `leads`: what its tasks start can be `stopped`,
    and ends with it.
    """

    def __init__(
        self, initializer: Callable[..., None] | None = None, *initargs: Any, leads: bool = False
    ) -> None:
        self._begin = (initializer, initargs)
        self._leads = leads
        self._running: tuple[Process, Connection] | None = None
        self._output: output.Output | None = None
        self._folder = ExitStack()
        self._lock = threading.RLock()  # it may be killed by another thread
        _every.add(self)

    @signals.defer_interrupts()
    def start(self) -> tuple[Process, Connection]:
        """Start the process, unless it is there."""
        with self._lock:
            if self._running is not None and wait([self._running[0].sentinel], 0):
                self.kill()  # it died between two tasks
            if self._running is None:
                try:
                    folder = self._folder.enter_context(files.temporary_folder())
                    self._output = output.Output()
                    connection, its_own = multiprocessing.Pipe()
                    given = its_own, *self._begin, folder, self._output.writer, self._leads
                    process = _context().Process(target=_serve, args=(*given, dict(os.environ)))
                    with signals_blocked(), _main:
                        with ExitStack() as spare:  # without these, the server prints an error, too
                            for _ in range(_SERVER_DESCRIPTORS):
                                spare.callback(os.close, os.dup(its_own.fileno()))
                        # It must not run the main module again: it needs nothing from it.
                        main = sys.modules["__main__"]
                        sys.modules["__main__"] = ModuleType("__main__")
                        try:
                            process.start()
                        finally:
                            sys.modules["__main__"] = main
                    its_own.close()
                    self._running = process, connection
                except (MemoryError, OSError, RuntimeError, EOFError) as error:
                    self.kill()
                    why = explanation(error)
                    raise MatbenchError(f"a worker process cannot be started: {why}") from None
            return self._running

    def call(self, task: Callable[..., T], *args: Any, timeout_s: float | None = None) -> T:
        """The task's answer, or its error; `DiedError` or `DeadlineError` if the process is lost,
        and the next call finds another one."""
        try:
            process, connection = self.start()
            with suppress(OSError):  # it has just ended; how is found below
                connection.send_bytes(pickle.dumps((task, args)))
            ends_s = None if timeout_s is None else time.monotonic() + timeout_s
            data = bytearray()  # however slowly it comes; its first four bytes say how long it is
            while len(data) - 4 < int.from_bytes(data[:4], "big", signed=True):
                left_s = None if ends_s is None else max(0.0, ends_s - time.monotonic())
                ready = wait([connection, process.sentinel], left_s)
                if not ready:
                    raise DeadlineError("deadline missed")
                before = len(data)
                with suppress(OSError):
                    data += os.read(connection.fileno(), 1 << 20) if connection in ready else b""
                if len(data) == before:
                    is_stopped = self._running is None
                    raise DiedError("was stopped" if is_stopped else _manner_of_death(process))
            kind = getattr(task, "__annotations__", {}).get("return", Any)  # or any plain data
            kind = eval(kind, task.__globals__) if isinstance(kind, str) else kind  # noqa: S307
            answer: T | Exception = answers.decoded(bytes(data[4:]), kind)
        except ValueError as wrong:
            self.kill()
            said = f"sent data that is no answer; was it the kernel? ({wrong})"
            raise DiedError(said) from None
        except BaseException:  # also Ctrl-C: the next task would get this one's answer
            self.kill()
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Meanwhile the process does nothing, nor does what its tasks have started."""
        self._signal(signal.SIGSTOP)
        if self._running is not None:
            _wait_for_stop(self._running[0].pid)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._leads and self._running is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._running[0].pid or 0, number)

    def said(self) -> output.CapturedOutput:
        """The output of the process since the last call."""
        return self._output.taken() if self._output is not None else output.CapturedOutput()

    @signals.defer_interrupts()
    def kill(self) -> None:
        """End the process; the next task starts another."""
        with self._lock:
            if self._running is not None:
                self._signal(signal.SIGKILL)
                process = self._running[0]
                self._running = None
                process.kill()
                wait([process.sentinel])
                with _main:
                    process.join()
            if self._output is not None:
                self._output.close()
            self._folder.close()


_every: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """`multiprocessing` would wait for them."""
    for process in [*_every]:
        process.kill()


def _wait_for_stop(process: int | None) -> None:
    """Wait, for a second at most: until one thread has seen the signal, all others go on."""
    import psutil

    awake = {psutil.STATUS_RUNNING, psutil.STATUS_SLEEPING, psutil.STATUS_DISK_SLEEP}
    with suppress(psutil.Error):
        for _ in range(5000):
            if psutil.Process(process).status() not in awake:
                return
            time.sleep(0.0002)


def _manner_of_death(process: Process) -> str:
    if not wait([process.sentinel], _END_S):
        return "closed its connection"
    with _main:
        exitcode = process.exitcode
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
    return f"exited with code {exitcode}"


# -- in the process --------------------------------------------------------------------------------


def _serve(
    connection: Connection,
    initializer: Callable[..., None] | None,
    initargs: tuple[Any, ...],
    folder: Path,
    writer: Connection,
    leads: bool,
    environment: dict[str, str],
) -> None:
    """Do tasks, in a private folder, with kernels' output kept out of the table, until the main
    process ends, which removes that folder."""
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for descriptor in (1, 2):
        os.dup2(writer.fileno(), descriptor)
    writer.close()
    if initializer is not None:
        initializer(*initargs)
    with suppress(EOFError, OSError):
        while True:
            asked = connection.recv_bytes()
            try:
                task, args = pickle.loads(asked)  # noqa: S301 (from the main process)
                answer = answers.of_value(task(*args))
            except BaseException as error:
                answer = answers.of_error(error, "the worker process")
            with suppress(OSError, AttributeError):
                ctypes.CDLL(None).fflush(None)  # the buffers of C libraries
            if not gc.isenabled():
                gc.collect()  # here, because only this thread may free device memory
            connection.send_bytes(answer)
