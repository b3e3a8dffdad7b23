"""The steps of an explanation: what is measured, what fits, what the machine code shows."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from matbench import signals
from matbench.analysis import ranking
from matbench.backends.cuda import compilation
from matbench.backends.protocol import NoDeviceError, UnavailableError
from matbench.cache import Cache
from matbench.cli import options
from matbench.cli.console import progress, say, say_printed
from matbench.errors import CaseError, MatbenchError, UsageError
from matbench.features.explain import disassembly, limits, occupancy
from matbench.features.explain import machine_code as code
from matbench.features.explain.architectures import Architecture, of_capability
from matbench.features.explain.record import Fit, Limits, MachineCode
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo, Resources
from matbench.records.outcome import Outcome
from matbench.worker.worker import WorkerPool


def device(chosen: options.DeviceOptions, *, counters: bool) -> DeviceInfo | None:
    """The device in use; None if there is none and none was asked for."""
    try:
        info = chosen.choose()
    except NoDeviceError as error:
        if counters or chosen.backend != "auto" or chosen.device is not None:
            raise
        say(f"not measured: {error}", err=True)
        return None
    if counters and info.backend != "cuda":
        raise UsageError(f"--counters needs CUDA; this is {info.label}")
    return info


def measure(
    cases: Sequence[Case], info: DeviceInfo, deadlines: options.DeadlineOptions,
    measured: list[tuple[Case, Outcome]],
) -> Limits | None:  # fmt: skip
    """Measure every case briefly, and the device's limits; what is measured is kept if stopped."""
    how = options.LaunchOptions(method=("cold",), max_time=None).quick()
    with (
        WorkerPool(how, deadlines.deadlines, say_printed) as pool,
        progress(len(cases) + 1) as display,
    ):
        pool.build_ahead([(info, case) for case in cases])
        for case in cases:
            display.begin(case.label)
            measured.append((case, pool.worker(info).measure(case)))
        ran = next((case for case, outcome in measured if outcome.status == "measured"), None)
        if ran is None:
            return None
        display.begin("the device's limits")
        try:
            # Other processes lower a CPU's limits, so they are measured each time.
            return pool.worker(info).run(limits.measured, info.kind == "cpu", case=ran)
        except CaseError as error:
            say(f"the device's limits could not be measured: {error.reason}", err=True)
            return None


def fits(
    case: Case, params: Sequence[dict[str, int]], gpu: DeviceInfo | None,
    others: Sequence[DeviceInfo], outcome: Outcome | None,
) -> list[Fit]:  # fmt: skip
    """What fits on this GPU and the others with these parameters; nvcc compiles several at once."""
    cache = Cache()

    def compiled(architecture: Architecture, params: dict[str, int]) -> Resources | None:
        at = architecture.compute_capability
        try:
            return compilation.compiled_by_nvcc(at, case.kernel, params, cache).resources
        except UnavailableError:
            return None

    def fitted(wanted: tuple[DeviceInfo, dict[str, int]]) -> Fit:
        device, params = wanted
        build = outcome.build if outcome is not None and params == case.params else None
        at = sweep.case(case.kernel, case.problem, params, device)
        return occupancy.fit(at, device, compiled, build, here=device is gpu)

    devices = [*others, *([gpu] if gpu is not None else [])]
    with signals.defer_interrupts(), ThreadPoolExecutor(os.cpu_count()) as at_once:
        return list(at_once.map(fitted, itertools.product(devices, params)))


def machine_code(
    case: Case, gpu: DeviceInfo | None, others: Sequence[DeviceInfo], outcome: Outcome | None
) -> MachineCode | None:
    """What the case's machine code shows, for this GPU or else the first of the others.

    None, with a note, if the tools are missing or the case cannot be launched there.
    """
    device = gpu or next(iter(others), None)
    architecture = of_capability(device.compute_capability) if device else None
    if device is None or architecture is None:
        return None
    placed = sweep.case(case.kernel, case.problem, case.params, device)
    if placed.launch is None or placed.skip is not None:
        return None
    units = gpu.limits["multiprocessors"] if gpu else None
    mhz = ranking.held_mhz(outcome.timing) if gpu and outcome else None
    capability, cache = architecture.compute_capability, Cache()
    try:
        text = disassembly.disassembled(capability, case.kernel, case.params, cache)
        return code.machine_code(text, placed, architecture, units, mhz)
    except MatbenchError as error:
        say(f"machine code not read: {error}", err=True)
        return None
