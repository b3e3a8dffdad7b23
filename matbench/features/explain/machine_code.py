"""What a kernel's machine code shows about one launch, and the highest speed that it allows."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import msgspec

from matbench import workloads
from matbench.analysis.architectures import Architecture, occupancy
from matbench.features.explain.sass import flow, listing, prediction, waits
from matbench.features.explain.sass.memory import Cost
from matbench.features.explain.sass.tally import Tally, tally
from matbench.kernelfile import expressions
from matbench.model import Case, Launch, Resources
from matbench.records.explanation import HotLoop, MachineCode, NotDerived

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
    found = tally(code, launch.block, launch.grid, constants, rates)
    used = prediction.demand(found, architecture.compute_capability)
    not_derived = list(found.unknown)
    if not used:
        not_derived.append(NotDerived("cycles", architecture.name))
    shared, cached = (_path(found, kind) for kind in ("shared", "global"))
    told = MachineCode(
        architecture=name,
        registers=resources.registers if resources is not None else None,
        spilled_bytes=resources.spilled_bytes if resources is not None else None,
        static_shared_bytes=resources.static_shared_bytes if resources is not None else None,
        instructions=prediction.most_first(found.classes),
        loop=_loop(found, code),
        cycles=used,
        shared_cycles=shared[0],
        shared_least_cycles=shared[1],
        global_cycles=cached[0],
        global_least_cycles=cached[1],
        not_derived=tuple(not_derived),
    )
    told = _with_traffic(told, found, launch)
    if not used or not found.is_complete:
        return told
    resident = _resident(launch, architecture, resources, multiprocessors)
    waiting = _with_waits(found, used, resident, architecture.compute_capability)
    told = msgspec.structs.replace(
        told, resident_blocks=resident, block_cycles=max(*used.values(), waiting)
    )
    operations = workloads.workload_of(case.problem).operations(case.problem)
    told = _with_ceiling(told, operations / launch.blocks, architecture.fp32_lanes)
    return _on_device(told, operations, launch, multiprocessors, sm_mhz)


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
    found: Tally, used: Mapping[str, float], resident: int | None, capability: tuple[int, int]
) -> float:
    """Cycles of a multiprocessor that a block takes if waits in the hot loop are counted too."""
    known = capability in waits.LATENCIES and not found.tensor_cycles  # their waits are others
    if not known or not resident or not found.path:
        return 0.0
    path = waits.steps(found.path, found.costs, capability)
    a_pass = waits.pass_cycles(path, found.warps, resident) / resident
    rest = max(0.0, 1 - len(path) * found.passes / found.instructions)
    return a_pass * found.passes + rest * used[prediction.ISSUE]


def _with_ceiling(told: MachineCode, operations: float, lanes: int) -> MachineCode:
    """The ceiling of a block with so many operations, and its share of the multiply-adds."""
    if not operations or not told.block_cycles:
        return told
    per_cycle = operations / told.block_cycles
    return msgspec.structs.replace(
        told, operations_per_cycle=per_cycle, peak_share=per_cycle / (2 * lanes)
    )


def _on_device(
    told: MachineCode,
    operations: int,
    launch: Launch,
    multiprocessors: int | None,
    sm_mhz: float | None,
) -> MachineCode:
    """The ceiling of the whole launch, on a device with so many multiprocessors."""
    if not multiprocessors or not told.block_cycles:
        return told
    # The multiprocessor with the most blocks finishes last.
    cycles = -(-launch.blocks // multiprocessors) * told.block_cycles
    least_ns = cycles / sm_mhz * 1e3 if sm_mhz else None
    return msgspec.structs.replace(
        told,
        multiprocessors=multiprocessors,
        sm_mhz=sm_mhz,
        least_cycles=cycles,
        least_ns=least_ns,
        ceiling_operations_per_s=operations / least_ns * 1e9 if least_ns and operations else None,
    )


def _constants(
    function: listing.Function, case: Case, launch: Launch, architecture: Architecture
) -> dict[int, int]:
    """Constant bank 0 as the launch fills it: 4 bytes by offset."""
    found: dict[int, int] = {}
    generation, _ = architecture.compute_capability
    if generation in _GEOMETRY:
        for start, sides in zip(_GEOMETRY[generation], (launch.block, launch.grid), strict=True):
            found.update({start + 4 * axis: side for axis, side in enumerate(sides)})
    if generation in _CLUSTER_BLOCKS:
        found[_CLUSTER_BLOCKS[generation]] = function.cluster_blocks
    kernel = case.kernel
    values = {**architecture.limits, **case.params, **kernel.values(case.problem)}
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
        found[offset] = number & 0xFFFFFFFF
        if nbytes == 8:
            found[offset + 4] = number >> 32 & 0xFFFFFFFF
    return found


def _bits(value: int | float, kind: str, nbytes: int) -> int:
    if kind in ("float", "double"):
        code = "<f" if nbytes == 4 else "<d"
        return int.from_bytes(struct.pack(code, value), "little")
    return int(value)


def _path(found: Tally, kind: str) -> tuple[float, float]:
    """Cycles of a block's accesses, and the least that their bytes need."""
    parts = [traffic for name, traffic in found.traffic.items() if name.startswith(kind)]
    return (
        found.warps * sum(part.cycles for part in parts),
        found.warps * sum(part.least for part in parts),
    )


def _with_traffic(told: MachineCode, found: Tally, launch: Launch) -> MachineCode:
    """The bytes of global memory that the whole launch requests, unless some are not known."""
    if (
        found.bulk
        or not found.is_complete
        or any(missing.what == "addresses" for missing in found.unknown)
    ):
        return told
    times = found.warps * launch.blocks
    loads = found.traffic.get("global loads", Cost())
    stores = found.traffic.get("global stores", Cost())
    return msgspec.structs.replace(
        told,
        global_load_bytes=times * loads.requested_bytes,
        global_store_bytes=times * stores.requested_bytes,
        global_sectors=times * (loads.sectors + stores.sectors),
    )


def _loop(found: Tally, code: flow.Code) -> HotLoop | None:
    if found.loop is None or not found.passes:
        return None
    inside = sum(found.in_loop.values())
    blocks = [code.graph[start] for start in found.loop.blocks]
    return HotLoop(
        first=min(block.start for block in blocks),
        last=max(block.instructions[-1].address for block in blocks),
        passes=found.passes,
        instructions=prediction.most_first(
            {name: count / found.passes for name, count in found.in_loop.items()}
        ),
        share=inside / found.instructions,
    )
