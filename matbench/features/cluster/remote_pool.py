"""Measures cases on the workers of a Dask cluster, one at a time on each device.

Dask keeps a worker's pool (`remote.Desk`) and brings cases to it. A lost worker costs the case that
it was running, which is tried once more when its device has another worker.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import Any, NamedTuple

import click
import msgspec

from matbench.bench.options import Deadlines, Options, Round
from matbench.bench.outcomes import not_measured, skipped
from matbench.cli.options import DeviceOptions
from matbench.errors import MatbenchError, UsageError
from matbench.features.cluster import bundles, remote
from matbench.features.cluster.cluster import Cluster, joined
from matbench.model import Case, DeviceInfo
from matbench.records.outcome import Outcome
from matbench.worker.output import Listener
from matbench.worker.rounds import Rounds, Visit, in_rounds
from matbench.worker.scheduler import TaskGroup, at_the_same_time

#: How many devices work at the same time.
_MOST_DEVICES = 1024
#: How often to look whether the worker of a case is still there.
_LOOK_S = 0.5
#: How long the answer to a finished case may take. It is lost if its worker is lost meanwhile.
_GATHER_S = 20.0
#: How often a case is tried that loses its worker.
_TRIES = 2

_log = logging.getLogger(__name__)


class JoinedCluster(NamedTuple):
    """The devices of a cluster, and the pool that measures there."""

    cluster: Cluster

    def choose_all(self) -> list[DeviceInfo]:
        return self.cluster.devices

    def pool(
        self, options: Options, deadlines: Deadlines, listener: Listener | None = None
    ) -> RemoteWorkerPool:
        return RemoteWorkerPool(self.cluster, options, deadlines, listener)


def connected(address: str, device: DeviceOptions) -> JoinedCluster:
    """The cluster with a scheduler there, until the command ends."""
    if device.device:
        raise UsageError("--cluster cannot be combined with --device")
    cluster = joined(address, device.backend)
    return JoinedCluster(click.get_current_context().with_resource(cluster))


class RemoteWorkerPool:
    """Measures cases on the workers of a cluster; what concerns all cases is a `MatbenchError`."""

    def __init__(
        self, cluster: Cluster, options: Options, deadlines: Deadlines, listener: Listener | None
    ) -> None:
        self.cluster = cluster
        self.options = options
        self.deadlines = deadlines
        self.listener = listener
        self._threads = ThreadPoolExecutor(_MOST_DEVICES)
        #: The worker of each device, and Dask's future of the desk there.
        self._desks: dict[str, tuple[str, Any]] = {}
        self._lock = threading.Lock()  # for the desks
        self._is_over = False
        self._parcels: dict[tuple[str, str], bundles.Bundle] = {}

    def __enter__(self) -> RemoteWorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self.renew()
        self._threads.shutdown(wait=False)

    def start(self, devices: Iterable[DeviceInfo]) -> None:
        """Workers open their devices with their first case."""

    def build_ahead(self, cases: object) -> None:
        """Workers build the cases of a group ahead when they begin it."""

    def renew(self) -> None:
        """End what workers do: the next case of each starts in a new process."""
        with self._lock:
            desks, self._desks = self._desks, {}
        self.cluster.end({address: future.key for address, future in desks.values()})

    def measured(
        self, groups: Iterable[TaskGroup[Case]], begin: Callable[[str, str], None]
    ) -> Iterator[Visit]:
        """Measure all cases of the groups, in rounds; `begin` is told a visit's case and device."""
        tasks = in_rounds(groups, self.options)
        ahead = {
            group.tasks[0]: [rounds.case for rounds in [*dict.fromkeys(group.tasks)][1:]]
            for group in tasks
        }

        def visit(device: DeviceInfo, rounds: Rounds) -> Visit | None:
            if (ended := rounds.ended(device)) is not None:
                return ended
            which, case = rounds.next(), rounds.case
            if which is None:
                return None
            if case.skip is not None:
                return rounds.taken(device, skipped(case, device, case.skip))
            begin(case.label, device.where)
            following = ahead.get(rounds, ()) if which.number == 1 else ()
            return rounds.taken(device, self._measured(device, [case, *following], which))

        visits = at_the_same_time(tasks, visit, self._threads)
        return filter(None, map(itemgetter(1), visits))

    def _measured(self, device: DeviceInfo, cases: list[Case], which: Round) -> Outcome:
        """What a device's worker found about the first case; after two lost workers it failed."""
        losses = 0
        while True:
            address = self.cluster.address(device)
            try:
                answer = self._answer(device, address, cases, which)
            except Exception as error:
                kind = "" if isinstance(error, MatbenchError) else f"{type(error).__name__}: "
                raise MatbenchError(f"{device.where}: {kind}{error}") from None
            if answer is not None:
                for printer, said in answer.said:
                    if self.listener is not None:
                        self.listener(printer, said)
                return answer.outcome
            self._desks.pop(device.identity, None)
            losses += 1
            where = f"{device.where} ({address})"
            if losses == _TRIES:
                reason = f"its worker was lost {_TRIES} times, last on {where}"
                return not_measured(cases[0], device, "failed", reason)
            _log.warning("lost the worker on %s; %s is tried again", where, cases[0].label)

    def _answer(
        self, device: DeviceInfo, address: str, cases: list[Case], which: Round
    ) -> remote.RemoteOutcome | None:
        """The answer of the worker; None if it was lost meanwhile."""
        from distributed import CancelledError, KilledWorker
        from distributed import TimeoutError as DaskTimeoutError  # another one before Python 3.11

        with self._lock:
            if self._is_over:
                raise MatbenchError("the sweep is over")
            if self._desks.get(device.identity, ("",))[0] != address:
                how = device, self.options, self.deadlines
                self._desks[device.identity] = address, self._submit(address, remote.Desk, *how)
            _, desk = self._desks[device.identity]
        packed = []  # a case without its kernel's files, and these
        for case in cases[: None if device.kind == "gpu" else 1]:
            key = case.kernel.name, case.kernel.sha256
            if key not in self._parcels:
                self._parcels[key] = bundles.packed(case.kernel)
            bundle = self._parcels[key]
            packed.append((msgspec.structs.replace(case, kernel=bundle.kernel), bundle))
        errand = remote.Errand(desk.key, packed, which)
        resources = {device.kind.upper(): 1}
        future = self._submit(address, remote.measure, desk, errand, resources=resources)
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        while not done.wait(_LOOK_S):
            if not self.cluster.has(address):
                return None
        try:
            answer: remote.RemoteOutcome = future.result(timeout=_GATHER_S)
        except (CancelledError, KilledWorker, DaskTimeoutError, TimeoutError):
            return None
        return answer

    def _submit(self, address: str, function: Callable[..., Any], *given: Any, **how: Any) -> Any:
        """The future of a call in this worker and no other."""
        key = f"matbench-{uuid.uuid4().hex}"
        return self.cluster.client.submit(function, *given, key=key, workers=[address], **how)
