"""How many blocks fit on a multiprocessor of any architecture."""

from __future__ import annotations

from matbench.analysis.architectures import WARP, Architecture
from matbench.records.explanation import Limiter, Occupancy

#: Registers are allocated to a warp in units of these.
_REGISTER_UNIT = 256


def occupancy(
    architecture: Architecture, threads_per_block: int, *, registers: int | None, shared_bytes: int
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
    by: dict[Limiter, int] = {"threads": architecture.warps // warps, "blocks": architecture.blocks}
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
