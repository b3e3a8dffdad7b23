"""What runs in the process of a Dask worker: it measures one case at a time for a sweep elsewhere.

The kernel runs in a process below it, as in any sweep, so that a crash costs the case and not the
Dask worker.
"""

from __future__ import annotations

import multiprocessing
import platform
import threading
from pathlib import Path
from typing import Any

import msgspec

from matbench import __version__, backends
from matbench.bench.options import FIRST, Deadlines, Options, Round
from matbench.errors import MatbenchError, UsageError
from matbench.features.cluster import bundles
from matbench.features.cluster.bundles import Bundle
from matbench.model import Case, DeviceInfo
from matbench.records.outcome import Outcome
from matbench.worker.output import CapturedOutput
from matbench.worker.worker import WorkerPool

#: The keys of desks that have ended, some before they were there.
_ended: set[str] = set()


class Errand(msgspec.Struct, frozen=True):
    """A case to measure, and those that will follow, which can be built meanwhile.

    Each comes with its kernel's files.
    """

    desk: str  # its key
    cases: list[tuple[Case, Bundle]]
    which: Round = FIRST


class RemoteOutcome(msgspec.Struct, frozen=True):
    """The outcome of a case, and what kernels and compilers printed."""

    outcome: Outcome
    said: tuple[tuple[str, CapturedOutput], ...]


class Desk:
    """The pool of one sweep in this worker.

    Dask keeps it among the worker's data, and drops it when the sweep ends, however it does.
    """

    def __init__(self, device: DeviceInfo, options: Options, deadlines: Deadlines) -> None:
        # Dask marks its workers as daemons, which may not start processes.
        multiprocessing.current_process().daemon = False
        self.device = device
        self.pool = WorkerPool(options, deadlines)
        self.measuring = threading.Lock()

    def end(self) -> None:
        """End its processes, and with them the case that is running."""
        while not self.measuring.acquire(timeout=0.05):
            self.pool.__exit__()  # more than once: the case's next step would start a process
        self.pool.__exit__()
        self.measuring.release()

    def __del__(self) -> None:
        self.end()


def devices(backend: str, version: str) -> tuple[DeviceInfo, ...]:
    """The devices of this host, told apart from those of other hosts.

    `UsageError` if this is another version of matbench.
    """
    if version != __version__:
        raise UsageError(f"it has matbench {__version__}; install version {version} there, as here")
    host = {"host": platform.node()}
    return tuple(
        msgspec.structs.replace(info, properties=info.properties | host)
        for info in backends.choose_all(backend, "all")
    )


def measure(desk: Desk, errand: Errand) -> RemoteOutcome:
    """Measure an errand's case; only what concerns every case, or comes late, is an error."""
    from distributed import get_worker

    folder = Path(get_worker().local_directory)  # which Dask removes at the end
    case, *ahead = (
        msgspec.structs.replace(sent, kernel=bundles.unpacked(bundle, folder))
        for sent, bundle in errand.cases
    )
    said: list[tuple[str, CapturedOutput]] = []
    with desk.measuring:
        if errand.desk in _ended:
            raise MatbenchError("its sweep has ended")
        desk.pool.build_ahead([(desk.device, task) for task in ahead])
        worker = desk.pool.worker(desk.device, case.kernel)
        worker.listener = lambda printer, what: said.append((printer, what))
        return RemoteOutcome(worker.measure(case, errand.which), tuple(said))


def end(keys: list[str], dask_worker: Any = None) -> None:
    """End these desks: those that are here, and errands to all; Dask passes its worker."""
    _ended.update(keys)
    for key in keys:
        if isinstance(desk := dask_worker.data.get(key), Desk):
            desk.end()
