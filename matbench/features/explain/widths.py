"""Which sets of parameters are legal on which architectures, and their occupancy there."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from matbench.analysis import architectures
from matbench.analysis.architectures import ARCHITECTURES, Architecture
from matbench.errors import BuildError
from matbench.features.explain.occupancy import occupancy
from matbench.features.explain.other_devices import device_of
from matbench.features.explain.traffic import traffic
from matbench.kernelfile import expressions, sweep
from matbench.model import Case, DeviceInfo, Kernel, Launch, Problem, Resources
from matbench.records.explanation import Width
from matbench.records.outcome import Outcome
from matbench.show.reasons import outcome_reason, skip_reason

#: The values of TILE to compare, in addition to the kernel's own.
TILES = (4, 8, 12, 16, 20, 24, 32)

#: Compiles for one architecture; None if no compiler supports it. May raise `BuildError`.
Compile = Callable[[Architecture, dict[str, int]], Resources | None]


class Builds:
    """The resources that builds of a kernel use on any architecture."""

    def __init__(self, kernel: Kernel, compiled: Compile, outcomes: Iterable[Outcome] = ()) -> None:
        """`outcomes` are those of the kernel: their builds show its static shared memory."""
        self.kernel = kernel
        self._compiled = compiled
        self._shared_bytes = {
            str(outcome.case.params): outcome.build.resources.static_shared_bytes
            for outcome in outcomes
            if outcome.build is not None and outcome.build.resources is not None
        }

    def resources(self, architecture: Architecture, params: dict[str, int]) -> Resources:
        """For one architecture; only static shared memory if no compiler supports it."""
        resources = self._compiled(architecture, params)
        return resources or Resources(static_shared_bytes=self._static_shared_bytes(params))

    def _static_shared_bytes(self, params: dict[str, int]) -> int | None:
        """From any available build, because it is the same in all."""
        key = str(params)
        for architecture in ARCHITECTURES:
            if self._shared_bytes.get(key) is None:
                with contextlib.suppress(BuildError):
                    resources = self._compiled(architecture, params)
                    self._shared_bytes[key] = resources.static_shared_bytes if resources else None
        return self._shared_bytes.get(key)


def largest_legal(
    kernel: Kernel,
    problems: Sequence[Problem],
    params: Sequence[dict[str, int]],
    devices: Sequence[DeviceInfo],
) -> Problem:
    """The last problem that the first device can run, or else the next device; else the last."""
    for device in devices:
        for problem in reversed(problems):
            if any(sweep.case(kernel, problem, values, device).skip is None for values in params):
                return problem
    return problems[-1]


def elsewhere(
    problem: Problem, params: dict[str, int], architecture: Architecture, builds: Builds
) -> Width:
    """A set of parameters on an architecture other than the device's."""
    kernel, device = builds.kernel, device_of(architecture)
    case = sweep.case(kernel, problem, params, device)
    known = _modelled(case, device, architecture)
    block = _block(case, device)
    threads = math.prod(block)
    if threads > architecture.threads_per_block:
        sides = [str(size) for size in block if size > 1]
        shape = f"{' × '.join(sides)} = " if len(sides) > 1 else ""
        reason = f"{shape}{threads:,} threads per block > {architecture.threads_per_block:,}"
    elif case.skip is not None:
        reason = skip_reason(case.skip)
    else:
        try:
            resources = builds.resources(architecture, params)
            assert case.launch is not None
            return _fitted(known, architecture, case.launch, resources)
        except BuildError as error:
            reason = f"does not build: {error.reason.splitlines()[0]}"
    return msgspec.structs.replace(
        known, threads_per_block=threads or None, status="illegal", reason=reason
    )


def here(case: Case, device: DeviceInfo, outcome: Outcome, builds: Builds) -> Width:
    """A set of parameters as measured on the device."""
    architecture = architectures.of_capability(device.compute_capability)
    resources = outcome.build.resources if outcome.build is not None else None
    if case.launch is not None:
        width = _fitted(_modelled(case, device, architecture), architecture, case.launch, resources)
    elif architecture is not None:
        width = elsewhere(case.problem, case.params, architecture, builds)
    else:
        width = _modelled(case, device, None)
    if outcome.status != "measured" and width.status is None:
        status = "illegal" if outcome.status == "skipped" else outcome.status
        first, _, _ = outcome_reason(outcome).partition("\n")
        width = msgspec.structs.replace(width, status=status, reason=first)
    return msgspec.structs.replace(
        width,
        here=True,
        driver_blocks=outcome.build.resident_blocks if outcome.build is not None else None,
        measured_ns=outcome.median_ns,
    )


def _modelled(case: Case, device: DeviceInfo, architecture: Architecture | None) -> Width:
    return Width(
        architecture=architecture.name if architecture is not None else None,
        params=case.params,
        modelled_loads=traffic(case.kernel, case.problem, case.params, device.limits).loads,
    )


def _block(case: Case, device: DeviceInfo) -> tuple[int, ...]:
    """The block by front matter, legal or not; (0,) if it cannot be evaluated."""
    kernel = case.kernel
    try:
        constants = expressions.constants(kernel.let, case.params)
        values = {**device.limits, **constants, **kernel.values(case.problem)}
        return tuple(expressions.whole(axis, values) for axis in kernel.launch.block)
    except expressions.ExpressionError:
        return (0,)


def _fitted(
    known: Width, architecture: Architecture | None, launch: Launch, resources: Resources | None
) -> Width:
    """A width with the resources of its launch and build, and the resulting occupancy."""
    static = resources.static_shared_bytes if resources is not None else None
    width = msgspec.structs.replace(
        known,
        threads_per_block=launch.threads_per_block,
        registers=resources.registers if resources is not None else None,
        shared_bytes=None if static is None else static + launch.shared_bytes,
    )
    if architecture is None:
        return width
    fits = occupancy(
        architecture,
        launch.threads_per_block,
        registers=width.registers,
        shared_bytes=(static or 0) + launch.shared_bytes,
    )
    if fits.refused:
        return msgspec.structs.replace(width, status="illegal", reason=fits.refused)
    return msgspec.structs.replace(width, occupancy=fits)
