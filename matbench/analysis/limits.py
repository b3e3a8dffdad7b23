"""What a device allows by its clock and its caches, from the table of architectures."""

from __future__ import annotations

from matbench.analysis import architectures
from matbench.model import Arithmetic, DeviceInfo, Precision
from matbench.records.outcome import CaseRecord, TimingMode


def held_by_cache(info: DeviceInfo, nbytes: int, timing_mode: TimingMode | None) -> bool:
    """Whether samples that left the cache as it was may have found that many bytes in it."""
    cache_bytes = info.properties.get("last-level cache (bytes)")
    return isinstance(cache_bytes, int) and nbytes < cache_bytes and timing_mode != "cold"


def of_clock(
    info: DeviceInfo, sm_mhz: float | None, precision: Precision = "float32"
) -> float | None:
    """Operations per second that the SM clock allows: multiprocessors × lanes × 2 × clock.

    Float32 by the ordinary lanes, other precisions by the tensor cores. None without a clock, and
    where the table of architectures does not know the device or the rate.
    """
    architecture = architectures.of_capability(info.compute_capability)
    if architecture is None or sm_mhz is None:
        return None
    float32 = precision == "float32"
    lanes = architecture.fp32_lanes if float32 else architecture.tensor_fma.get(precision)
    units = info.limits.get("multiprocessors")
    return units * lanes * 2 * sm_mhz * 1e6 if units and lanes else None


def of_case(info: DeviceInfo, sm_mhz: float | None, case: CaseRecord) -> float | None:
    """Operations per second that the clock allows for the arithmetic of a case.

    A kernel that takes three products for one has a third of their rate. Without `arithmetic` it
    has one in its precision; but one with an error constant splits its inputs, and how it then
    multiplies is not known.
    """
    own = case.arithmetic
    if own is None:
        if case.claims.error_constant > 0:
            return None
        own = Arithmetic(1, case.claims.precision)
    most = of_clock(info, sm_mhz, own.precision)
    return most / own.products if most else None
