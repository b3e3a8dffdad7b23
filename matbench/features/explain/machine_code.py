"""What a kernel's machine code shows about one launch, and the highest speed that it allows."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping

from matbench import workloads
from matbench.features.explain.architectures import Architecture
from matbench.features.explain.disassembly import Disassembly
from matbench.features.explain.occupancy import occupancy
from matbench.features.explain.record import HotLoop, MachineCode, NotDerived
from matbench.features.explain.sass import flow, listing, waits
from matbench.features.explain.sass.pipes import RATES, SCHEDULERS
from matbench.features.explain.sass.tally import Tally, tally
from matbench.model import Case, Launch

ISSUE = "issue slots"
BANKS = "register banks"
MEMORY = "shared memory and L1"
L1 = "L1 cache"
SHARED = "shared memory"
TENSOR = "tensor cores"
#: Where a launch's geometry is in constant bank 0: blocks of threads, then the grid. NVIDIA does
#: not document this; it is what nvcc 13.0 reads `blockDim` and `gridDim` from.
_GEOMETRY = {7: (0x0, 0xC), 8: (0x0, 0xC), 9: (0x0, 0xC), 10: (0x360, 0x370), 12: (0x360, 0x370)}
#: The blocks of a cluster, in the same bank.
_CLUSTER_BLOCKS = {9: 0x188}
#: Addresses given to the buffers: far apart, and aligned like memory from an allocator.
_BUFFER_BYTES = 1 << 40


def machine_code(
    code: Disassembly, case: Case, architecture: Architecture, multiprocessors: int | None = None,
    sm_mhz: float | None = None,
) -> MachineCode:  # fmt: skip
    """What a case's machine code shows about its launch, which it must have.

    The last two arguments are those of a device. `ListingError` if the listing cannot be read.
    """
    launch, capability = case.launch, architecture.compute_capability
    assert launch is not None
    function = listing.function(code.listing, code.entry)
    graph = flow.code(function)
    constants = _constants(function, case, launch, capability[0])
    rates = dict[str, int](architecture.tensor_fma.items())
    totals = tally(graph, launch.block, launch.grid, constants, rates)
    used = demand(totals, capability)

    loop = None
    if totals.passes:
        of_a_pass = {name: count / totals.passes for name, count in totals.in_loop.items()}
        loop = HotLoop(
            first=min(totals.loop),
            last=max(graph.graph[start].instructions[-1].address for start in totals.loop),
            passes=totals.passes,
            instructions=_most_first(of_a_pass),
            share=sum(totals.in_loop.values()) / totals.instructions,
        )

    loads, stores = totals.cost("global loads"), totals.cost("global stores")
    shared, cached = totals.cost("shared"), totals.cost("global")
    warps = totals.warps * launch.blocks
    are_known = all(missing.what != "addresses" for missing in totals.unknown)
    are_bytes_known = totals.is_complete and not totals.has_bulk and are_known

    operations = workloads.workload_of(case.problem).operations(case.problem)
    resident = block_cycles = per_cycle = least_cycles = least_ns = None
    if used and totals.is_complete:
        memory = launch.shared_bytes + (code.resources.static_shared_bytes or 0)
        threads, registers = launch.threads_per_block, code.resources.registers
        resident = occupancy(architecture, threads, registers=registers, shared_bytes=memory).blocks
        if multiprocessors:
            resident = min(resident, -(-launch.blocks // multiprocessors))
        block_cycles = max(*used.values(), _waiting(totals, used, resident, capability))
    if block_cycles:
        per_cycle = operations / launch.blocks / block_cycles or None
    if block_cycles and multiprocessors:
        # The multiprocessor with the most blocks finishes last.
        least_cycles = -(-launch.blocks // multiprocessors) * block_cycles
        least_ns = least_cycles / sm_mhz * 1e3 if sm_mhz else None
    return MachineCode(
        architecture=code.architecture,
        spilled_bytes=code.resources.spilled_bytes,
        instructions=_most_first(totals.classes),
        loop=loop,
        cycles=used,
        block_cycles=block_cycles,
        resident_blocks=resident,
        operations_per_cycle=per_cycle,
        peak_share=per_cycle / (2 * architecture.fp32_lanes) if per_cycle else None,
        multiprocessors=multiprocessors if least_cycles else None,
        sm_mhz=sm_mhz if least_cycles else None,
        least_cycles=least_cycles,
        least_ns=least_ns,
        ceiling_operations_per_s=operations / least_ns * 1e9 if least_ns and operations else None,
        global_load_bytes=warps * loads.requested_bytes if are_bytes_known else None,
        global_store_bytes=warps * stores.requested_bytes if are_bytes_known else None,
        global_sectors=warps * (loads.sectors + stores.sectors) if are_bytes_known else None,
        shared_cycles=totals.warps * shared.cycles,
        shared_least_cycles=totals.warps * shared.least,
        global_cycles=totals.warps * cached.cycles,
        global_least_cycles=totals.warps * cached.least,
        not_derived=totals.unknown + (() if used else (NotDerived("cycles", architecture.name),)),
    )


def demand(totals: Tally, capability: tuple[int, int]) -> dict[str, float]:
    """Cycles of a multiprocessor that one block takes of each resource, the most first.

    Empty if the rates of this compute capability are not known.
    """
    rates = RATES.get(capability)
    if rates is None:
        return {}
    n = Counter(totals.classes)
    shared, *cached = (totals.cost(kind).cycles for kind in ("shared", "global", "local"))
    per_warp = {
        ISSUE: totals.instructions / SCHEDULERS,
        BANKS: max(totals.bank_reads) / SCHEDULERS,
        "float32 pipe": (n["float32"] + n["integer multiply"]) / rates.fma,
        "integer multiplier": n["integer multiply"] / rates.imad,
        "integer pipe": n["integer and logic"] / rates.alu,
        "float64 pipe": n["float64"] / rates.fp64,
        "float16 pipe": n["float16"] / rates.half,
        "special functions": n["special and conversion"] / rates.xu,
        TENSOR: totals.tensor_cycles,
        SHARED if shared >= sum(cached) else L1: shared + sum(cached),
    }
    return _most_first({name: totals.warps * value for name, value in per_warp.items() if value})


def _most_first(amounts: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(amounts.items(), key=lambda item: -item[1]))


def busy(code: MachineCode) -> dict[str, float]:
    """The share of the time at the ceiling for which each resource is busy, the most first."""
    most = code.block_cycles or max(code.cycles.values(), default=0.0)
    return {name: cycles / most for name, cycles in code.cycles.items()}


def _waiting(
    totals: Tally, used: Mapping[str, float], resident: int, capability: tuple[int, int]
) -> float:
    """Cycles of a multiprocessor that a block takes if waits in the hot loop are counted too."""
    known = capability in waits.LATENCIES and not totals.tensor_cycles  # their waits are others
    if not known or not resident or not totals.path:
        return 0.0
    path = waits.steps(totals.path, totals.costs, capability)
    a_pass = waits.pass_cycles(path, totals.warps, resident) / resident
    rest = max(0.0, 1 - len(path) * totals.passes / totals.instructions)
    return a_pass * totals.passes + rest * used[ISSUE]


def _constants(
    function: listing.CodeListing, case: Case, launch: Launch, generation: int
) -> dict[int, int]:
    """Constant bank 0 as the launch fills it: 4 bytes by offset."""
    constants: dict[int, int] = {}
    sides = launch.block, launch.grid
    for start, lengths in zip(_GEOMETRY.get(generation, ()), sides, strict=False):
        constants.update({start + 4 * axis: length for axis, length in enumerate(lengths)})
    if generation in _CLUSTER_BLOCKS:
        constants[_CLUSTER_BLOCKS[generation]] = function.cluster_blocks
    given = zip(case.arguments, case.kernel.parameters, strict=False)
    for index, (value, parameter) in enumerate(given):
        offset, nbytes = function.parameters.get(index, (0, 0))
        if nbytes not in (4, 8):
            continue
        if parameter.pointer or not isinstance(value, int | float):
            number = (index + 1) * _BUFFER_BYTES
        elif parameter.type in ("float", "double"):
            number = int.from_bytes(struct.pack("<f" if nbytes == 4 else "<d", value), "little")
        else:
            number = int(value)
        constants[offset] = number & 0xFFFFFFFF
        if nbytes == 8:
            constants[offset + 4] = number >> 32 & 0xFFFFFFFF
    return constants
