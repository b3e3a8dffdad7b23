"""The option that sends a sweep to the workers of a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import click

from matbench.cli.options import DeviceOptions, option
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.bench.options import Deadlines, Options
    from matbench.features.cluster.cluster import Cluster
    from matbench.features.cluster.remote_pool import RemoteWorkerPool
    from matbench.model import DeviceInfo
    from matbench.worker.output import Listener


@dataclass(frozen=True)
class ClusterOptions:
    """The cluster to measure on, if any."""

    TITLE: ClassVar = DeviceOptions.TITLE

    cluster: str | None = option(
        "--cluster",
        metavar="ADDRESS",
        help="Measure on all workers of a Dask cluster: the address of its scheduler, such as "
        "tcp://node1:8786.",
    )

    def connect(self, device: DeviceOptions) -> JoinedCluster | None:
        """The cluster, until the command ends."""
        if self.cluster is None:
            return None
        if device.device:
            raise UsageError("--cluster cannot be combined with --device")
        from matbench.features.cluster import cluster

        context = click.get_current_context()
        return JoinedCluster(context.with_resource(cluster.joined(self.cluster, device.backend)))


class JoinedCluster:
    """The devices of a cluster, and the pool that measures there."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def choose_all(self) -> list[DeviceInfo]:
        return self.cluster.devices

    def pool(
        self, options: Options, deadlines: Deadlines, listener: Listener | None = None
    ) -> RemoteWorkerPool:
        from matbench.features.cluster.remote_pool import RemoteWorkerPool

        return RemoteWorkerPool(self.cluster, options, deadlines, listener)
