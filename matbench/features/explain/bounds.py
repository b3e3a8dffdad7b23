"""What limits a case: its rate and its traffic, compared with the device's measured limits."""

from __future__ import annotations

from matbench.analysis.limits import held_by_cache
from matbench.features.explain.record import Bottleneck, BoundBy, HardwareCounters, Limits, Traffic
from matbench.model import DeviceInfo
from matbench.records.outcome import Outcome

#: A case that reaches this share of a limit is bound by it.
BOUND_SHARE = 0.7
#: Reads alone can exceed the bandwidth of a copy, by this factor at most.
_MOST_OF_A_COPY = 1.2


def bound(
    outcome: Outcome | None,
    traffic: Traffic,
    limits: Limits | None,
    device: DeviceInfo | None,
    counters: HardwareCounters | None = None,
    *,
    has_own_limit: bool = True,
) -> Bottleneck:
    """The limit that a measured case reaches, and its share of each limit.

    `has_own_limit`: its arithmetic is limited by the rate of multiply-adds, which is not so for
    tensor cores and integers.
    """
    if outcome is None or device is None or limits is None or not outcome.median_ns:
        return Bottleneck(by="not known")
    seconds = outcome.median_ns * 1e-9
    copied_bytes = limits.copy_bytes_per_s * seconds
    has_rate = has_own_limit and traffic.operations > 0
    computed = traffic.operations / seconds / limits.fma_flop_per_s if has_rate else None
    least = traffic.least_bytes / copied_bytes
    dram_bytes = None if counters is None else dram_traffic_bytes(counters)
    counted = None if dram_bytes is None else dram_bytes / copied_bytes
    cached = held_by_cache(device, traffic.least_bytes, outcome.mode)
    idle = 0
    if device.kind == "gpu" and (launch := outcome.case.launch) is not None:
        idle = max(0, device.limits["multiprocessors"] - launch.blocks)
    return Bottleneck(
        by=_by(computed or 0.0, least, counted, cached),
        computed_share=computed,
        least_share=least,
        modelled_share=None if traffic.bytes is None else traffic.bytes / copied_bytes,
        counted_share=counted,
        idle_multiprocessors=idle,
    )


def _by(computed: float, least: float, counted: float | None, cached: bool) -> BoundBy:
    if computed > 1:
        return "doubtful limit"
    if computed >= BOUND_SHARE:
        return "arithmetic"
    if counted is not None:
        return "memory" if counted >= BOUND_SHARE else "neither"
    if least >= BOUND_SHARE and cached:
        return "cache"
    return "memory" if BOUND_SHARE <= least <= _MOST_OF_A_COPY else "neither"


def dram_traffic_bytes(counters: HardwareCounters) -> float | None:
    """The bytes read and written; None if either was not counted."""
    read, written = counters.dram_read_bytes, counters.dram_written_bytes
    return None if read is None or written is None else read + written
