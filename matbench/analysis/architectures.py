"""NVIDIA's architectures by name: what a multiprocessor holds, and how many blocks fit on it.

The figures are NVIDIA's own:

- limits of blocks and multiprocessors, and results per clock: *CUDA C++ Programming Guide*,
  tables "Technical Specifications per Compute Capability" and "Throughput of Native Arithmetic
  Instructions" (release 13.0 from 7.5 on, 12.0 for 5.0 to 7.0, 8.0 for 2.x and 3.x, 4.0 for 1.0);
  from 6.0 on also `cuda::arch_traits` of libcu++;
- allocation units of registers and shared memory, and partitions of the register file:
  `cuda_occupancy.h` of the CUDA toolkit (13.0, and 7.0 for 1.0 and 2.x);
- multiply-adds per clock of a multiprocessor's tensor cores: the whitepapers on V100 (2017),
  Turing (2018), A100 (2020) and H100 (2022). For other architectures the rate depends on the
  product or is not published, so none is given.
"""

from __future__ import annotations

import difflib
import re

import msgspec

from matbench.errors import UsageError
from matbench.model import Precision
from matbench.records.explanation import Limiter, Occupancy

WARP = 32
KIB = 1024
#: Registers are allocated to a warp in units of these.
_REGISTER_UNIT = 256


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """One compute capability; sizes of shared memory in bytes, of the register file in registers.

    How chips before 3.0 allocate registers is left out: no compiler for them is in use.
    `reserved_shared_bytes` of each block are reserved by the system.
    `fp32_lanes` and `fp64_lanes` are multiply-adds per clock and multiprocessor, those of the
    product with the most (None: not looked up); `tensor_fma` the same for the tensor cores, by the
    precision of inputs.
    """

    family: str
    chip: str
    compute_capability: tuple[int, int]
    threads_per_block: int = 1024
    threads: int
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
    fp32_lanes: int
    fp64_lanes: int | None
    tensor_fma: dict[Precision, int] = {}

    @property
    def name(self) -> str:
        major, minor = self.compute_capability
        return f"{self.family} {major}.{minor}"

    @property
    def largest_shared_bytes(self) -> int:
        """The most shared memory that a block can have."""
        return self.opted_in_bytes_per_block or self.shared_bytes_per_block

    @property
    def warps(self) -> int:
        return self.threads // WARP

    @property
    def limits(self) -> dict[str, int]:
        """The limits that front matter may name, except the number of multiprocessors.

        Programming guide: 1.0 has blocks of 512 × 512 × 64 and grids of 65,535 × 65,535 × 1; grids
        grew to 2³¹ - 1 in x with 3.0.
        """
        first = self.compute_capability < (2, 0)
        widest = 512 if first else 1024
        return {
            "max_threads_per_block": self.threads_per_block,
            "max_block_x": widest,
            "max_block_y": widest,
            "max_block_z": 64,
            "max_grid_x": 2**31 - 1 if self.compute_capability >= (3, 0) else 65535,
            "max_grid_y": 65535,
            "max_grid_z": 1 if first else 65535,
            "max_shared_bytes_per_block": self.largest_shared_bytes,
            "max_static_shared_bytes": self.shared_bytes_per_block,
            "warp_size": WARP,
        }


_FERMI = {
    "family": "Fermi", "threads": 1536, "blocks": 8, "registers": 32768,
    "registers_per_block": 32768, "registers_per_thread": 63, "shared_bytes": 48 * KIB,
}  # fmt: skip
_KEPLER = {
    "family": "Kepler", "threads": 2048, "blocks": 16, "shared_unit_bytes": 256, "fp32_lanes": 192,
}  # fmt: skip
_MAXWELL = {"threads": 2048, "blocks": 32, "shared_unit_bytes": 256}
_AMPERE = {"reserved_shared_bytes": KIB}
_100_KIB = {"shared_bytes": 100 * KIB, "opted_in_bytes_per_block": 99 * KIB}
_164_KIB = {"shared_bytes": 164 * KIB, "opted_in_bytes_per_block": 163 * KIB}
_228_KIB = {"shared_bytes": 228 * KIB, "opted_in_bytes_per_block": 227 * KIB}


def _table(*rows: dict[str, object]) -> tuple[Architecture, ...]:
    return tuple(msgspec.convert(row, Architecture) for row in rows)


#: Oldest first. A family's name means its first entry: Fermi is 2.0, not 2.1.
ARCHITECTURES: tuple[Architecture, ...] = _table(
    {"family": "G80", "chip": "G80", "compute_capability": (1, 0), "threads_per_block": 512,
     "threads": 768, "blocks": 8, "registers": 8192, "registers_per_block": 8192,
     "registers_per_thread": 124, "shared_bytes": 16 * KIB, "shared_bytes_per_block": 16 * KIB,
     "shared_unit_bytes": 512, "fp32_lanes": 8, "fp64_lanes": 0},
    _FERMI | {"chip": "GF100", "compute_capability": (2, 0), "fp32_lanes": 32, "fp64_lanes": 16},
    _FERMI | {"chip": "GF104", "compute_capability": (2, 1), "fp32_lanes": 48, "fp64_lanes": 4},
    _KEPLER | {"chip": "GK104", "compute_capability": (3, 0), "registers_per_thread": 63,
               "shared_bytes": 48 * KIB, "fp64_lanes": 8},
    _KEPLER | {"chip": "GK110", "compute_capability": (3, 5), "shared_bytes": 48 * KIB,
               "fp64_lanes": 64},
    _KEPLER | {"chip": "GK210", "compute_capability": (3, 7), "shared_bytes": 112 * KIB,
               "registers": 131072, "fp64_lanes": 64},
    _MAXWELL | {"family": "Maxwell", "chip": "GM107", "compute_capability": (5, 0),
                "shared_bytes": 64 * KIB, "fp32_lanes": 128, "fp64_lanes": 4},
    _MAXWELL | {"family": "Maxwell", "chip": "GM204", "compute_capability": (5, 2),
                "shared_bytes": 96 * KIB, "fp32_lanes": 128, "fp64_lanes": 4},
    _MAXWELL | {"family": "Pascal", "chip": "GP100", "compute_capability": (6, 0), "partitions": 2,
                "shared_bytes": 64 * KIB, "fp32_lanes": 64, "fp64_lanes": 32},
    _MAXWELL | {"family": "Pascal", "chip": "GP104", "compute_capability": (6, 1),
                "shared_bytes": 96 * KIB, "fp32_lanes": 128, "fp64_lanes": 4},
    _MAXWELL | {"family": "Volta", "chip": "GV100", "compute_capability": (7, 0),
                "shared_bytes": 96 * KIB, "opted_in_bytes_per_block": 96 * KIB, "fp32_lanes": 64,
                "fp64_lanes": 32, "tensor_fma": {"float16": 512}},
    {"family": "Turing", "chip": "TU102", "compute_capability": (7, 5), "threads": 1024,
     "blocks": 16, "shared_bytes": 64 * KIB, "opted_in_bytes_per_block": 64 * KIB,
     "shared_unit_bytes": 256, "fp32_lanes": 64, "fp64_lanes": 2, "tensor_fma": {"float16": 512}},
    _AMPERE | _164_KIB | {"family": "Ampere", "chip": "GA100", "compute_capability": (8, 0),
                          "threads": 2048, "blocks": 32, "fp32_lanes": 64, "fp64_lanes": 32,
                          "tensor_fma": {"float16": 1024, "bfloat16": 1024, "tf32": 512,
                                         "float64": 64}},
    _AMPERE | _100_KIB | {"family": "Ampere", "chip": "GA102", "compute_capability": (8, 6),
                          "threads": 1536, "blocks": 16, "fp32_lanes": 128, "fp64_lanes": 2},
    _AMPERE | _164_KIB | {"family": "Ampere", "chip": "GA10B", "compute_capability": (8, 7),
                          "threads": 1536, "blocks": 16, "fp32_lanes": 128, "fp64_lanes": 2},
    _AMPERE | _100_KIB | {"family": "Ada", "chip": "AD102", "compute_capability": (8, 9),
                          "threads": 1536, "blocks": 24, "fp32_lanes": 128, "fp64_lanes": 2},
    _AMPERE | _228_KIB | {"family": "Hopper", "chip": "GH100", "compute_capability": (9, 0),
                          "threads": 2048, "blocks": 32, "fp32_lanes": 128, "fp64_lanes": 64,
                          "tensor_fma": {"float16": 2048, "bfloat16": 2048, "tf32": 1024,
                                         "float64": 128}},
    _AMPERE | _228_KIB | {"family": "Blackwell", "chip": "GB100", "compute_capability": (10, 0),
                          "threads": 2048, "blocks": 32, "fp32_lanes": 128, "fp64_lanes": 64},
    _AMPERE | _228_KIB | {"family": "Blackwell", "chip": "GB110", "compute_capability": (10, 3),
                          "threads": 2048, "blocks": 32, "fp32_lanes": 128, "fp64_lanes": None},
    _AMPERE | _228_KIB | {"family": "Blackwell", "chip": "GB10B", "compute_capability": (11, 0),
                          "threads": 1536, "blocks": 24, "fp32_lanes": 128, "fp64_lanes": None},
    _AMPERE | _100_KIB | {"family": "Blackwell", "chip": "GB202", "compute_capability": (12, 0),
                          "threads": 1536, "blocks": 24, "fp32_lanes": 128, "fp64_lanes": 2},
    _AMPERE | _100_KIB | {"family": "Blackwell", "chip": "GB20B", "compute_capability": (12, 1),
                          "threads": 1536, "blocks": 24, "fp32_lanes": 128, "fp64_lanes": None},
)  # fmt: skip


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


def of_capability(capability: tuple[int, int] | None) -> Architecture | None:
    """The architecture of a device; None if it is not in the table."""
    matching = (a for a in ARCHITECTURES if a.compute_capability == capability)
    return next(matching, None)


def occupancy(
    architecture: Architecture,
    threads_per_block: int,
    *,
    registers: int | None,
    shared_bytes: int,
) -> Occupancy:
    """How many blocks of that many threads fit on a multiprocessor, and what limits them.

    `registers` are per thread; None if not known, and then they do not limit. `shared_bytes` are
    per block, static and dynamic. As in NVIDIA's occupancy calculator, all of a multiprocessor's
    memory that can be configured as shared memory is.
    """
    refused = _refusal(architecture, threads_per_block, registers, shared_bytes)
    if refused:
        return Occupancy(0, 0, 0.0, {}, (), refused)
    warps = -(-threads_per_block // WARP)
    by: dict[Limiter, int] = {
        "threads": architecture.warps // warps,
        "blocks": architecture.blocks,
    }
    if registers:
        in_partition = architecture.registers // architecture.partitions
        resident = in_partition // _registers_of_warp(registers)
        by["registers"] = resident * architecture.partitions // warps
    if shared_bytes:
        by["shared memory"] = architecture.shared_bytes // _rounded(
            shared_bytes + architecture.reserved_shared_bytes, architecture.shared_unit_bytes
        )
    blocks = min(by.values())
    limiters = tuple(resource for resource, most in by.items() if most == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / architecture.warps, by, limiters)


def _refusal(
    architecture: Architecture, threads: int, registers: int | None, shared_bytes: int
) -> str | None:
    """Why such a block cannot be launched; None if it can."""
    if threads > architecture.threads_per_block:
        return f"{threads:,} threads per block > {architecture.threads_per_block:,}"
    if shared_bytes > architecture.largest_shared_bytes:
        return f"{shared_bytes:,} bytes of shared memory > {architecture.largest_shared_bytes:,}"
    if not registers:
        return None
    if registers > architecture.registers_per_thread:
        return f"{registers} registers per thread > {architecture.registers_per_thread}"
    needed = _registers_of_block(architecture, -(-threads // WARP), registers)
    if needed > architecture.registers_per_block:
        return f"{needed:,} registers per block > {architecture.registers_per_block:,}"
    return None


def _registers_of_warp(registers: int) -> int:
    return _rounded(registers * WARP, _REGISTER_UNIT)


def _registers_of_block(architecture: Architecture, warps: int, registers: int) -> int:
    """The registers that a launch must have: as if its warps filled all partitions evenly.

    Pascal 6.0 has two partitions, but its launch limits are those of four, as on 6.1.
    """
    partitions = 4 if architecture.family == "Pascal" else architecture.partitions
    return _registers_of_warp(registers) * _rounded(warps, partitions)


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit
