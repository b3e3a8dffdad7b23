"""Workers whose process is reused by the next command: starting one takes half of a test's time.

Each command still finds a process that knows nothing of the command before: another session, with
the variables and the folder that a process started now would have. A process that was not at rest
when its worker was closed is ended, as always.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from matbench.bench.device_kernels import DeviceKernels
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import CaseError
from matbench.model import DeviceInfo
from matbench.worker import output, worker
from matbench.worker.process import DiedError, WorkerProcess
from support import scripted

#: Where processes have their folders: they outlive the test that started them.
_FOLDER = tempfile.gettempdir()


class WarmProcess:
    """Stands for a `WorkerProcess`."""

    _resting: list[WorkerProcess] = []  # noqa: RUF012

    def __init__(self, initializer: Callable[..., None], *initargs: Any) -> None:
        self._begin = (initializer, initargs)
        self._used: WorkerProcess | None = None
        self._is_at_rest = True

    def start(self) -> None:
        with mock.patch.object(tempfile, "tempdir", _FOLDER):
            if self._used is None:
                # What a process needs to begin: as if it were started now.
                told = *self._begin, dict(os.environ), str(Path.cwd())
                self._used = self._at_rest(*told) or WorkerProcess(_begin, *told)
            self._used.start()

    def call(self, *task: Any, timeout_s: float | None = None) -> Any:
        self.start()
        assert self._used is not None
        self._is_at_rest = False
        try:
            answer = self._used.call(*task, timeout_s=timeout_s)
        except CaseError as error:
            self._is_at_rest = not error.fatal
            raise
        self._is_at_rest = True
        return answer

    def _at_rest(self, *told: Any) -> WorkerProcess | None:
        """A process at rest that begins anew; those that have died meanwhile are dropped."""
        while True:
            try:
                process = self._resting.pop()  # threads may do this at the same time
            except IndexError:
                return None
            process._begin = _begin, told  # as the one does that replaces it if it dies
            try:
                process.call(_begin, *told)
            except DiedError:
                process.kill()
            else:
                return process

    def said(self) -> output.CapturedOutput:
        return self._used.said() if self._used is not None else output.CapturedOutput()

    def kill(self) -> None:
        if self._used is None:
            return
        used, self._used = self._used, None
        if self._is_at_rest:
            self._resting.append(used)
        else:
            used.kill()
        self._is_at_rest = True

    @classmethod
    def end(cls) -> None:
        """End the processes at rest."""
        while cls._resting:
            cls._resting.pop().kill()


def _process(*args: Any, leads: bool) -> WorkerProcess | WarmProcess:
    """A process that leads others may have been changed by its tasks: it is a new one."""
    return WorkerProcess(*args, leads=True) if leads else WarmProcess(*args)


@contextmanager
def workers() -> Iterator[None]:
    """Workers that are made here take processes at rest, and leave them so."""
    with mock.patch.object(worker, "WorkerProcess", _process):
        yield


# -- in the process --------------------------------------------------------------------------------


def _begin(
    initializer: Callable[..., None], initargs: Any, environment: dict[str, str], folder: str
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    scripted.stand_in(False)  # unless the initializer says so
    before, worker._session = worker._session, None
    if before is not None:
        before.close()
        if initializer is worker._begin:
            worker._session = _anew(before, *initargs[:2])
    initializer(*initargs)


def _anew(before: Session, device: DeviceInfo, options: Options) -> Session | None:
    """A session on a CPU that is open already, with matbench's own kernels as they were built."""
    backend = before.backend
    if backend.info != device or device.backend != "opencl" or device.kind != "cpu":
        return None
    backend.cache = Cache()
    backend.conditions()
    kernels = DeviceKernels(backend)
    kernels.programs |= before.kernels.programs
    return Session(backend, backend.cache, options, kernels)
