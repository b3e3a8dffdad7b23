"""The limits of clocks and caches, and what NVIDIA's multiprocessors compute per clock.

The figures are NVIDIA's own:

- threads, and results per clock: *CUDA C++ Programming Guide*, tables "Technical Specifications per
  Compute Capability" and "Throughput of Native Arithmetic Instructions" (release 13.0 from 7.5 on,
  12.0 for 5.0 to 7.0, 8.0 for 2.x and 3.x, 4.0 for 1.0);
- multiply-adds per clock of a multiprocessor's tensor cores: the whitepapers on V100 (2017),
  Turing (2018), A100 (2020), GA102 (2020), H100 (2022) and Ada (2022), of the last three divided by
  clock and multiprocessors. For other architectures and precisions the rate depends on the product
  or is not published, so none is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from matbench.model import EIGHT_BITS, Arithmetic, DeviceInfo, Precision, Storage
from matbench.records.outcome import CaseRecord, TimingMode

WARP = 32


class Multiprocessor(msgspec.Struct, frozen=True):
    """That of one compute capability: its `threads`, and multiply-adds per clock.

    `fp32_lanes` and `fp64_lanes` are those of the product with the most (None: not looked up),
    `tensor_fma` those of the tensor cores, by the precision of inputs.
    """

    compute_capability: tuple[int, int]
    threads: int
    fp32_lanes: int
    fp64_lanes: int | None = None
    tensor_fma: dict[Precision, int] = {}

    @property
    def warps(self) -> int:
        return self.threads // WARP


_TABLE = msgspec.toml.decode(Path(__file__).with_name("multiprocessors.toml").read_bytes())
#: Those of devices in the table, by compute capability.
MULTIPROCESSORS: Mapping[tuple[int, int] | None, Multiprocessor] = {
    one.compute_capability: one for one in msgspec.convert(_TABLE["rows"], list[Multiprocessor])
}


def held_by_cache(info: DeviceInfo, nbytes: int, timing_mode: TimingMode | None) -> bool:
    """Whether that many bytes may have been in the cache when the samples were taken: buffers that
    rotate fill that of a GPU twice."""
    emptied = timing_mode == "cold" or (timing_mode == "rotating" and info.kind == "gpu")
    return nbytes < _cache_bytes(info) and not emptied


def _cache_bytes(info: DeviceInfo) -> int:
    """The size of the last-level cache; 0 if it is not known."""
    cache_bytes = info.properties.get("last-level cache (bytes)")
    return cache_bytes if isinstance(cache_bytes, int) else 0


#: How far below the minimum time a sample may be: measured limits are not exact either.
_ALLOWANCE = 0.05


class Bandwidth(NamedTuple):
    """What was measured on a device; copies count bytes read and written."""

    copy_bytes_per_s: float
    read_bytes_per_s: float


class Floor(NamedTuple):
    """The minimum time of a launch, and the reason for it."""

    ns: float
    why: str


def floor_of_bytes(
    read_bytes: int, written_bytes: int, info: DeviceInfo, measured: Bandwidth
) -> Floor:
    """The time to read each input once from memory, and to write what the cache cannot hold.

    Only valid for a cold cache.
    """
    written = max(0, written_bytes - _cache_bytes(info))
    ns = (read_bytes / measured.read_bytes_per_s + written / measured.copy_bytes_per_s) * 1e9
    rate = measured.read_bytes_per_s
    return Floor(ns, f"to read {read_bytes:,} bytes at the {rate / 1e12:.3g} TB/s measured here")


#: Of float16; of other precisions up to 16 bits, none is faster.
_FIRST_TENSOR_CORES = (7, 0)


def floor_of_operations(
    operations: int, info: DeviceInfo, sm_mhz: float | None, storage: Storage = "float32"
) -> Floor | None:
    """The time of the operations on the fastest possible unit, tensor cores included.

    Units of 8-bit operands are possible if those stored have 8 bits: wider ones would have to be
    split into parts with more products than these units are faster by. None without a clock, or if
    the fastest unit is not in the table of architectures.
    """
    fastest: Precision = "int8" if storage in EIGHT_BITS else "float16"
    if fastest == "float16" and (info.compute_capability or (0, 0)) < _FIRST_TENSOR_CORES:
        fastest = "float32"
    rate = of_clock(info, sm_mhz, fastest)
    if rate is None or not operations:
        return None
    text = f"for {operations:,} operations at its fastest unit's {rate / 1e12:.4g} TFLOP/s"
    return Floor(operations / rate * 1e9, text)


#: More cycles, and more of each kind of work in a cycle, than a core of any CPU reaches: 64 float32
#: operations and loads of 128 bytes are usual for the widest vectors. Virtual machines hide clocks.
_CORE_HZ = 6e9
_CORE_OPERATIONS = 128
_CORE_BYTES = 256


def floors_of_cpu(operations: int, nbytes: int, info: DeviceInfo) -> list[Floor]:
    """The time of the operations, and to move the bytes, on a CPU faster than any, from whichever
    cache."""
    cores = info.limits["multiprocessors"]
    most = (operations, _CORE_OPERATIONS, "operations"), (nbytes, _CORE_BYTES, "bytes")
    return [
        Floor(
            count / (cores * _CORE_HZ * per_cycle) * 1e9,
            f"for {count:,} {what} on {cores} cores, with {per_cycle} a cycle at 6 GHz",
        )
        for count, per_cycle, what in most
    ]


def impossible(median_ns: float, floors: Iterable[Floor | None]) -> str | None:
    """Why no launch can be that fast, in words; None if one can."""
    for floor in floors:
        if floor is not None and not median_ns >= floor.ns * (1 - _ALLOWANCE):
            least, median = floor.ns / 1e3, median_ns / 1e3
            return f"{median:,.4g} µs is impossible: it takes at least {least:,.4g} µs {floor.why}"
    return None


def of_clock(
    info: DeviceInfo, sm_mhz: float | None, precision: Precision = "float32"
) -> float | None:
    """Operations per second that the SM clock allows: multiprocessors × lanes × 2 × clock.

    Float32 on CUDA cores, other precisions on tensor cores; float64 on CUDA cores if tensor cores
    do not support it. None without a clock, or if the table of architectures does not have the
    device or the rate.
    """
    architecture = MULTIPROCESSORS.get(info.compute_capability)
    if architecture is None or sm_mhz is None:
        return None
    ordinary = {"float32": architecture.fp32_lanes, "float64": architecture.fp64_lanes}
    lanes = architecture.tensor_fma.get(precision) or ordinary.get(precision)
    units = info.limits.get("multiprocessors")
    return units * lanes * 2 * sm_mhz * 1e6 if units and lanes else None


def of_case(info: DeviceInfo, sm_mhz: float | None, case: CaseRecord) -> float | None:
    """Operations per second that the clock allows for the arithmetic of a case.

    A kernel that computes each product as three has a third of the rate. Without `arithmetic`, a
    product counts as one in the kernel's precision; with an error constant, the kernel splits its
    inputs, and the number of products is not known.
    """
    arithmetic = case.arithmetic
    if arithmetic is None:
        if case.claims.error_constant > 0:
            return None
        arithmetic = Arithmetic(1, case.claims.precision)
    most = of_clock(info, sm_mhz, arithmetic.precision)
    return most / arithmetic.products if most else None
