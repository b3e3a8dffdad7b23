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
from matbench.measure import output, worker
from matbench.measure.process import Pool

#: Exceptions of a task whose process was lost.
_LOST = (ProcessExpired, TimeoutError, BrokenProcessPool, CancelledError)


class WarmPool:
    """Stands for `Pool` with one process."""

    _resting: list[tuple[Pool, Path]] = []  # noqa: RUF012

    def __init__(self, initializer: Callable[..., None], *initargs: Any) -> None:
        self._begin = (initializer, initargs)
        self._used: tuple[Pool, Path] | None = None
        self._last: Any = None

    @property
    def is_started(self) -> bool:
        return self._used is not None

    def schedule(
        self, function: Callable[..., object], *args: Any, timeout_s: float | None = None
    ) -> Any:
        if self._used is None:
            try:
                self._used, is_new = self._resting.pop(), False
            except IndexError:
                self._used, is_new = _new(), True
            pool, file = self._used
            file.write_bytes(pickle.dumps((*self._begin, dict(os.environ), str(Path.cwd()))))
            if not is_new:
                pool.call(_begin_anew, file)
        self._last = self._used[0].schedule(function, *args, timeout_s=timeout_s)
        return self._last

    call = Pool.call

    def said(self) -> output.Said:
        return self._used[0].said() if self._used is not None else output.Said()

    def kill(self) -> None:
        if self._used is None:
            return
        used, self._used = self._used, None
        if self._last.done() and not _is_lost(self._last.exception()):
            self._resting.append(used)
        else:
            pool, file = used
            pool.kill()
            file.unlink()

    @classmethod
    def end(cls) -> None:
        """End the processes at rest."""
        while cls._resting:
            pool, file = cls._resting.pop()
            pool.kill()
            file.unlink()


@contextmanager
def workers() -> Iterator[None]:
    """Workers that are made here take processes at rest, and leave them so."""
    with mock.patch.object(worker, "Pool", WarmPool):
        yield


def _is_lost(error: BaseException | None) -> bool:
    """Whether the process ended, or lost its device."""
    return isinstance(error, _LOST) or (isinstance(error, CaseError) and error.fatal)


def _new() -> tuple[Pool, Path]:
    descriptor, name = tempfile.mkstemp(suffix=".pickle")
    os.close(descriptor)
    return Pool(_begin, Path(name)), Path(name)


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
