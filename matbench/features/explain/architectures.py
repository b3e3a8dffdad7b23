"""NVIDIA's architectures: how much of what a multiprocessor holds, and devices of them.

The figures are NVIDIA's own:

- limits of blocks and multiprocessors: *CUDA C++ Programming Guide*, table "Technical
  Specifications per Compute Capability" (releases as in `analysis.limits`); from 6.0 on also
  `cuda::arch_traits` of libcu++;
- allocation units of registers and shared memory, and partitions of the register file:
  `cuda_occupancy.h` of the CUDA toolkit (13.0, and 7.0 for 1.0 and 2.x).
"""

from __future__ import annotations

import difflib
import re
from typing import cast

import msgspec

from matbench.analysis import limits as known_limits
from matbench.analysis.limits import WARP, Multiprocessor
from matbench.errors import UsageError
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


_FERMI = {
    "family": "Fermi", "blocks": 8, "registers": 32768, "registers_per_block": 32768,
    "registers_per_thread": 63, "shared_bytes": 48 * KIB,
}  # fmt: skip
_KEPLER = {"family": "Kepler", "blocks": 16, "shared_unit_bytes": 256}
_MAXWELL = {"blocks": 32, "shared_unit_bytes": 256}
_100_KIB = {
    "shared_bytes": 100 * KIB, "opted_in_bytes_per_block": 99 * KIB, "reserved_shared_bytes": KIB,
}  # fmt: skip
_164_KIB = {
    "shared_bytes": 164 * KIB, "opted_in_bytes_per_block": 163 * KIB, "reserved_shared_bytes": KIB,
}  # fmt: skip
_228_KIB = {
    "shared_bytes": 228 * KIB, "opted_in_bytes_per_block": 227 * KIB, "reserved_shared_bytes": KIB,
}  # fmt: skip


def _table(*rows: dict[str, object]) -> tuple[Architecture, ...]:
    made = []
    for row in rows:
        unit = known_limits.MULTIPROCESSORS.get(cast("tuple[int, int]", row["compute_capability"]))
        assert unit is not None, row
        made.append(msgspec.convert(msgspec.structs.asdict(unit) | row, Architecture))
    return tuple(made)


#: Oldest first. A family's name means its first entry: Fermi is 2.0, not 2.1.
ARCHITECTURES: tuple[Architecture, ...] = _table(
    {"family": "G80", "chip": "G80", "compute_capability": (1, 0), "threads_per_block": 512,
     "blocks": 8, "registers": 8192, "registers_per_block": 8192, "registers_per_thread": 124,
     "shared_bytes": 16 * KIB, "shared_bytes_per_block": 16 * KIB, "shared_unit_bytes": 512},
    _FERMI | {"chip": "GF100", "compute_capability": (2, 0)},
    _FERMI | {"chip": "GF104", "compute_capability": (2, 1)},
    _KEPLER | {"chip": "GK104", "compute_capability": (3, 0), "registers_per_thread": 63,
               "shared_bytes": 48 * KIB},
    _KEPLER | {"chip": "GK110", "compute_capability": (3, 5), "shared_bytes": 48 * KIB},
    _KEPLER | {"chip": "GK210", "compute_capability": (3, 7), "shared_bytes": 112 * KIB,
               "registers": 131072},
    _MAXWELL | {"family": "Maxwell", "chip": "GM107", "compute_capability": (5, 0),
                "shared_bytes": 64 * KIB},
    _MAXWELL | {"family": "Maxwell", "chip": "GM204", "compute_capability": (5, 2),
                "shared_bytes": 96 * KIB},
    _MAXWELL | {"family": "Pascal", "chip": "GP100", "compute_capability": (6, 0), "partitions": 2,
                "shared_bytes": 64 * KIB},
    _MAXWELL | {"family": "Pascal", "chip": "GP104", "compute_capability": (6, 1),
                "shared_bytes": 96 * KIB},
    _MAXWELL | {"family": "Volta", "chip": "GV100", "compute_capability": (7, 0),
                "shared_bytes": 96 * KIB, "opted_in_bytes_per_block": 96 * KIB},
    {"family": "Turing", "chip": "TU102", "compute_capability": (7, 5), "blocks": 16,
     "shared_bytes": 64 * KIB, "opted_in_bytes_per_block": 64 * KIB, "shared_unit_bytes": 256},
    _164_KIB | {"family": "Ampere", "chip": "GA100", "compute_capability": (8, 0), "blocks": 32},
    _100_KIB | {"family": "Ampere", "chip": "GA102", "compute_capability": (8, 6), "blocks": 16},
    _164_KIB | {"family": "Ampere", "chip": "GA10B", "compute_capability": (8, 7), "blocks": 16},
    _100_KIB | {"family": "Ada", "chip": "AD102", "compute_capability": (8, 9), "blocks": 24},
    _228_KIB | {"family": "Hopper", "chip": "GH100", "compute_capability": (9, 0), "blocks": 32},
    _228_KIB | {"family": "Blackwell", "chip": "GB100", "compute_capability": (10, 0),
                "blocks": 32},
    _228_KIB | {"family": "Blackwell", "chip": "GB110", "compute_capability": (10, 3),
                "blocks": 32},
    _228_KIB | {"family": "Blackwell", "chip": "GB10B", "compute_capability": (11, 0),
                "blocks": 24},
    _100_KIB | {"family": "Blackwell", "chip": "GB202", "compute_capability": (12, 0),
                "blocks": 24},
    _100_KIB | {"family": "Blackwell", "chip": "GB20B", "compute_capability": (12, 1),
                "blocks": 24},
)  # fmt: skip


def of_capability(capability: tuple[int, int] | None) -> Architecture | None:
    """The architecture of a device; None if it is not in the table."""
    matching = (a for a in ARCHITECTURES if a.compute_capability == capability)
    return next(matching, None)


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
