"""Devices of named architectures, which need not be there."""

from __future__ import annotations

import difflib
import re

from matbench.analysis.limits import WARP
from matbench.errors import UsageError
from matbench.features.explain.architectures import ARCHITECTURES, Architecture
from matbench.model import DeviceInfo

#: A placeholder: front matter may use the number of multiprocessors, which depends on the product.
_MULTIPROCESSORS = 128


def named(name: str) -> Architecture:
    """The architecture of a family (its first), a chip or a compute capability (3.5, sm_35)."""
    wanted = name.strip().lower()
    number = re.fullmatch(r"(?:sm_)?([0-9]{1,2})\.?([0-9])", wanted)
    for architecture in ARCHITECTURES:
        names = (architecture.family, architecture.chip, architecture.name)
        if wanted in map(str.lower, names):
            return architecture
        if number and architecture.compute_capability == (int(number[1]), int(number[2])):
            return architecture
    families = list(dict.fromkeys(architecture.family.lower() for architecture in ARCHITECTURES))
    near = difflib.get_close_matches(wanted, families, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(families)}, or 8.6"
    raise UsageError(f"no architecture {name!r}; {hint}")


def device_of(architecture: Architecture) -> DeviceInfo:
    """A generic device of that architecture."""
    return DeviceInfo(
        backend="cuda",
        index=0,
        name=architecture.name,
        kind="gpu",
        driver="",
        toolkit="",
        limits=limits(architecture) | {"multiprocessors": _MULTIPROCESSORS},
        compute_capability=architecture.compute_capability,
    )


def limits(architecture: Architecture) -> dict[str, int]:
    """The limits that front matter may name, except the number of multiprocessors.

    Programming guide: 1.0 has blocks of 512 × 512 × 64 and grids of 65,535 × 65,535 × 1; grids
    grew to 2³¹ - 1 in x with 3.0.
    """
    first = architecture.compute_capability < (2, 0)
    widest = 512 if first else 1024
    return {
        "max_threads_per_block": architecture.threads_per_block,
        "max_block_x": widest,
        "max_block_y": widest,
        "max_block_z": 64,
        "max_grid_x": 2**31 - 1 if architecture.compute_capability >= (3, 0) else 65535,
        "max_grid_y": 65535,
        "max_grid_z": 1 if first else 65535,
        "max_shared_bytes_per_block": architecture.largest_shared_bytes,
        "max_static_shared_bytes": architecture.shared_bytes_per_block,
        "warp_size": WARP,
    }
