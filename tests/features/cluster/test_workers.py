"""Which workers of a cluster take part, on which devices, and why others cannot."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest import mock

import msgspec
import pytest
from support.devices import CPU, GPU

from matbench import __version__
from matbench.backends.protocol import NoDeviceError
from matbench.errors import MatbenchError, UsageError
from matbench.features.cluster import cluster, remote
from matbench.features.cluster.cluster import Cluster
from matbench.model import DeviceInfo
from matbench.worker.scheduler import GoneError

HOW = "start one worker per GPU: `dask worker … --nthreads 1 --resources GPU=1`"


class Node(NamedTuple):
    """A Dask worker."""

    devices: tuple[DeviceInfo, ...] | Exception
    resources: Mapping[str, float] = MappingProxyType({"GPU": 1})


class Client:
    """A scheduler with these workers."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = {f"tcp://{number}": node for number, node in enumerate(nodes)}

    scheduler: Any = property(lambda self: self)

    def sync(self, function: Any, **given: Any) -> Any:
        return function(**given)

    def identity(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        return {"workers": {a: {"resources": n.resources} for a, n in self.nodes.items()}}

    def run(self, function: Any, workers: list[str], on_error: str, **given: Any) -> Any:
        assert (function, on_error) == (remote.devices, "return")
        assert given == {"backend": "auto", "version": __version__}
        return {address: self.nodes[address].devices for address in workers}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_LOOK_S", 0.01)
    monkeypatch.setattr(cluster, "_PATIENCE_S", 0.1)


def gpus(host: str, count: int, *, uuids: bool = True) -> tuple[DeviceInfo, ...]:
    return tuple(
        msgspec.structs.replace(
            GPU,
            index=index,
            properties={"host": host} | ({"UUID": f"GPU-{host}{index}"} if uuids else {}),
        )
        for index in range(count)
    )


def joined(*nodes: Node) -> Cluster:
    return Cluster(Client(*nodes), "tcp://s:8786", "auto")


def places(found: Cluster) -> dict[str, str]:
    return {address: info.identity for address, info in found.members.items()}


def test_each_worker_of_a_host_takes_another_gpu() -> None:
    a, b = gpus("a", 2), gpus("b", 1, uuids=False)
    # The second was told to see one GPU only, so that the first must take the other.
    found = joined(Node(a), Node(a[:1]), Node(b))
    assert places(found) == {
        "tcp://0": "GPU-a1", "tcp://1": "GPU-a0", "tcp://2": "cuda:0 on b"
    }  # fmt: skip
    assert {info.identity for info in found.devices} == set(places(found).values())
    for address, info in found.members.items():
        assert found.address(info) == address
        assert found.has(address)


def test_of_the_workers_that_share_a_cpu_one_measures_and_others_follow_it() -> None:
    cpu = msgspec.structs.replace(CPU, properties={"host": "a"})
    found = joined(*[Node((cpu,), {"CPU": 1})] * 3)
    assert places(found) == {"tcp://0": f"{CPU.place} on a"}
    assert found.devices == [cpu]
    for lost, address in (("tcp://0", "tcp://1"), ("tcp://1", "tcp://2")):
        del found.client.nodes[lost]
        assert not found.has(lost)
        assert found.address(cpu) == address


def test_workers_for_other_work_are_left_alone() -> None:
    other = Node(ValueError("not asked"), {})
    cpu = Node((CPU,), {"CPU": 1})
    found = joined(other, cpu, Node(gpus("a", 1)))
    assert list(found.members) == ["tcp://2"]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ((), "there are no workers yet; start some first"),
        ((Node((), {}),), f"no worker offers a GPU or CPU; {HOW}"),
        ((Node(gpus("a", 1)),) * 2, f"the worker tcp://1 has no GPU of its own; {HOW}"),
        ((Node((CPU,)),), f"the worker tcp://0 has no GPU of its own; {HOW}"),
        ((Node(gpus("a", 1), {"CPU": 1}),),
         f"the worker tcp://0 has no CPU of its own; {HOW.replace('GPU', 'CPU')}"),
        ((Node(NoDeviceError("no device to run on")),),
         "the worker tcp://0 cannot measure: no device to run on"),
        ((Node(gpus("a", 1)), Node(ModuleNotFoundError("No module named 'matbench'"))),
         "the worker tcp://1 cannot measure: No module named 'matbench'"),
    ],
)  # fmt: skip
def test_a_cluster_that_cannot_be_used_is_refused(nodes: tuple[Node, ...], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        joined(*nodes)
    assert str(raised.value) == f"--cluster tcp://s:8786: {said}"


def test_another_version_of_matbench_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"^it has matbench .*; install version 0\.0 there, as here"
    ):
        remote.devices("auto", "0.0")


def test_a_worker_that_joins_later_takes_part_if_its_device_is_known() -> None:
    both = gpus("a", 2)
    found = joined(Node(both), Node(both))
    nodes = found.client.nodes
    del nodes["tcp://0"]
    nodes["tcp://7"] = Node(both)  # in place of the first
    nodes["tcp://8"] = Node(gpus("b", 1))
    assert found.address(both[0]) == "tcp://7"
    assert places(found) == {"tcp://1": "GPU-a1", "tcp://7": "GPU-a0"}
    assert len(found.devices) == 2
    del nodes["tcp://7"]
    with pytest.raises(
        GoneError, match=r"no worker is left for the cases of cuda:0 on a; .* with --resume$"
    ):
        found.address(both[0])


def test_a_scheduler_that_is_gone_ends_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    found = joined(Node(gpus("a", 1)))
    gone = mock.Mock(side_effect=OSError("connection closed"))
    monkeypatch.setattr(found.client, "identity", gone)
    with pytest.raises(MatbenchError, match=r"the scheduler does not answer: connection closed; "):
        found.has("tcp://0")


def test_a_call_that_takes_too_long_is_given_up() -> None:
    import threading

    with pytest.raises(TimeoutError):
        cluster.within(0.05, threading.Event().wait)
    assert cluster.within(5, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        cluster.within(5, lambda: 1 // 0)


def test_a_scheduler_answers_in_ten_seconds_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask gives up first, because it can say why."""
    limits: list[float] = []

    class Unconnected:
        def __init__(self, address: str, timeout: float, set_as_default: bool) -> None:
            limits.append(timeout)
            raise OSError(f"nobody at {address}")

    monkeypatch.setattr("distributed.Client", Unconnected)
    with (
        pytest.raises(UsageError, match=r"^--cluster tcp://s:1: nobody at tcp://s:1$"),
        cluster.joined("tcp://s:1", "auto"),
    ):
        pass
    assert limits == [5.0]


def test_dask_is_quiet() -> None:
    import distributed

    cluster._quieten()
    assert not logging.getLogger("distributed.client").isEnabledFor(logging.CRITICAL)
    assert distributed.__name__ == "distributed"
