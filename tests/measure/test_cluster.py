"""Which workers of a cluster take part, on which devices, and why others cannot."""

from __future__ import annotations

import logging
import pkgutil
import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import pytest
from support.devices import CPU, GPU

from matbench import __version__
from matbench.backends import NoDeviceError
from matbench.errors import MatbenchError, UsageError
from matbench.measure import cluster, remote
from matbench.measure.cluster import Cluster
from matbench.model import DeviceInfo

HOW = "start one worker per GPU: `dask worker … --nthreads 1 --resources GPU=1`"


class Node(NamedTuple):
    """A Dask worker."""

    devices: tuple[DeviceInfo, ...] | Exception
    resources: Mapping[str, float] = MappingProxyType({"GPU": 1})
    host: str = "a"
    version: str | Exception = __version__


class Client:
    """A scheduler with these workers."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = {f"tcp://{number}": node for number, node in enumerate(nodes)}

    scheduler: Any = property(lambda self: self)

    def identity(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        return {"workers": {a: {"resources": n.resources} for a, n in self.nodes.items()}}

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.nodes, 1)

    def sync(self, function: Any, **given: Any) -> Any:
        return function(**given)

    def run(self, function: Any, workers: list[str], on_error: str, **given: Any) -> Any:
        found = {}
        for address in workers:
            node = self.nodes[address]
            if function is platform.node:
                found[address] = node.host
            elif function is pkgutil.resolve_name:
                assert given == {"name": "matbench:__version__"}
                found[address] = node.version
            else:
                assert function is remote.devices
                assert node.version == __version__
                found[address] = node.devices
        return found


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
    return {address: member.device.identity for address, member in found.members.items()}


def test_each_worker_of_a_host_takes_another_gpu() -> None:
    a, b = gpus("a", 2), gpus("b", 1, uuids=False)
    # The second was told to see one GPU only, so that the first must take the other.
    found = joined(Node(a), Node(a[:1]), Node(b, host="b"))
    assert places(found) == {
        "tcp://0": "GPU-a1", "tcp://1": "GPU-a0", "tcp://2": "cuda:0 on b"
    }  # fmt: skip
    assert {info.identity for info in found.choose_all()} == set(places(found).values())
    assert [member.place for member in found.members.values()] == [
        "cuda:0 on a", "cuda:0 on b", "cuda:1 on a"
    ]  # fmt: skip


def test_workers_of_a_host_share_its_cpu() -> None:
    cpu = msgspec.structs.replace(CPU, properties={"host": "a"})
    found = joined(*[Node((cpu,), {"CPU": 1})] * 3)
    assert set(places(found).values()) == {f"{CPU.place} on a"}
    assert len(found.choose_all()) == 1
    assert [member.place for member in found.members.values()] == [
        f"{CPU.place} on a #{number}" for number in (1, 2, 3)
    ]


def test_workers_for_other_work_are_left_alone() -> None:
    other = Node(ValueError("not asked"), {}, version="0.0")
    cpu = Node((CPU,), {"CPU": 1})
    found = joined(other, cpu, Node(gpus("a", 1)))
    assert list(found.members) == ["tcp://2"]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ((), "there are no workers yet; start some first"),
        ((Node((), {}),), f"no worker offers a GPU or CPU; {HOW}"),
        ((Node(gpus("a", 1), {"GPU": 2}),), f"the worker tcp://0 on a offers GPU=2; {HOW}"),
        ((Node(gpus("a", 1)),) * 2, f"the worker tcp://1 on a has no GPU of its own; {HOW}"),
        ((Node((CPU,)),), f"the worker tcp://0 on a has no GPU of its own; {HOW}"),
        (
            (Node(NoDeviceError("no device to run on")),),
            "the worker tcp://0 on a cannot measure: no device to run on",
        ),
        (
            (Node(gpus("a", 1)), Node((), host="b", version="0.0")),
            f"the worker tcp://1 on b has matbench 0.0, this is {__version__}; "
            "install the same version on both",
        ),
    ],
)
def test_a_cluster_that_cannot_be_used_is_refused(nodes: tuple[Node, ...], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        joined(*nodes)
    assert str(raised.value) == f"--cluster tcp://s:8786: {said}"


def test_a_worker_that_joins_later_takes_part_if_its_device_is_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    both = gpus("a", 2)
    found = joined(Node(both), Node(both))
    nodes = found.client.nodes
    lost = found.members["tcp://0"]
    del nodes["tcp://0"]
    nodes["tcp://7"] = Node(both)  # in place of the first
    nodes["tcp://8"] = Node(gpus("b", 1), host="b")
    assert found.look() == [lost]
    assert places(found) == {"tcp://1": "GPU-a1", "tcp://7": "GPU-a0"}
    assert [record.getMessage() for record in caplog.records] == [
        "not used: the worker tcp://8 on b has no free GPU that was there at the start"
    ]
    assert found.look() == []  # said once
    assert len(caplog.records) == 1
    assert len(found.choose_all()) == 2


def test_a_scheduler_that_is_gone_ends_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    found = joined(Node(gpus("a", 1)))

    def gone(**_: Any) -> Any:
        raise OSError("connection closed")

    monkeypatch.setattr(found.client, "nthreads", gone)
    with pytest.raises(MatbenchError, match=r"the scheduler does not answer: connection closed; "):
        found.look()


def test_a_call_that_takes_too_long_is_given_up() -> None:
    import threading

    with pytest.raises(TimeoutError):
        cluster.within(0.05, threading.Event().wait)
    assert cluster.within(5, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        cluster.within(5, lambda: 1 // 0)


def test_dask_is_quiet() -> None:
    import distributed

    cluster._quieten()
    assert not logging.getLogger("distributed.client").isEnabledFor(logging.CRITICAL)
    assert distributed.__name__ == "distributed"
