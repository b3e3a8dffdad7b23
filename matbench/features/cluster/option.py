"""The option that sends a sweep to the workers of a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from matbench.cli.options import DeviceOptions, option


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
