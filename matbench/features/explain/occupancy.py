"""How many blocks fit on a multiprocessor of any architecture."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from matbench.analysis.limits import WARP
from matbench.errors import BuildError
from matbench.features.explain.architectures import ARCHITECTURES, Architecture, of_capability
from matbench.features.explain.record import Fit, Limiter, Occupancy
from matbench.model import Case, DeviceInfo, Resources
from matbench.records.outcome import Build
from matbench.show.reasons import skip_reason

#: Compiles for one architecture; None if no compiler supports it. May raise `BuildError`.
Compile = Callable[[Architecture, dict[str, int]], Resources | None]

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
    a, warps = architecture, -(-threads_per_block // WARP)
    # A launch must have registers as if its warps filled all partitions evenly. Pascal 6.0 has two
    # partitions, but its launch limits are those of four, as on 6.1.
    launched = _rounded(warps, 4 if a.family == "Pascal" else a.partitions)
    block_registers = _registers_of_warp(registers or 0) * launched
    for asked, most, what in (
        (threads_per_block, a.threads_per_block, "threads per block"),
        (shared_bytes, a.largest_shared_bytes, "bytes of shared memory"),
        (registers or 0, a.registers_per_thread, "registers per thread"),
        (block_registers, a.registers_per_block, "registers per block"),
    ):
        if asked > most:
            return Occupancy(0, 0, 0.0, {}, (), f"{asked:,} {what} > {most:,}")
    by: dict[Limiter, int] = {"threads": a.warps // warps, "blocks": a.blocks}
    if registers:
        resident = a.registers // a.partitions // _registers_of_warp(registers)
        by["registers"] = resident * a.partitions // warps
    if shared_bytes:
        taken = _rounded(shared_bytes + a.reserved_shared_bytes, a.shared_unit_bytes)
        by["shared memory"] = a.shared_bytes // taken
    blocks = min(by.values())
    limiters = tuple(resource for resource, most in by.items() if most == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / a.warps, by, limiters)


def fit(
    case: Case, device: DeviceInfo, compiled: Compile, build: Build | None = None, *, here: bool
) -> Fit:
    """What of a case fits on a device: by its `build` if it is the device in use, `here`, or else
    as nvcc compiles it for that architecture.

    Static shared memory is the same in all builds, so any will do; registers are not.
    """
    architecture = of_capability(device.compute_capability)
    name = architecture.name if architecture is not None else None
    driven = build.resident_blocks if build is not None and here else None
    found = partial(Fit, architecture=name, params=case.params, here=here, driver_blocks=driven)
    if case.launch is None or case.skip is not None:
        return found(reason=skip_reason(case.skip) if case.skip is not None else None)
    known = build.resources if build is not None else None
    resources = known if here else None
    try:
        if resources is None and architecture is not None:
            resources = compiled(architecture, case.params)
    except BuildError as error:
        return found(reason=f"does not build: {error.reason.splitlines()[0]}")
    any_build = resources or known
    for other in reversed(ARCHITECTURES):
        if any_build is None:
            with suppress(BuildError):
                any_build = compiled(other, case.params)
    static = any_build.static_shared_bytes if any_build is not None else None
    threads, shared = case.launch.threads_per_block, (static or 0) + case.launch.shared_bytes
    registers = resources.registers if resources is not None else None
    fits = None
    if architecture is not None:
        fits = occupancy(architecture, threads, registers=registers, shared_bytes=shared)
    return found(
        threads_per_block=threads,
        registers=registers,
        shared_bytes=shared if static is not None else None,
        occupancy=fits if fits is None or not fits.refused else None,
        reason=fits.refused if fits is not None else None,
    )


def _registers_of_warp(registers: int) -> int:
    return _rounded(registers * WARP, _REGISTER_UNIT)


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit
