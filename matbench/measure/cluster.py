"""Joins a Dask cluster: which of its workers measure for a sweep, and on which devices.

A worker takes part if it offers the resource `GPU=1`, or `CPU=1` where none offers a GPU, and has
a device of its own. Dask is asked in threads, so that no signal reaches its locks.
"""

from __future__ import annotations

import logging
import pkgutil
import platform
import queue
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from matbench import __version__, backends
from matbench.errors import MatbenchError, UsageError
from matbench.measure import remote
from matbench.measure.process import deaf
from matbench.model import DeviceInfo

T = TypeVar("T")

#: How long a scheduler may take to answer at first, and at any later time.
_CONNECT_S, _ANSWER_S = 10.0, 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Member:
    """A worker that takes part, and its device; `place` is unlike that of any other worker."""

    address: str
    device: DeviceInfo
    place: str


@contextmanager
def joined(where: str, backend: str) -> Iterator[Cluster]:
    """The cluster of a scheduler, or of N processes on this machine for `local:N`.

    `UsageError` if Dask is missing, nothing answers, or a worker cannot be used.
    """
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise UsageError(
            "--cluster needs Dask: pip install 'matbench-cuda[cluster]', here and on every host"
        ) from None
    _quieten()
    kind, _, count = where.partition(":")
    with ExitStack() as stack:
        try:
            address = where
            if kind == "local":
                own = within(_ANSWER_S, lambda: _local(int(count), backend))
                stack.callback(_close, own)
                address = own.scheduler_address
            client = within(_CONNECT_S, lambda: _client(address))
            stack.callback(_close, client)
        except Exception as error:
            reason = " ".join(str(error).split()) or "no answer; is it a Dask scheduler?"
            raise UsageError(f"--cluster {where}: {reason}") from None
        yield Cluster(client, where, backend)


def _client(address: str) -> Any:
    from distributed import Client

    class Quiet(Client):
        def __del__(self) -> None:
            """Dask would wait here, and complain, for one that was never connected."""

    how = {"timeout": _CONNECT_S / 2, "set_as_default": False}
    return Quiet(address, **how)  # type: ignore[no-untyped-call]


def _close(client: Any) -> None:
    with suppress(Exception):
        within(_CONNECT_S, client.close)


def _local(count: int, backend: str) -> Any:
    """A cluster of processes that only this machine can reach."""
    from distributed import LocalCluster

    kind = backends.choose(backend, None).kind
    with deaf():
        resource_tracker.ensure_running()  # started later, it would end the effect of `deaf`
    with deaf():
        return LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=count,
            threads_per_worker=1,
            host="127.0.0.1",
            resources={kind.upper(): 1},
            memory_limit=0,
            silence_logs=logging.CRITICAL,
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        )


def _quieten() -> None:
    """Keep Dask's log and warnings off the terminal: what matters to a sweep is said by it."""
    import warnings

    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", module=r"(distributed|dask|contextlib)\b")


def within(limit_s: float, call: Callable[[], T]) -> T:
    """The result of a call in a thread of its own, which no signal reaches; `TimeoutError`."""
    found: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            found.put((call(), None))
        except BaseException as error:
            found.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        result, error = found.get(timeout=limit_s)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


class Cluster:
    """The workers of a scheduler. `devices` are theirs at the start: a worker that joins later, as
    after a crash, takes part if it has one of these."""

    def __init__(self, client: Any, where: str, backend: str) -> None:
        self.client = client
        self.where = where
        self.backend = backend
        self.devices: list[DeviceInfo] = []
        self.members: dict[str, Member] = {}
        self._met: set[str] = set()
        self._joined = 0
        self._is_complete = False
        offers = self._offers()
        if not offers:
            raise UsageError(f"--cluster {where}: there are no workers yet; start some first")
        offered = set().union(*offers.values())
        self.kind = "cpu" if "CPU" in offered and "GPU" not in offered else "gpu"
        for reason in self._meet(offers):
            raise UsageError(f"--cluster {where}: {reason}")
        if not self.members:
            raise UsageError(f"--cluster {where}: no worker offers a GPU or CPU; {self._how}")
        self._is_complete = True

    def choose_all(self) -> list[DeviceInfo]:
        """Each device once, as `--device all` selects those of one host."""
        return self.devices

    def present(self) -> set[str]:
        """The addresses of all workers that the scheduler has now."""
        return set(self.ask(self.client.nthreads))

    def look(self) -> list[Member]:
        """Let new workers take part; returns the members that are lost."""
        present = self.present()
        lost = [member for address, member in self.members.items() if address not in present]
        for member in lost:
            del self.members[member.address]
        self._met &= present
        if present <= self._met:
            return lost
        offers = {a: each for a, each in self._offers().items() if a not in self._met}
        for reason in self._meet(offers):
            _log.warning("not used: %s", reason)
        return lost

    def ask(self, call: Callable[[], T]) -> T:
        """What Dask answers; `MatbenchError` if the scheduler does not."""
        try:
            return within(_ANSWER_S, call)
        except Exception as error:
            reason = f"--cluster {self.where}: the scheduler does not answer: {error}".rstrip(": ")
            hint = "what is done is recorded: continue with --resume"
            raise MatbenchError(f"{reason}; {hint}") from None

    def forget(self, futures: Iterable[Any]) -> None:
        """Let no worker begin these tasks, or begin one again."""
        left = [future for future in futures if future is not None]
        with suppress(Exception):
            within(_CONNECT_S, lambda: self.client.cancel(left, force=True))

    def end(self) -> None:
        """End what the workers are doing for this sweep."""
        addresses = list(self.members)
        with suppress(Exception):
            within(_CONNECT_S, lambda: self._run(remote.end, addresses))

    def _offers(self) -> dict[str, dict[str, float]]:
        """The resources that each worker offers, by its address."""
        known = self.ask(lambda: self.client.sync(self.client.scheduler.identity, n_workers=-1))[
            "workers"
        ]
        return {address: each["resources"] for address, each in known.items()}

    def _run(self, function: Callable[..., Any], addresses: Collection[str], **given: Any) -> Any:
        """The results of a function in some workers, by their addresses; or its errors."""
        how = {"workers": list(addresses), "on_error": "return"}
        return self.client.run(function, **how, **given) if addresses else {}

    def _meet(self, offers: dict[str, dict[str, float]]) -> list[str]:
        """Let workers take part; returns why some of them cannot."""
        self._met |= offers.keys()
        resource = self.kind.upper()
        offered = {address: each[resource] for address, each in offers.items() if resource in each}
        hosts = self.ask(lambda: self._run(platform.node, offered))
        # By a name, because a host may have another version, or none.
        version = "matbench:__version__"
        versions = self.ask(lambda: self._run(pkgutil.resolve_name, offered, name=version))
        alike = [address for address in offered if versions[address] == __version__]
        described = self.ask(lambda: self._run(remote.devices, alike, backend=self.backend))

        reasons = []
        # Those that see the fewest devices choose first.
        for address in sorted(offered, key=lambda each: (_count(described.get(each)), each)):
            found = described.get(address)
            if address not in alike:
                reason = _differs(versions[address])
            elif isinstance(found, Exception):
                reason = f"cannot measure: {found}"
            elif offered[address] != 1:
                reason = f"offers {resource}={offered[address]:g}; {self._how}"
            elif not self._takes(address, found):
                reason = f"has no {resource} of its own; {self._how}"
                if self._is_complete:
                    reason = f"has no free {resource} that was there at the start"
            else:
                continue
            reasons.append(f"the worker {address} on {hosts[address]} {reason}")
        return reasons

    @property
    def _how(self) -> str:
        resource = self.kind.upper()
        started = f"dask worker … --nthreads 1 --resources {resource}=1"
        return f"start one worker per {resource}: `{started}`"

    def _takes(self, address: str, found: Iterable[DeviceInfo]) -> bool:
        """Give a worker the first of its devices that no other has; many can share a CPU."""
        known = {info.identity for info in self.devices}
        taken = {member.device.identity for member in self.members.values()}
        for info in found:
            is_free = info.kind == "cpu" or info.identity not in taken
            is_known = info.identity in known
            if info.kind == self.kind and is_free and (is_known or not self._is_complete):
                self._joined += 1
                shared = f" #{self._joined}" if info.kind == "cpu" else ""
                self.members[address] = Member(address, info, info.where + shared)
                self.devices += [] if is_known else [info]
                return True
        return False


def _count(found: Any) -> int:
    return len(found) if isinstance(found, tuple) else 0


def _differs(version: Any) -> str:
    """How another host's matbench differs from this one."""
    if isinstance(version, ImportError):
        return f"has no matbench; install version {__version__} there, as here"
    if isinstance(version, Exception):
        return f"cannot be used: {version}"
    return f"has matbench {version}, this is {__version__}; install the same version on both"
