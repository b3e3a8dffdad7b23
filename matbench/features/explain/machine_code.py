"""What a kernel's machine code shows about one launch, and the highest speed that it allows."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import msgspec

from matbench import workloads
from matbench.analysis.architectures import Architecture
from matbench.features.explain.occupancy import occupancy
from matbench.features.explain.other_devices import limits
from matbench.features.explain.record import HotLoop, MachineCode, NotDerived
from matbench.features.explain.sass import flow, listing, prediction, waits
from matbench.features.explain.sass.memory import Cost
from matbench.features.explain.sass.tally import Tally, tally
from matbench.kernelfile import expressions
from matbench.model import Case, Launch, Resources

#: Where a launch's geometry is in constant bank 0: blocks of threads, then the grid. NVIDIA does
#: not document this; it is what nvcc 13.0 reads `blockDim` and `gridDim` from.
_GEOMETRY = {7: (0x0, 0xC), 8: (0x0, 0xC), 9: (0x0, 0xC), 10: (0x360, 0x370), 12: (0x360, 0x370)}
#: The blocks of a cluster, in the same bank.
_CLUSTER_BLOCKS = {9: 0x188}
#: Addresses given to the buffers: far apart, and aligned like memory from an allocator.
_BUFFER_BYTES = 1 << 40


def machine_code(
    disassembled: tuple[str, str, str],
    case: Case,
    architecture: Architecture,
    *,
    resources: Resources | None = None,
    multiprocessors: int | None = None,
    sm_mhz: float | None = None,
) -> MachineCode:
    """What a case's machine code shows about its launch, which it must have.

    `disassembled` has nvdisasm's listing, the entry and `sm_90a`; the last two arguments are those
    of a device. `ListingError` if the listing cannot be read.
    """
    text, entry, name = disassembled
    launch = case.launch
    assert launch is not None
    function = listing.function(text, entry)
    code = flow.code(function)
    constants = _constants(function, case, launch, architecture)
    rates = dict[str, int](architecture.tensor_fma.items())
    totals = tally(code, launch.block, launch.grid, constants, rates)
    used = prediction.demand(totals, architecture.compute_capability)
    not_derived = list(totals.unknown)
    if not used:
        not_derived.append(NotDerived("cycles", architecture.name))
    shared, cached = (_path(totals, kind) for kind in ("shared", "global"))
    record = MachineCode(
        architecture=name,
        registers=resources.registers if resources is not None else None,
        spilled_bytes=resources.spilled_bytes if resources is not None else None,
        static_shared_bytes=resources.static_shared_bytes if resources is not None else None,
        instructions=prediction.most_first(totals.classes),
        loop=_loop(totals, code),
        cycles=used,
        shared_cycles=shared[0],
        shared_least_cycles=shared[1],
        global_cycles=cached[0],
        global_least_cycles=cached[1],
        not_derived=tuple(not_derived),
    )
    record = _with_traffic(record, totals, launch)
    if not used or not totals.is_complete:
        return record
    resident = _resident(launch, architecture, resources, multiprocessors)
    waiting = _with_waits(totals, used, resident, architecture.compute_capability)
    record = msgspec.structs.replace(
        record, resident_blocks=resident, block_cycles=max(*used.values(), waiting)
    )
    operations = workloads.workload_of(case.problem).operations(case.problem)
    record = _with_ceiling(record, operations / launch.blocks, architecture.fp32_lanes)
    return _on_device(record, operations, launch, multiprocessors, sm_mhz)


def busy(code: MachineCode) -> dict[str, float]:
    """The share of the time at the ceiling for which each resource is busy, the most first."""
    most = code.block_cycles or max(code.cycles.values(), default=0.0)
    return {name: cycles / most for name, cycles in code.cycles.items()}


def _resident(
    launch: Launch,
    architecture: Architecture,
    resources: Resources | None,
    multiprocessors: int | None,
) -> int | None:
    """The blocks of a multiprocessor that run at a time; None if their registers are not known."""
    if resources is None:
        return None
    x, y, z = launch.block
    shared = launch.shared_bytes + (resources.static_shared_bytes or 0)
    blocks = occupancy(
        architecture, x * y * z, registers=resources.registers, shared_bytes=shared
    ).blocks
    return min(blocks, -(-launch.blocks // multiprocessors)) if multiprocessors else blocks


def _with_waits(
    totals: Tally, used: Mapping[str, float], resident: int | None, capability: tuple[int, int]
) -> float:
    """Cycles of a multiprocessor that a block takes if waits in the hot loop are counted too."""
    known = capability in waits.LATENCIES and not totals.tensor_cycles  # their waits are others
    if not known or not resident or not totals.path:
        return 0.0
    path = waits.steps(totals.path, totals.costs, capability)
    a_pass = waits.pass_cycles(path, totals.warps, resident) / resident
    rest = max(0.0, 1 - len(path) * totals.passes / totals.instructions)
    return a_pass * totals.passes + rest * used[prediction.ISSUE]


def _with_ceiling(record: MachineCode, operations: float, lanes: int) -> MachineCode:
    """The ceiling of a block with so many operations, and its share of the multiply-adds."""
    if not operations or not record.block_cycles:
        return record
    per_cycle = operations / record.block_cycles
    return msgspec.structs.replace(
        record, operations_per_cycle=per_cycle, peak_share=per_cycle / (2 * lanes)
    )


def _on_device(
    record: MachineCode,
    operations: int,
    launch: Launch,
    multiprocessors: int | None,
    sm_mhz: float | None,
) -> MachineCode:
    """The ceiling of the whole launch, on a device with so many multiprocessors."""
    if not multiprocessors or not record.block_cycles:
        return record
    # The multiprocessor with the most blocks finishes last.
    cycles = -(-launch.blocks // multiprocessors) * record.block_cycles
    least_ns = cycles / sm_mhz * 1e3 if sm_mhz else None
    return msgspec.structs.replace(
        record,
        multiprocessors=multiprocessors,
        sm_mhz=sm_mhz,
        least_cycles=cycles,
        least_ns=least_ns,
        ceiling_operations_per_s=operations / least_ns * 1e9 if least_ns and operations else None,
    )


def _constants(
    function: listing.CodeListing, case: Case, launch: Launch, architecture: Architecture
) -> dict[int, int]:
    """Constant bank 0 as the launch fills it: 4 bytes by offset."""
    constants: dict[int, int] = {}
    generation, _ = architecture.compute_capability
    if generation in _GEOMETRY:
        for start, sides in zip(_GEOMETRY[generation], (launch.block, launch.grid), strict=True):
            constants.update({start + 4 * axis: side for axis, side in enumerate(sides)})
    if generation in _CLUSTER_BLOCKS:
        constants[_CLUSTER_BLOCKS[generation]] = function.cluster_blocks
    kernel = case.kernel
    named = expressions.constants(kernel.let, case.params)
    values = {**limits(architecture), **named, **kernel.values(case.problem)}
    for index, (text, parameter) in enumerate(zip(kernel.args, kernel.parameters, strict=False)):
        offset, nbytes = function.parameters.get(index, (0, 0))
        if nbytes not in (4, 8):
            continue
        number = (index + 1) * _BUFFER_BYTES
        if not parameter.pointer:
            try:
                value = expressions.evaluate(text, values)
            except expressions.ExpressionError:
                continue
            number = _bits(value, parameter.type, nbytes)
        constants[offset] = number & 0xFFFFFFFF
        if nbytes == 8:
            constants[offset + 4] = number >> 32 & 0xFFFFFFFF
    return constants


def _bits(value: int | float, kind: str, nbytes: int) -> int:
    if kind in ("float", "double"):
        code = "<f" if nbytes == 4 else "<d"
        return int.from_bytes(struct.pack(code, value), "little")
    return int(value)


def _path(totals: Tally, kind: str) -> tuple[float, float]:
    """Cycles of a block's accesses, and the least that their bytes need."""
    parts = [traffic for name, traffic in totals.traffic.items() if name.startswith(kind)]
    return (
        totals.warps * sum(part.cycles for part in parts),
        totals.warps * sum(part.least for part in parts),
    )


def _with_traffic(record: MachineCode, totals: Tally, launch: Launch) -> MachineCode:
    """The bytes of global memory that the whole launch requests, unless some are not known."""
    if (
        totals.bulk
        or not totals.is_complete
        or any(missing.what == "addresses" for missing in totals.unknown)
    ):
        return record
    times = totals.warps * launch.blocks
    loads = totals.traffic.get("global loads", Cost())
    stores = totals.traffic.get("global stores", Cost())
    return msgspec.structs.replace(
        record,
        global_load_bytes=times * loads.requested_bytes,
        global_store_bytes=times * stores.requested_bytes,
        global_sectors=times * (loads.sectors + stores.sectors),
    )


def _loop(totals: Tally, code: flow.FlowGraph) -> HotLoop | None:
    if totals.loop is None or not totals.passes:
        return None
    inside = sum(totals.in_loop.values())
    blocks = [code.graph[start] for start in totals.loop.blocks]
    return HotLoop(
        first=min(block.start for block in blocks),
        last=max(block.instructions[-1].address for block in blocks),
        passes=totals.passes,
        instructions=prediction.most_first(
            {name: count / totals.passes for name, count in totals.in_loop.items()}
        ),
        share=inside / totals.instructions,
    )
