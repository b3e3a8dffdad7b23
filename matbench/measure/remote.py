"""What runs in the process of a Dask worker: it measures one case at a time for a sweep elsewhere.

The kernel runs in a process below it, as in any sweep, so that a crash costs the case and not the
Dask worker.
"""

from __future__ import annotations

import multiprocessing
import pickle
import platform
import threading
from pathlib import Path
from typing import NamedTuple

import msgspec

from matbench import backends
from matbench.kernelfile import parcels
from matbench.measure.options import Deadlines, Options
from matbench.measure.outcomes import Found
from matbench.measure.output import Said
from matbench.measure.worker import Crew
from matbench.model import Case, DeviceInfo

#: How long a device stays open for a sweep that sends nothing more, perhaps because it was killed.
_IDLE_S = 60.0


class Job(msgspec.Struct, frozen=True):
    """What all cases of a sweep have in common on one device; `name` is the sweep's own."""

    name: str
    device: DeviceInfo
    options: Options
    deadlines: Deadlines


class Sent(NamedTuple):
    """A case with the hash of its kernel's files, and the files unless they were sent before."""

    case: Case
    sha256: str
    files: dict[str, bytes] | None


class Errand(NamedTuple):
    """A case to measure, and those that will follow, which can be built meanwhile."""

    job: Job
    sent: Sent
    ahead: tuple[Sent, ...] = ()


class Answer(NamedTuple):
    """What was found, and what kernels and compilers printed."""

    found: Found
    said: tuple[tuple[str, Said], ...]


def devices(backend: str) -> tuple[DeviceInfo, ...]:
    """The devices of this host, told apart from those of other hosts."""
    host = {"host": platform.node()}
    return tuple(
        msgspec.structs.replace(info, properties=info.properties | host)
        for info in backends.choose_all(backend, "all")
    )


class _Desk:
    """The crew of the sweep that this process works for, until another sweep or an idle time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.job: Job | None = None
        self.crew: Crew | None = None
        self.timer: threading.Timer | None = None

    def crew_of(self, job: Job) -> Crew:
        """The crew of a sweep, from now on."""
        if job != self.job:
            self.end()
            # Dask marks its workers as daemons, which may not start processes.
            multiprocessing.current_process().daemon = False
            with self.lock:
                self.job, self.crew = job, Crew(job.options, job.deadlines)
        assert self.crew is not None
        return self.crew

    def end(self) -> None:
        """End the processes of the sweep, and with them the case that is running."""
        with self.lock:
            crew, self.crew, self.job = self.crew, None, None
        if crew is not None:
            crew.__exit__()

    def expect_more(self, *, soon: bool) -> None:
        """Wait for the next case for a while, or as long as one is running."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = threading.Timer(_IDLE_S, self.end) if soon else None
        if self.timer is not None:
            self.timer.daemon = True
            self.timer.start()


_desk = _Desk()


def measure(pickled: bytes) -> Answer:
    """Measure the case of an `Errand`; only what concerns every case is an error."""
    errand: Errand = pickle.loads(pickled)  # noqa: S301
    case, *ahead = [_arrived(sent) for sent in (errand.sent, *errand.ahead)]
    device = errand.job.device
    said: list[tuple[str, Said]] = []
    _desk.expect_more(soon=False)
    crew = _desk.crew_of(errand.job)
    try:
        crew.build_ahead([(device, each) for each in ahead])
        worker = crew.worker(device)
        worker.listener = lambda printer, what: said.append((printer, what))
        return Answer(worker.measure(case), tuple(said))
    finally:
        if _desk.crew is not crew:  # it was ended meanwhile, perhaps between two steps of the case
            crew.renew()
        _desk.expect_more(soon=True)


def _arrived(sent: Sent) -> Case:
    """The case with its kernel's files in this worker's folder, which Dask removes at the end."""
    from distributed import get_worker

    folder = Path(get_worker().local_directory)
    kernel = parcels.unpacked(sent.case.kernel, sent.sha256, sent.files, folder)
    return msgspec.structs.replace(sent.case, kernel=kernel)


def end() -> None:
    """End the sweep that this process works for, and the case that is running."""
    _desk.end()
