"""Why a case is as fast as it is: what its file claims, what fits, and what was measured.

What front matter claims is called modelled, what a clock or a counter gave is called measured, and
no figure is both. There is no prose in these records: `show.explanation` puts them into words.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from matbench.records.outcome import CaseRecord, Outcome

#: What may keep more blocks from a multiprocessor, in the order in which ties are told.
Limiter = Literal["threads", "blocks", "registers", "shared memory"]
#: What holds a case back, as far as the figures tell. `cache`: memory would, but the last-level
#: cache holds everything. `tensor cores`, `integers`: its own arithmetic limit is not measured.
BoundBy = Literal["arithmetic", "memory", "cache", "neither", "doubtful limit", "not known"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The best that was measured on a device: nothing here is taken from a data sheet.

    `copy_bytes_per_s` counts bytes read and written; `read_bytes_per_s` is reading alone (None in
    older records). `fma_flop_per_s` is float32, a multiply-add as two operations. `sm_mhz` is the
    clock right after it, where one is told.
    """

    device: str
    driver: str
    copy_bytes_per_s: float
    fma_flop_per_s: float
    sm_mhz: int | None
    when: str
    read_bytes_per_s: float | None = None


class HardwareCounters(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted in one launch; None where this GPU has no such counter.

    `achieved_occupancy` is the share of a multiprocessor's warps that were active, on average.
    """

    dram_read_bytes: float | None = None
    dram_written_bytes: float | None = None
    shared_bytes: float | None = None
    bank_conflicts: float | None = None
    achieved_occupancy: float | None = None


class Occupancy(msgspec.Struct, frozen=True):
    """How many blocks a multiprocessor holds at once; `by` has what each resource alone allows.

    `by` leaves out what was not known or is not used. `share` is resident warps over the most that
    there can be. With `refused` the block cannot be launched at all, and that is why.
    """

    blocks: int
    warps: int
    share: float
    by: dict[Limiter, int]
    limiters: tuple[Limiter, ...]
    refused: str | None = None


class Traffic(msgspec.Struct, frozen=True):
    """Memory traffic as modelled: elements that all threads load and store, caches left aside.

    `least_bytes` reads each input once and writes the output once. Intensities are operations per
    byte of global memory; no kernel has a higher one than `least_intensity`. `claims` is front
    matter's `[model]`. Without `global_loads` in it only the least is modelled; likewise where the
    claim is less than the least possible, and then `claimed_bytes` is that claim.
    """

    operations: int
    least_bytes: int
    least_intensity: float
    loads: float | None = None
    stores: float | None = None
    bytes: float | None = None
    intensity: float | None = None
    shared_loads: float | None = None
    claims: dict[str, str] = {}
    claimed_bytes: float | None = None


class Width(msgspec.Struct, frozen=True, kw_only=True):
    """One set of parameters on one architecture: what fits on a multiprocessor, and what it costs.

    `architecture` is None for a device that the table does not know, `here` true for the one at
    hand: only there is something measured, and `driver_blocks` the driver's own count of resident
    blocks. `registers` and `shared_bytes` are None where no build told them; the occupancy then
    takes them as not limiting. `reason` says why a width is illegal, wrong or failed.
    """

    architecture: str | None
    here: bool = False
    params: dict[str, int]
    threads_per_block: int | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    occupancy: Occupancy | None = None
    driver_blocks: int | None = None
    modelled_loads: float | None = None
    measured_ns: float | None = None
    reason: str | None = None


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds a case, and the shares that say so.

    `computed_share` is its rate over that of multiply-adds alone; `least_share` and
    `modelled_share` are the bandwidth that the least and the modelled traffic would take, over a
    copy's; `counted_share` is that of the DRAM traffic which was counted.
    `idle_multiprocessors` have no block of the launch.
    """

    by: BoundBy
    computed_share: float | None = None
    least_share: float | None = None
    modelled_share: float | None = None
    counted_share: float | None = None
    idle_multiprocessors: int = 0


class Explanation(msgspec.Struct, frozen=True, kw_only=True, tag="explanation", tag_field="type"):
    """All that is known of one case. Without an `outcome` nothing was measured.

    `whole_numbers`: its arithmetic is on integers, for which no limit is measured;
    `tensor_cores`: its source asks for them, whose own limit is not measured either.
    """

    case: CaseRecord
    outcome: Outcome | None = None
    tensor_cores: bool = False
    whole_numbers: bool = False
    traffic: Traffic
    operations_per_s: float | None = None
    limits: Limits | None = None
    clock_flop_per_s: float | None = None
    sm_mhz: float | None = None
    widths: tuple[Width, ...] = ()
    counters: HardwareCounters | None = None
    bound: Bound
