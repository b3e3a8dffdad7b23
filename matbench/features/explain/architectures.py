"""NVIDIA's architectures: how much of what a multiprocessor holds, and devices of them.

The figures are NVIDIA's own:

- limits of blocks and multiprocessors: *CUDA C++ Programming Guide*, table "Technical
  Specifications per Compute Capability" (releases as in `analysis.limits`); from 6.0 on also
  `cuda::arch_traits` of libcu++;
- allocation units of registers and shared memory, and partitions of the register file:
  `cuda_occupancy.h` of the CUDA toolkit (13.0, and 7.0 for 1.0 and 2.x).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from matbench.analysis import limits as known_limits
from matbench.analysis.limits import Multiprocessor
from matbench.errors import UsageError, suggestion
from matbench.kernelfile.front_matter import DEVICE_LIMITS
from matbench.model import DeviceInfo

KIB = 1024


class Architecture(Multiprocessor, frozen=True, kw_only=True):
    """One compute capability; sizes of shared memory in bytes, of the register file in registers.

    How chips before 3.0 allocate registers is left out: no compiler for them is in use.
    `reserved_shared_bytes` of each block are reserved by the system.
    """

    family: str
    chip: str
    threads_per_block: int = 1024
    blocks: int
    registers: int = 65536
    registers_per_block: int = 65536
    registers_per_thread: int = 255
    partitions: int = 4
    shared_bytes: int
    shared_bytes_per_block: int = 48 * KIB
    opted_in_bytes_per_block: int | None = None
    shared_unit_bytes: int = 128
    reserved_shared_bytes: int = 0

    @property
    def name(self) -> str:
        major, minor = self.compute_capability
        return f"{self.family} {major}.{minor}"

    @property
    def largest_shared_bytes(self) -> int:
        """The most shared memory that a block can have."""
        return self.opted_in_bytes_per_block or self.shared_bytes_per_block


def _architectures() -> Iterator[Architecture]:
    table = msgspec.toml.decode(Path(__file__).with_name("architectures.toml").read_bytes())
    for row in table["rows"]:
        unit = known_limits.MULTIPROCESSORS[tuple(row["compute_capability"])]
        sizes = {n.replace("kib", "bytes"): KIB * kib for n, kib in row.items() if "kib" in n}
        yield msgspec.convert(msgspec.structs.asdict(unit) | row | sizes, Architecture)


ARCHITECTURES = tuple(_architectures())


def of_capability(capability: tuple[int, int] | None) -> Architecture | None:
    """The architecture of a device; None if it is not in the table."""
    return next((a for a in ARCHITECTURES if a.compute_capability == capability), None)


def named(name: str) -> Architecture:
    """The architecture of a family (its first), a chip or a compute capability (3.5, sm_35)."""
    wanted = name.strip().lower()
    number = re.fullmatch(r"(?:sm_)?([0-9]{1,2})\.?([0-9])", wanted)
    capability = tuple(map(int, number.groups())) if number else None
    for a in ARCHITECTURES:
        names = (a.family.lower(), a.chip.lower(), a.name.lower())
        if wanted in names or a.compute_capability == capability:
            return a
    families = list(dict.fromkeys(a.family.lower() for a in ARCHITECTURES))
    hint = suggestion(wanted, families, f"known: {', '.join(families)}, or 8.6")
    raise UsageError(f"no architecture {name!r}; {hint}")


def device_of(architecture: Architecture) -> DeviceInfo:
    """A device of that architecture, which need not be there."""
    return DeviceInfo(
        backend="cuda",
        index=0,
        name=architecture.name,
        kind="gpu",
        driver="",
        toolkit="",
        # Front matter may use the number of multiprocessors, which depends on the product.
        limits=limits(architecture) | {"multiprocessors": 128},
        compute_capability=architecture.compute_capability,
    )


def limits(architecture: Architecture) -> dict[str, int]:
    """The limits that front matter may name, except the number of multiprocessors.

    Programming guide: 1.0 has blocks of 512 × 512 × 64 and grids of 65,535 × 65,535 × 1; grids
    grew to 2³¹ - 1 in x with 3.0.
    """
    own = {
        "max_threads_per_block": architecture.threads_per_block,
        "max_shared_bytes_per_block": architecture.largest_shared_bytes,
        "max_static_shared_bytes": architecture.shared_bytes_per_block,
    }
    if architecture.compute_capability < (3, 0):
        own["max_grid_x"] = 65535
    if architecture.compute_capability < (2, 0):
        own |= {"max_block_x": 512, "max_block_y": 512, "max_grid_z": 1}
    return {name: n for name, n in (DEVICE_LIMITS | own).items() if name != "multiprocessors"}
