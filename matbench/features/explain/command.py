"""`matbench explain`: why a kernel is as fast as it is."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Sequence

import click

from matbench import backends, signals
from matbench.analysis import ranking
from matbench.backends import UnavailableError
from matbench.backends.cuda import compilation
from matbench.cache import Cache
from matbench.cli import options
from matbench.cli.app import main
from matbench.cli.console import Interruption, exit_with, say, say_printed
from matbench.cli.kernel_files import KernelFiles, kernel_argument, read_for
from matbench.cli.outputs import require_apart
from matbench.cli.progress import progress
from matbench.errors import CaseError, MatbenchError, UsageError
from matbench.features.explain import counters as ncu
from matbench.features.explain import (
    disassembly,
    explanation,
    limits,
    machine_code,
    occupancy,
    view,
)
from matbench.features.explain.architectures import Architecture, device_of, named, of_capability
from matbench.features.explain.record import Fit, Limits, MachineCode
from matbench.kernelfile import sweep
from matbench.model import Case, DeviceInfo, Resources
from matbench.records.environment import run_environment
from matbench.records.outcome import Outcome
from matbench.worker.comparing import Contender
from matbench.worker.worker import WorkerPool

#: The architecture to explain a kernel for if there is no device.
_CURRENT = "hopper"


@main.command()
@kernel_argument
@options.grouped
@click.option(
    "--arch",
    metavar="LIST",
    help="More architectures, by family, chip or compute capability: g80,kepler,9.0. Default: "
    f"none; without a device, {_CURRENT}.",
)
@click.option(
    "--counters",
    is_flag=True,
    help="Also read hardware counters of one launch with Nsight Compute (ncu).",
)
def explain(
    kernel: str, files: KernelFiles, sizes: options.SizeOptions, constants: options.ConstantOptions,
    device: options.DeviceOptions, deadlines: options.DeadlineOptions, arch: str | None,
    counters: bool, shown: options.ReportOptions,
) -> None:  # fmt: skip
    """Explain what limits a kernel's speed.

    Shows the kernel's modelled global traffic next to the minimum, its speed next to the
    limits measured on this device, what its machine code allows, and how many blocks fit on a
    multiprocessor, on any architecture. Explains the fastest of the parameters; what fits is
    shown for all that --set names.

    \b
    matbench explain tiled --sizes 1000
    matbench explain tiled --set TILE=16 --arch g80,kepler,hopper
    matbench explain tiled --set TILE=4,8,12,16,20 --arch g80,kepler
    """
    if counters:
        ncu.executable()
    chosen = files.one(kernel)
    if not chosen.kind.is_launched:
        what = f"{chosen.name} is {chosen.kind.called}"
        raise UsageError(f"{what}; it has no source in CUDA C to explain")
    options.require_device(chosen)
    require_apart(shown.outputs, read_for([chosen]))
    info = _device(device, counters=counters)
    gpu = info if info is not None and info.backend == "cuda" else None
    names = arch.split(",") if arch is not None else [] if info is not None else [_CURRENT]
    targets = list({found.name: found for found in map(named, names)}.values())

    # The largest problem that the first device can run, or else the next.
    devices = [*([info] if info else []), *map(device_of, targets)]
    problem = sizes.one_problem(chosen)
    problems = sizes.problems([chosen]) if sizes.sizes is None else [problem]
    asked = constants.values([chosen])
    params = list(sweep.parameter_sets(chosen, asked))
    places = itertools.product(devices, reversed(problems), params)
    every = ((size, sweep.case(chosen, size, values, at)) for at, size, values in places)
    problem = next((size for size, case in every if case.skip is None), problems[-1])
    cases = [sweep.case(chosen, problem, values, devices[0]) for values in params]
    case = next((case for case in cases if case.skip is None), cases[0])

    measured: list[tuple[Case, Outcome]] = []
    fits: list[Fit] = []
    limits = outcome = counted = code = None
    with Interruption() as interruption:
        if info is not None:
            limits = _measure(cases, info, deadlines, measured)
    if measured:
        best = Contender.of(measured)
        case, outcome = best.case, best.outcome
    if not interruption:
        with interruption:
            fits += _fits(case, params if asked else [case.params], gpu, targets, outcome)
            if counters and gpu is not None:
                counted = ncu.count(gpu, case, deadlines.timeout)
            if outcome is None or outcome.status != "wrong":
                code = _machine_code(case, gpu, targets, outcome)
    if not (measured or fits):
        interruption.exit(0, len(cases), "cases")
    result = explanation.explanation(case, info, devices[0], outcome, limits, fits, counted, code)
    about = run_environment(sys.argv[1:], [info] if info is not None else [], {})
    shown.show(view.report([result], [about]))
    interruption.exit(len(measured), len(cases), "cases")
    if outcome is not None:
        exit_with([outcome])


def _device(device: options.DeviceOptions, *, counters: bool) -> DeviceInfo | None:
    """The device in use; None if there is none and none was asked for."""
    try:
        info = device.choose()
    except backends.NoDeviceError as error:
        if counters or device.backend != "auto" or device.device is not None:
            raise
        say(f"not measured: {error}", err=True)
        return None
    if counters and info.backend != "cuda":
        raise UsageError(f"--counters needs CUDA; this is {info.label}")
    return info


def _measure(
    cases: Sequence[Case], info: DeviceInfo, deadlines: options.DeadlineOptions,
    measured: list[tuple[Case, Outcome]],
) -> Limits | None:  # fmt: skip
    """Measure every case briefly, and the device's limits; what is measured is kept if stopped."""
    how = options.LaunchOptions(cold=True, hot=False, graph=False, max_time=None).quick()
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


def _fits(
    case: Case, params: Sequence[dict[str, int]], gpu: DeviceInfo | None,
    targets: Sequence[Architecture], outcome: Outcome | None,
) -> list[Fit]:  # fmt: skip
    """What fits on this GPU and the others with these parameters; nvcc compiles several at once."""
    from concurrent.futures import ThreadPoolExecutor

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

    devices = [*map(device_of, targets), *([gpu] if gpu is not None else [])]
    with signals.defer_interrupts(), ThreadPoolExecutor(os.cpu_count()) as at_once:
        return list(at_once.map(fitted, itertools.product(devices, params)))


def _machine_code(
    case: Case, gpu: DeviceInfo | None, targets: Sequence[Architecture], outcome: Outcome | None
) -> MachineCode | None:
    """What the case's machine code shows, for this GPU or else the first of the named ones.

    None, with a note, if the tools are missing or the case cannot be launched there.
    """
    architecture = of_capability(gpu.compute_capability) if gpu else next(iter(targets), None)
    if architecture is None:
        return None
    placed = sweep.case(case.kernel, case.problem, case.params, gpu or device_of(architecture))
    if placed.launch is None or placed.skip is not None:
        return None
    units = gpu.limits["multiprocessors"] if gpu else None
    mhz = ranking.held_mhz(outcome.timing) if gpu and outcome else None
    capability, cache = architecture.compute_capability, Cache()
    try:
        code = disassembly.disassembled(capability, case.kernel, case.params, cache)
        return machine_code.machine_code(code, placed, architecture, units, mhz)
    except MatbenchError as error:
        say(f"machine code not read: {error}", err=True)
        return None
