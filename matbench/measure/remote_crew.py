"""Hands cases out to the workers of a Dask cluster, one at a time to each.

The cases of a group stay on one worker if they can, because times are ranked together only if one
device measured them. A lost worker costs the case that it was running, which is tried once more;
the rest of its group goes to whoever is free.
"""

from __future__ import annotations

import logging
import pickle
import queue
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from matbench.errors import MatbenchError
from matbench.kernelfile import parcels
from matbench.measure import remote
from matbench.measure.cluster import Cluster, Member, within
from matbench.measure.handing_out import Group
from matbench.measure.options import Deadlines, Options
from matbench.measure.outcomes import Found, not_measured, not_run
from matbench.measure.output import Listener
from matbench.model import Case, DeviceInfo, Kernel

#: How often to look for workers that were lost or have joined.
_LOOK_S = 0.5
#: How long to wait if no worker is left for the rest: Dask starts a process for one that died.
_PATIENCE_S = 60.0
#: How long the answer to a finished case may take. It is lost if its worker is lost meanwhile.
_GATHER_S = 20.0
#: How often a case is tried that loses its worker.
_TRIES = 2

_log = logging.getLogger(__name__)


#: A place, and what was found there; None: the worker was lost, and its case begins again.
Step = tuple[str, Found | None]


@dataclass(eq=False)
class _Task:
    case: Case
    losses: int = 0


@dataclass(eq=False)
class _Batch:
    """What is left of a group, for a worker with one of these devices."""

    devices: set[str]
    tasks: deque[_Task]


@dataclass(eq=False)
class _Seat:
    """What a worker is doing, and the hashes of the files that it has."""

    member: Member
    batch: _Batch
    task: _Task | None = None
    future: Any = None
    has: set[str] = field(default_factory=set)


class RemoteCrew:
    """Measures cases on the workers of a cluster; what concerns all cases is a `MatbenchError`."""

    def __init__(
        self, cluster: Cluster, options: Options, deadlines: Deadlines, listener: Listener | None
    ) -> None:
        self.cluster = cluster
        self.options = options
        self.deadlines = deadlines
        self.listener = listener
        self.name = uuid.uuid4().hex
        self._seats: dict[str, _Seat] = {}
        self._left: deque[_Batch] = deque()
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._parcels: dict[tuple[str, str], parcels.Parcel] = {}

    def __enter__(self) -> RemoteCrew:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.forget(seat.future for seat in self._seats.values())
        self.cluster.end()

    def start(self, devices: Iterable[DeviceInfo]) -> None:
        """Workers open their devices with their first case."""

    def build_ahead(self, cases: object) -> None:
        """Workers build the cases of a group ahead when they begin it."""

    def renew(self) -> None:
        """The next case of each worker starts in a new process."""
        self.name = uuid.uuid4().hex

    def measured(
        self, groups: Iterable[Group[Case]], begin: Callable[[DeviceInfo, Case, str], None]
    ) -> Iterator[Step]:
        """Measure all cases of the groups; `begin` is called with the place of each that begins."""
        groups = list(groups)
        for group in groups:
            for case in group.tasks:
                if case.skip is not None:
                    yield group.devices[0].where, Found(not_run(case, group.devices[0]))
        # Whatever only one device may do goes first, then the longest.
        ordered = sorted(groups, key=lambda group: (len(group.devices), -group.cost))
        self._left = deque(
            _Batch({info.identity for info in group.devices}, tasks)
            for group in ordered
            if (tasks := deque(_Task(case) for case in group.tasks if case.skip is None))
        )
        looked_s = busy_s = time.monotonic()
        while True:
            for begun in self._assign():
                begin(*begun)
            now_s = time.monotonic()
            if any(seat.task for seat in self._seats.values()):
                busy_s = now_s
            elif not (count := self._count()):
                return
            elif now_s > busy_s + _PATIENCE_S:
                raise MatbenchError(
                    f"--cluster {self.cluster.where}: no worker is left for {count} cases; "
                    "the others are recorded: start workers and continue with --resume"
                )
            if now_s > looked_s + _LOOK_S:
                looked_s = now_s
                for member in self.cluster.look():
                    yield from self._lost(member)
            try:
                seat, future = self._done.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if seat.future is future:  # not one that was given up before
                member, batch, task = seat.member, seat.batch, seat.task
                seat.task = seat.future = None
                # The worker need not wait until its answer is here.
                at_once = self._assign() if future.status == "finished" else []
                yield from self._finished(member, batch, task, future)
                for begun in at_once:
                    begin(*begun)

    def _count(self) -> int:
        """How many cases no worker has begun."""
        begun = [seat.batch for seat in self._seats.values()]
        return sum(len(batch.tasks) for batch in (*self._left, *begun))

    def _assign(self) -> list[tuple[DeviceInfo, Case, str]]:
        """Give every idle worker its next case; returns what began, and where."""
        begun = []
        for member in self.cluster.members.values():
            seat = self._seats.get(member.address)
            if seat is not None and seat.task is not None:
                continue
            follow: list[_Task] = []
            if seat is None or not seat.batch.tasks:
                identity = member.device.identity
                batch = next((each for each in self._left if identity in each.devices), None)
                if batch is None:
                    continue
                self._left.remove(batch)
                if seat is None:
                    seat = self._seats[member.address] = _Seat(member, batch)
                seat.batch = batch
                follow = list(batch.tasks)[1:]
            was_lost = seat.batch.tasks[0].losses > 0
            if was_lost and member.address not in self.cluster.present():
                continue  # it is not lost again with a worker that never began it
            seat.task = seat.batch.tasks.popleft()
            self._send(seat, follow if member.device.kind == "gpu" else [])
            begun.append((member.device, seat.task.case, member.place))
        return begun

    def _send(self, seat: _Seat, follow: Iterable[_Task]) -> None:
        assert seat.task is not None
        member = seat.member
        job = remote.Job(self.name, member.device, self.options, self.deadlines)
        sent = self._packed(seat, seat.task.case)
        ahead = tuple(self._packed(seat, task.case) for task in follow)
        errand = pickle.dumps(remote.Errand(job, sent, ahead))

        def submit() -> Any:
            future = self.cluster.client.submit(
                remote.measure,
                errand,
                key=f"matbench-{uuid.uuid4().hex}",
                workers=[member.address],
                allow_other_workers=False,
                resources={member.device.kind.upper(): 1},
                retries=0,
                pure=False,
            )
            future.add_done_callback(lambda done: self._done.put((seat, done)))
            return future

        seat.future = self.cluster.ask(submit)

    def _packed(self, seat: _Seat, case: Case) -> remote.Sent:
        """The case, with its kernel's files if this worker does not have them."""
        parcel = self._parcel(case.kernel)
        is_there = parcel.sha256 in seat.has
        seat.has.add(parcel.sha256)
        there = msgspec.structs.replace(case, kernel=parcel.kernel)
        return remote.Sent(there, parcel.sha256, None if is_there else parcel.files)

    def _parcel(self, kernel: Kernel) -> parcels.Parcel:
        key = kernel.name, kernel.sha256
        if key not in self._parcels:
            self._parcels[key] = parcels.packed(kernel)
        return self._parcels[key]

    def _finished(self, member: Member, batch: _Batch, task: _Task, future: Any) -> Iterator[Step]:
        """What a worker found about a case."""
        try:
            answer = self._answer(future)
        except Exception as error:
            kind = "" if isinstance(error, MatbenchError) else f"{type(error).__name__}: "
            raise MatbenchError(f"{member.place}: {kind}{error}") from None
        if answer is None:
            yield from self._again(member, batch, task, future)
            return
        for printer, said in answer.said:
            if self.listener is not None:
                self.listener(printer, said)
        yield member.place, answer.found

    def _answer(self, future: Any) -> remote.Answer | None:
        """The answer of a worker; None if it was lost with the worker."""
        from distributed import CancelledError, KilledWorker

        try:
            answer: remote.Answer = within(_GATHER_S, future.result)
        except (CancelledError, KilledWorker, TimeoutError, parcels.NotSentError):
            return None
        return answer

    def _lost(self, member: Member) -> Iterator[Step]:
        """Put back what a lost worker leaves behind."""
        seat = self._seats.pop(member.address, None)
        if seat is None:
            return
        if seat.task is not None:
            future, seat.future = seat.future, None  # it will yet be reported as cancelled
            yield from self._again(member, seat.batch, seat.task, future)
        self._put_back(seat.batch)

    def _again(self, member: Member, batch: _Batch, task: _Task, future: Any) -> Iterator[Step]:
        """Put back a case that was lost with its worker; after the second time it has failed."""
        self.cluster.forget([future])
        if (seat := self._seats.get(member.address)) is not None:
            seat.has.clear()
        task.losses += 1
        where = f"{member.place} ({member.address})"
        if task.losses < _TRIES:
            batch.tasks.appendleft(task)
            self._put_back(batch)
            _log.warning("lost the worker on %s; %s is tried again", where, task.case.label)
            yield member.place, None
        else:
            reason = f"its worker was lost {_TRIES} times, last on {where}"
            yield member.place, Found(not_measured(task.case, member.device, "failed", reason))

    def _put_back(self, batch: _Batch) -> None:
        """Let any worker take what is left of a batch, unless one has it already."""
        has_one = batch in self._left or any(seat.batch is batch for seat in self._seats.values())
        if batch.tasks and not has_one:
            self._left.appendleft(batch)
