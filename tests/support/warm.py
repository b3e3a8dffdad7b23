"""Workers whose process is reused by the next command: starting one takes half of a test's time.

Each command still finds a process that knows nothing of the command before: another session, with
the variables and the folder that a process started now would have. A process that was not at rest
when its worker was closed is ended, as always.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from pebble import ProcessExpired

from matbench.errors import CaseError
from matbench.worker import output, worker
from matbench.worker.process import DiedError, Pool

#: Where processes have their folders: they outlive the test that started them.
_FOLDER = tempfile.gettempdir()
#: Exceptions of a task whose process was lost.
_LOST = (ProcessExpired, TimeoutError, BrokenProcessPool, CancelledError)


class WarmPool:
    """Stands for `Pool` with one process."""

    _resting: list[tuple[Pool, Path]] = []  # noqa: RUF012

    def __init__(self, initializer: Callable[..., None], *initargs: Any) -> None:
        self._begin = (initializer, initargs)
        self._used: tuple[Pool, Path] | None = None
        self._last: Any = None

    def schedule(
        self, function: Callable[..., object], *args: Any, timeout_s: float | None = None
    ) -> Any:
        if self._used is None:
            self._used = self._at_rest() or _new(self._told())
        with mock.patch.object(tempfile, "tempdir", _FOLDER):
            self._last = self._used[0].schedule(function, *args, timeout_s=timeout_s)
        return self._last

    def _told(self) -> bytes:
        """What a process needs to begin: as if it were started now."""
        return pickle.dumps((*self._begin, dict(os.environ), str(Path.cwd())))

    def _at_rest(self) -> tuple[Pool, Path] | None:
        """A process at rest that begins anew; those that have died meanwhile are dropped."""
        while True:
            try:
                pool, file = self._resting.pop()  # threads may do this at the same time
            except IndexError:
                return None
            file.write_bytes(self._told())
            try:
                pool.call(_begin_anew, file)
            except DiedError:
                _dropped(pool, file)
            else:
                return pool, file

    call = Pool.call

    def said(self) -> output.CapturedOutput:
        return self._used[0].said() if self._used is not None else output.CapturedOutput()

    def kill(self) -> None:
        if self._used is None:
            return
        used, self._used = self._used, None
        if self._last.done() and not _is_lost(self._last.exception()):
            self._resting.append(used)
        else:
            _dropped(*used)

    @classmethod
    def end(cls) -> None:
        """End the processes at rest."""
        while cls._resting:
            _dropped(*cls._resting.pop())


def _pool(*args: Any, leads: bool) -> Pool | WarmPool:
    """A process that leads others may have been changed by its tasks: it is a new one."""
    return Pool(*args, leads=True) if leads else WarmPool(*args)


@contextmanager
def workers() -> Iterator[None]:
    """Workers that are made here take processes at rest, and leave them so."""
    with mock.patch.object(worker, "Pool", _pool):
        yield


def _is_lost(error: BaseException | None) -> bool:
    """Whether the process ended, or lost its device."""
    return isinstance(error, _LOST) or (isinstance(error, CaseError) and error.fatal)


def _new(told: bytes) -> tuple[Pool, Path]:
    descriptor, name = tempfile.mkstemp(suffix=".pickle")
    os.close(descriptor)
    file = Path(name)
    file.write_bytes(told)
    return Pool(_begin, file), file


def _dropped(pool: Pool, file: Path) -> None:
    pool.kill()
    file.unlink()


# -- in the process --------------------------------------------------------------------------------


def _begin(file: Path) -> None:
    initializer, initargs, environment, folder = pickle.loads(file.read_bytes())
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    initializer(*initargs)


def _begin_anew(file: Path) -> None:
    if worker._session is not None:
        worker._session.close()
        worker._session = None
    _begin(file)
