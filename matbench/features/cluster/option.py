"""The option that sends a sweep to the workers of a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import click

from matbench.cli.options import DeviceOptions, option
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.features.cluster.remote_pool import JoinedCluster


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
        from matbench.features.cluster import cluster, remote_pool

        joined = cluster.joined(self.cluster, device.backend)
        return remote_pool.JoinedCluster(click.get_current_context().with_resource(joined))
