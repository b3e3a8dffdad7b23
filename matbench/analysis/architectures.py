"""NVIDIA's architectures: what a multiprocessor holds, and what it computes per clock.

The figures are NVIDIA's own:

- limits of blocks and multiprocessors, and results per clock: *CUDA C++ Programming Guide*,
  tables "Technical Specifications per Compute Capability" and "Throughput of Native Arithmetic
  Instructions" (release 13.0 from 7.5 on, 12.0 for 5.0 to 7.0, 8.0 for 2.x and 3.x, 4.0 for 1.0);
  from 6.0 on also `cuda::arch_traits` of libcu++;
- allocation units of registers and shared memory, and partitions of the register file:
  `cuda_occupancy.h` of the CUDA toolkit (13.0, and 7.0 for 1.0 and 2.x);
- multiply-adds per clock of a multiprocessor's tensor cores: the whitepapers on V100 (2017),
  Turing (2018), A100 (2020), GA102 (2020), H100 (2022) and Ada (2022), of the last three divided by
  clock and multiprocessors. For other architectures and precisions the rate depends on the product
  or is not published, so none is given.
"""

from __future__ import annotations

import msgspec

from matbench.model import Precision

WARP = 32
KIB = 1024


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
     "shared_unit_bytes": 256, "fp32_lanes": 64, "fp64_lanes": 2,
     "tensor_fma": {"float16": 512, "int8": 1024}},
    _AMPERE | _164_KIB | {"family": "Ampere", "chip": "GA100", "compute_capability": (8, 0),
                          "threads": 2048, "blocks": 32, "fp32_lanes": 64, "fp64_lanes": 32,
                          "tensor_fma": {"float16": 1024, "bfloat16": 1024, "tf32": 512,
                                         "float64": 64, "int8": 2048}},
    _AMPERE | _100_KIB | {"family": "Ampere", "chip": "GA102", "compute_capability": (8, 6),
                          "threads": 1536, "blocks": 16, "fp32_lanes": 128, "fp64_lanes": 2,
                          "tensor_fma": {"int8": 1024}},
    _AMPERE | _164_KIB | {"family": "Ampere", "chip": "GA10B", "compute_capability": (8, 7),
                          "threads": 1536, "blocks": 16, "fp32_lanes": 128, "fp64_lanes": 2},
    _AMPERE | _100_KIB | {"family": "Ada", "chip": "AD102", "compute_capability": (8, 9),
                          "threads": 1536, "blocks": 24, "fp32_lanes": 128, "fp64_lanes": 2,
                          "tensor_fma": {"int8": 1024}},
    _AMPERE | _228_KIB | {"family": "Hopper", "chip": "GH100", "compute_capability": (9, 0),
                          "threads": 2048, "blocks": 32, "fp32_lanes": 128, "fp64_lanes": 64,
                          "tensor_fma": {"float16": 2048, "bfloat16": 2048, "tf32": 1024,
                                         "float64": 128, "e4m3": 4096, "e5m2": 4096,
                                         "int8": 4096}},
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


def of_capability(capability: tuple[int, int] | None) -> Architecture | None:
    """The architecture of a device; None if it is not in the table."""
    matching = (a for a in ARCHITECTURES if a.compute_capability == capability)
    return next(matching, None)
