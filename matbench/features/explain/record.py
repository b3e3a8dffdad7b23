"""What determines the speed of a case: its model, its occupancy, and its measurements.

Figures from front matter are called modelled, those from a clock or a counter measured. These
records hold no prose: `features.explain.view` puts them into words.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from matbench.model import Count
from matbench.records.outcome import Amount, CaseRecord, Factor, Outcome, Positive

#: What may limit the blocks on a multiprocessor, in the order in which ties are listed.
Limiter = Literal["threads", "blocks", "registers", "shared memory"]
#: What limits a case, as far as the figures show. `cache`: memory would, but the last-level cache
#: holds all of the data.
BoundBy = Literal["arithmetic", "memory", "cache", "neither", "doubtful limit", "not known"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The highest rates measured on a device; none is taken from a data sheet.

    `copy_bytes_per_s` counts bytes read and written, `read_bytes_per_s` those of reading
    alone. `fma_flop_per_s` is float32, a multiply-add counting as two operations.
    `sm_mhz` is the clock right after that, if the device reports it.
    """

    device: str
    driver: str
    copy_bytes_per_s: Factor
    read_bytes_per_s: Factor
    fma_flop_per_s: Factor
    sm_mhz: Count | None
    when: str


class HardwareCounters(msgspec.Struct, frozen=True, kw_only=True):
    """The hardware counters of one launch; None if this GPU has no such counter.

    `achieved_occupancy` is the share of a multiprocessor's warps that were active, on average.
    `busy` is the share of its peak at which each resource worked, by the names of `MachineCode`.
    """

    dram_read_bytes: Amount | None = None
    dram_written_bytes: Amount | None = None
    shared_bytes: Amount | None = None
    bank_conflicts: Amount | None = None
    achieved_occupancy: Amount | None = None
    busy: dict[str, Amount] = {}

    @property
    def dram_bytes(self) -> float | None:
        """The bytes read and written; None if either was not counted."""
        read, written = self.dram_read_bytes, self.dram_written_bytes
        return None if read is None or written is None else read + written


class Occupancy(msgspec.Struct, frozen=True):
    """How many blocks a multiprocessor holds at once; `by` has each resource's own limit.

    `by` omits resources that are unknown or unused. `share` is resident warps over the most that a
    multiprocessor can hold. If the block cannot be launched at all, `refused` says why.
    """

    blocks: Count
    warps: Count
    share: Amount
    by: dict[Limiter, Count]
    limiters: tuple[Limiter, ...]
    refused: str | None = None


class Traffic(msgspec.Struct, frozen=True):
    """Modelled memory traffic: elements that all threads load and store, ignoring caches.

    `least_bytes` reads each input once and writes the output once. Intensities are operations per
    byte of global memory; no kernel exceeds `least_intensity`. `claims` is front matter's
    `[model]`. Without `global_loads` in it, or if the modelled traffic is below the minimum, only
    the minimum is given; in the latter case `claimed_bytes` is the modelled traffic. `is_derived`:
    loads, stores and bytes were counted in the machine code.
    """

    operations: Count
    least_bytes: Positive
    least_intensity: Amount
    loads: Amount | None = None
    stores: Amount | None = None
    bytes: Amount | None = None
    intensity: Amount | None = None
    shared_loads: Amount | None = None
    claims: dict[str, str] = {}
    claimed_bytes: Amount | None = None
    is_derived: bool = False

    def __post_init__(self) -> None:
        if self.shared_loads is not None and "shared_loads" not in self.claims:
            raise ValueError("shared loads that nothing claims")


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """How many blocks of one set of parameters fit on a multiprocessor of one architecture.

    `architecture` is None for a device that is not in the table. `here` is true for the device in
    use: there, `driver_blocks` is the driver's count of resident blocks. `registers` and
    `shared_bytes` are None without a build; they are then assumed not to limit. `reason` says why
    it cannot be launched.
    """

    architecture: str | None
    here: bool = False
    params: dict[str, int]
    threads_per_block: Count | None = None
    registers: Count | None = None
    shared_bytes: Count | None = None
    occupancy: Occupancy | None = None
    driver_blocks: Count | None = None
    reason: str | None = None


class HotLoop(msgspec.Struct, frozen=True, kw_only=True):
    """The innermost loop in which a kernel's warps carry out most of their instructions.

    `first` and `last` are addresses in the machine code; `passes` and `instructions` (by class, of
    one pass) are those of an average warp; `share` is that of all its instructions.
    """

    first: Count
    last: Count
    passes: Amount
    instructions: dict[str, Amount]
    share: Amount


class NotDerived(msgspec.Struct, frozen=True):
    """Something that follows from machine code only in part: what, and where.

    - `addresses` of the instruction `name` at `address`;
    - `branch`: where the branch at `address` goes, which depends on loaded values;
    - `target`: the branch at `address` goes to a computed address;
    - `passes` of the loop at `address`, which are too many to follow, or without end;
    - `opcode`: what an instruction `name` takes; `rate`: how fast tensor cores carry it out;
    - `cycles`: no rates of the architecture `name` are known.
    """

    what: Literal["addresses", "branch", "target", "passes", "opcode", "rate", "cycles"]
    name: str = ""
    address: Count = 0


class MachineCode(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine code of one architecture shows, and the highest speed that it allows.

    Warps of the block in the middle of the grid were followed. `instructions` are those of an
    average warp, by class. `cycles` are those of a multiprocessor that one block takes of each
    resource, the most first, and `block_cycles` those at the ceiling: more if `resident_blocks` at
    a time cannot keep any resource busy. `least_cycles` are those of a launch on the multiprocessor
    that gets most blocks. `peak_share` is the share of the multiprocessor's multiply-adds that
    this allows. `ceiling_operations_per_s` and `least_ns` are at `sm_mhz`, for a device's
    `multiprocessors`. Bytes are those that all threads of the launch request, sectors 32 bytes
    each; None if addresses could not be derived. `shared_cycles` are those of shared memory for one
    block, and `shared_least_cycles` without bank conflicts. `not_derived` says what is missing.
    """

    architecture: str
    spilled_bytes: Count | None = None
    instructions: dict[str, Amount]
    loop: HotLoop | None = None
    cycles: dict[str, Amount] = {}
    block_cycles: Amount | None = None
    resident_blocks: Count | None = None
    least_cycles: Amount | None = None
    operations_per_cycle: Amount | None = None
    peak_share: Amount | None = None
    multiprocessors: Count | None = None
    sm_mhz: Amount | None = None
    ceiling_operations_per_s: Amount | None = None
    least_ns: Amount | None = None
    global_load_bytes: Amount | None = None
    global_store_bytes: Amount | None = None
    global_sectors: Amount | None = None
    shared_cycles: Amount = 0.0
    shared_least_cycles: Amount = 0.0
    global_cycles: Amount = 0.0
    global_least_cycles: Amount = 0.0
    not_derived: tuple[NotDerived, ...] = ()

    def __post_init__(self) -> None:
        shared_takes_none = self.shared_cycles and not self.shared_least_cycles
        if shared_takes_none or (self.global_cycles and not self.global_least_cycles):
            raise ValueError("cycles of accesses that take none")


class Bottleneck(msgspec.Struct, frozen=True, kw_only=True):
    """What limits a case, and the shares that show it.

    `computed_share` is its rate over that of multiply-adds alone; `least_share` and
    `modelled_share` are the bandwidth of the minimum and the modelled traffic over a copy's;
    `counted_share` is that of the DRAM traffic that was counted. `idle_multiprocessors` get no
    block of the launch.
    """

    by: BoundBy
    computed_share: Amount | None = None
    least_share: Amount | None = None
    modelled_share: Amount | None = None
    counted_share: Amount | None = None
    idle_multiprocessors: Count = 0


class Explanation(msgspec.Struct, frozen=True, kw_only=True, tag="explanation", tag_field="type"):
    """The explanation of one case. Without an `outcome` nothing was measured.

    `whole_numbers`: its arithmetic is on integers, for which no limit is measured;
    `tensor_cores`: its source uses them, and their limit is not measured either.
    """

    case: CaseRecord
    outcome: Outcome | None = None
    tensor_cores: bool = False
    whole_numbers: bool = False
    traffic: Traffic
    operations_per_s: Amount | None = None
    limits: Limits | None = None
    clock_flop_per_s: Amount | None = None
    sm_mhz: Amount | None = None
    fits: tuple[Fit, ...] = ()
    counters: HardwareCounters | None = None
    code: MachineCode | None = None
    bound: Bottleneck
