"""Joins a Dask cluster: which of its workers measure for a sweep, and on which devices.

A worker takes part if it offers the resource `GPU=1`, or `CPU=1` where none offers a GPU, and has
a device of its own. Dask is asked in threads, so that no signal reaches its locks.
"""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from matbench import __version__
from matbench.errors import MatbenchError, UsageError
from matbench.features.cluster import remote
from matbench.model import DeviceInfo
from matbench.worker.scheduler import GoneError

T = TypeVar("T")

#: How long a scheduler may take to answer at first, and at any later time.
_CONNECT_S, _ANSWER_S = 10.0, 60.0
#: How long to wait for a device's worker: Dask starts a process for one that died.
_PATIENCE_S = 60.0
_LOOK_S = 0.5
_CONTINUE = "what is done is recorded: continue with --resume"


@contextmanager
def joined(address: str, backend: str) -> Iterator[Cluster]:
    """The cluster of the scheduler at `address`.

    `UsageError` if Dask is missing, nothing answers, or a worker cannot be used.
    """
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            "--cluster needs Dask: pip install 'matbench-cuda[cluster]', here and on every host"
        ) from None
    _quieten()

    class Quiet(Client):
        def __del__(self) -> None:
            """Dask would wait here, and complain, for one that was never connected."""

    how = {"timeout": _CONNECT_S / 2, "set_as_default": False}
    try:
        client = within(_CONNECT_S, lambda: Quiet(address, **how))  # type: ignore[no-untyped-call]
    except Exception as error:
        reason = " ".join(str(error).split()) or "no answer; is it a Dask scheduler?"
        raise UsageError(f"--cluster {address}: {reason}") from None
    try:
        yield Cluster(client, address, backend)
    finally:
        with suppress(Exception):
            within(_CONNECT_S, client.close)


def _quieten() -> None:
    """Keep Dask's log and warnings off the terminal: what matters to a sweep is said by it."""
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", module=r"(distributed|dask|contextlib)\b")


def within(limit_s: float, call: Callable[[], T]) -> T:
    """The result of a call in a thread of its own, which no signal reaches; `TimeoutError`."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future.result(limit_s)


class Cluster:
    """The workers of a scheduler. `devices` are theirs at the start: a worker that joins later, as
    after a crash, takes part if it has one of these that no other worker has."""

    def __init__(self, client: Any, where: str, backend: str) -> None:
        self.client = client
        self.where = where
        self.backend = backend
        #: The workers that take part, and their devices.
        self.members: dict[str, DeviceInfo] = {}
        self.devices: list[DeviceInfo] = []
        self._lock = threading.Lock()
        offers = self._offers()
        if not offers:
            raise UsageError(f"--cluster {where}: there are no workers yet; start some first")
        offered = set().union(*offers.values())
        self.kind = "cpu" if "CPU" in offered and "GPU" not in offered else "gpu"
        resource = self.kind.upper()
        command = f"`dask worker … --nthreads 1 --resources {resource}=1`"
        self._how = f"start one worker per {resource}: {command}"
        for address, reason in self._meet(offers).items():
            raise UsageError(f"--cluster {where}: the worker {address} {reason}")
        if not self.members:
            raise UsageError(f"--cluster {where}: no worker offers a GPU or CPU; {self._how}")
        self.devices = list(self.members.values())

    def has(self, address: str) -> bool:
        """Whether the scheduler has this worker now."""
        return address in self._offers()

    def address(self, device: DeviceInfo) -> str:
        """The worker of a device, waiting for one if need be; `GoneError` if none comes."""
        ends_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < ends_s:
            with self._lock:
                offers = self._offers()
                self.members = {a: info for a, info in self.members.items() if a in offers}
                if device.identity not in self._taken():
                    self._meet({a: offers[a] for a in offers.keys() - self.members.keys()})
                for address, info in self.members.items():
                    if info.identity == device.identity:
                        return address
            time.sleep(_LOOK_S)
        reason = f"no worker is left for the cases of {device.where}"
        raise GoneError(f"--cluster {self.where}: {reason}; {_CONTINUE}")

    def end(self, desks: dict[str, str]) -> None:
        """End the desks of a sweep: their keys, by the addresses of their workers."""
        with suppress(Exception):
            within(_CONNECT_S, lambda: self._run(remote.end, desks, keys=[*desks.values()]))

    def _ask(self, call: Callable[[], T]) -> T:
        """What Dask answers; `MatbenchError` if the scheduler does not."""
        try:
            return within(_ANSWER_S, call)
        except Exception as error:
            reason = f"--cluster {self.where}: the scheduler does not answer: {error}".rstrip(": ")
            raise MatbenchError(f"{reason}; {_CONTINUE}") from None

    def _offers(self) -> dict[str, dict[str, float]]:
        """The resources that each worker offers, by its address."""
        # `client.scheduler_info` would say nothing of a scheduler that is gone.
        identity = self.client.scheduler.identity
        known = self._ask(lambda: self.client.sync(identity, n_workers=-1))
        return {address: worker["resources"] for address, worker in known["workers"].items()}

    def _run(self, function: Callable[..., Any], addresses: Iterable[str], **given: Any) -> Any:
        """The results of a function in some workers, by their addresses; or its errors."""
        how = {"workers": list(addresses), "on_error": "return"}
        return self.client.run(function, **how, **given) if how["workers"] else {}

    def _meet(self, offers: dict[str, dict[str, float]]) -> dict[str, str]:
        """Let workers take part, each with a device of its own; returns why some cannot."""
        able = [address for address, offer in offers.items() if self.kind.upper() in offer]
        given = {"backend": self.backend, "version": __version__}
        seen = self._ask(lambda: self._run(remote.devices, able, **given))
        reasons = {a: f"cannot measure: {e}" for a, e in seen.items() if isinstance(e, Exception)}
        # Those that see the fewest devices choose first.
        for address in sorted(seen.keys() - reasons, key=lambda a: (len(seen[a]), a)):
            fit = [info for info in seen[address] if info.kind == self.kind]
            if self.devices:
                known = {info.identity for info in self.devices}
                fit = [info for info in fit if info.identity in known]
            free = [info for info in fit if info.identity not in self._taken()]
            if free:
                self.members[address] = free[0]
            elif self.kind == "gpu" or not fit:  # many can share a CPU, one after the other
                reasons[address] = f"has no {self.kind.upper()} of its own; {self._how}"
        return reasons

    def _taken(self) -> set[str]:
        return {info.identity for info in self.members.values()}
