"""`matbench explain`: why a kernel is as fast as it is."""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from matbench import signals
from matbench.cli.app import main
from matbench.cli.console import (
    Interruption,
    exit_with,
    open_console,
    say,
    say_printed,
    show_report,
)
from matbench.cli.kernel_files import KernelFiles, kernel_argument
from matbench.cli.options import (
    ConstantOptions,
    DeadlineOptions,
    DeviceOptions,
    LaunchOptions,
    SizeOptions,
    format_option,
    grouped,
    require_device,
)
from matbench.cli.progress import progress
from matbench.errors import CaseError, MatbenchError, UsageError

if TYPE_CHECKING:
    from matbench.analysis.architectures import Architecture
    from matbench.features.explain.record import Explanation, Fit, Limits, MachineCode
    from matbench.model import Case, DeviceInfo, Kernel, Problem, Resources
    from matbench.records.outcome import Outcome

#: The architecture to explain a kernel for if there is no device.
_CURRENT = "hopper"
#: The values of --widths, besides the kernel's own.
_WIDTHS = (4, 8, 12, 16, 20, 24, 32)


@main.command()
@kernel_argument
@grouped
@click.option(
    "--arch",
    metavar="LIST",
    help="More architectures, by family, chip or compute capability: g80,kepler,9.0. Default: "
    f"none; without a device, {_CURRENT}.",
)
@click.option(
    "--widths",
    metavar="NAME",
    help="Show how many blocks fit at the usual values of a constant, such as TILE.",
)
@click.option(
    "--counters",
    is_flag=True,
    help="Also read hardware counters of one launch with Nsight Compute (ncu).",
)
@format_option
def explain(
    kernel: str,
    files: KernelFiles,
    sizes: SizeOptions,
    constants: ConstantOptions,
    device: DeviceOptions,
    deadlines: DeadlineOptions,
    arch: str | None,
    widths: str | None,
    counters: bool,
    fmt: str,
) -> None:
    """Explain what limits a kernel's speed.

    Shows the kernel's modelled global traffic next to the minimum, its speed next to the
    limits measured on this device, what its machine code allows, and how many blocks fit on a
    multiprocessor, on any architecture. Explains the fastest of the parameters.

    \b
    matbench explain tiled --sizes 1000
    matbench explain tiled --set TILE=16 --arch g80,kepler,hopper
    matbench explain tiled --widths TILE --arch g80,kepler
    """
    from matbench.features.explain import counters as ncu
    from matbench.features.explain import explanation
    from matbench.features.explain.other_devices import device_of
    from matbench.kernelfile import sweep

    if counters:
        ncu.executable()
    chosen = _chosen(files, kernel, widths)
    info = _device(device, counters=counters)
    gpu = info if info is not None and info.backend == "cuda" else None
    targets = _named(arch if arch is not None or info is not None else _CURRENT)
    devices = [*([info] if info else []), *map(device_of, targets)]
    problem = sizes.one_problem(chosen)
    problems = sizes.problems([chosen]) if sizes.sizes is None else [problem]
    params = list(sweep.parameter_sets(chosen, constants.values([chosen])))
    cases = _largest_legal(chosen, problems, params, devices)
    measured: list[tuple[Case, Outcome]] = []
    limits: list[Limits] = []
    fits: list[Fit] = []
    counted = code = outcome = None
    case = next((case for case in cases if case.skip is None), cases[0])
    with Interruption() as interruption:
        if info is not None:
            _measure(cases, info, deadlines, measured, limits)
    if measured:
        case, outcome = min(measured, key=lambda pair: pair[1].median_ns or math.inf)
    if not interruption:
        with interruption:
            fits += _fits(case, widths, gpu, targets, outcome)
            if counters and gpu is not None:
                counted = ncu.count(gpu, case, deadlines.timeout)
            if outcome is None or outcome.status != "wrong":
                code = _machine_code(case, gpu, targets, outcome)
    if not (measured or fits):
        interruption.exit(0, len(cases), "cases")
    result = explanation.explanation(
        case, info, devices[0], outcome, limits[0] if limits else None, fits, counted, code
    )
    _show(result, info, fmt)
    interruption.exit(len(measured), len(cases), "cases")
    if outcome is not None:
        exit_with([outcome])


def _show(result: Explanation, info: DeviceInfo | None, fmt: str) -> None:
    from matbench.features.explain import view
    from matbench.records import provenance

    about = provenance.environment(sys.argv[1:], [info] if info is not None else [], {})
    console = open_console()
    width = min(console.width, 100) if console.is_terminal else 76
    show_report(
        view.report(result, [about], chart=width if fmt in ("rich", "plain") else None), fmt
    )


def _chosen(files: KernelFiles, name: str, widths: str | None) -> Kernel:
    """The kernel, if it has a source and the constant whose widths are shown."""
    chosen = files.one(name)
    if not chosen.kind.is_launched:
        what = f"{chosen.name} is {chosen.kind.called}"
        raise UsageError(f"{what}; it has no source in CUDA C to explain")
    require_device(chosen)
    if widths is not None and widths not in {*chosen.sweep, *chosen.tune}:
        known = ", ".join(dict.fromkeys([*chosen.sweep, *chosen.tune])) or "no constants"
        raise UsageError(f"--widths {widths!r:.60}: {chosen.name} has {known}")
    return chosen


def _named(arch: str | None) -> list[Architecture]:
    """The architectures of --arch, each once."""
    from matbench.features.explain.other_devices import named

    found = map(named, arch.split(",") if arch is not None else ())
    return list({architecture.name: architecture for architecture in found}.values())


def _device(device: DeviceOptions, *, counters: bool) -> DeviceInfo | None:
    """The device in use; None if there is none and none was asked for."""
    from matbench import backends

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


def _largest_legal(
    kernel: Kernel,
    problems: Sequence[Problem],
    params: Sequence[dict[str, int]],
    devices: Sequence[DeviceInfo],
) -> list[Case]:
    """The cases of the largest problem that the first device can run, or else the next device."""
    from matbench.kernelfile import sweep

    for info in devices:
        for problem in reversed(problems):
            if any(sweep.case(kernel, problem, values, info).skip is None for values in params):
                return [sweep.case(kernel, problem, values, devices[0]) for values in params]
    return [sweep.case(kernel, problems[-1], values, devices[0]) for values in params]


def _measure(
    cases: Sequence[Case],
    info: DeviceInfo,
    deadlines: DeadlineOptions,
    measured: list[tuple[Case, Outcome]],
    limits: list[Limits],
) -> None:
    """Measure every case briefly, and the device's limits."""
    from matbench.features.explain import limits as device_limits
    from matbench.worker.worker import WorkerPool

    options = LaunchOptions(cold=True, hot=False, graph=False, max_time=None).quick()
    with (
        WorkerPool(options, deadlines.deadlines, say_printed) as pool,
        progress(len(cases) + 1) as display,
    ):
        pool.build_ahead([(info, case) for case in cases])
        for case in cases:
            display.begin(case.label)
            measured.append((case, pool.worker(info).measure(case)))
        ran = next((case for case, outcome in measured if outcome.status == "measured"), None)
        if ran is not None:
            display.begin("the device's limits")
            try:
                # Other processes lower a CPU's limits, so they are measured each time.
                limit = pool.worker(info).run(device_limits.measured, info.kind == "cpu", case=ran)
                limits.append(limit)
            except CaseError as error:
                say(f"the device's limits could not be measured: {error.reason}", err=True)


def _fits(
    case: Case,
    widths: str | None,
    gpu: DeviceInfo | None,
    targets: Sequence[Architecture],
    outcome: Outcome | None,
) -> list[Fit]:
    """What fits on this GPU and the others, at the case's parameters or the widths of a constant.

    nvcc compiles for several at once.
    """
    from concurrent.futures import ThreadPoolExecutor

    from matbench.backends import UnavailableError
    from matbench.backends.cuda import compilation
    from matbench.cache import Cache
    from matbench.features.explain import occupancy
    from matbench.features.explain.other_devices import device_of
    from matbench.kernelfile import sweep

    kernel, cache = case.kernel, Cache()
    sets = [case.params]
    if widths is not None:
        own = (*kernel.sweep.get(widths, ()), case.params[widths])
        sets = [case.params | {widths: value} for value in sorted({*_WIDTHS, *own})]

    def compiled(architecture: Architecture, params: dict[str, int]) -> Resources | None:
        at = architecture.compute_capability
        try:
            return compilation.compiled_by_nvcc(at, kernel, params, cache).resources
        except UnavailableError:
            return None

    def fitted(wanted: tuple[DeviceInfo, dict[str, int]]) -> Fit:
        device, params = wanted
        build = outcome.build if outcome is not None and params == case.params else None
        at = sweep.case(kernel, case.problem, params, device)
        return occupancy.fit(at, device, compiled, build, here=device is gpu)

    devices = [*map(device_of, targets), *([gpu] if gpu is not None else [])]
    with signals.defer_interrupts(), ThreadPoolExecutor(os.cpu_count()) as at_once:
        return list(at_once.map(fitted, itertools.product(devices, sets)))


def _machine_code(
    case: Case, gpu: DeviceInfo | None, targets: Sequence[Architecture], outcome: Outcome | None
) -> MachineCode | None:
    """What the case's machine code shows, for this GPU or else the first of the named ones.

    None, with a note, if the tools are missing or the case cannot be launched there.
    """
    from matbench.analysis import architectures, ranking
    from matbench.cache import Cache
    from matbench.features.explain import disassembly, machine_code, other_devices
    from matbench.kernelfile import sweep

    architecture = (
        architectures.of_capability(gpu.compute_capability) if gpu is not None
        else next(iter(targets), None)
    )  # fmt: skip
    if architecture is None:
        return None
    at = gpu or other_devices.device_of(architecture)
    placed = sweep.case(case.kernel, case.problem, case.params, at)
    if placed.launch is None or placed.skip is not None:
        return None
    try:
        code = disassembly.disassembled(
            architecture.compute_capability, case.kernel, case.params, Cache()
        )
        return machine_code.machine_code(
            (code.listing, code.entry, code.architecture),
            placed,
            architecture,
            resources=code.resources,
            multiprocessors=gpu.limits["multiprocessors"] if gpu else None,
            sm_mhz=ranking.held_mhz(outcome.timing) if gpu and outcome else None,
        )
    except MatbenchError as error:
        say(f"machine code not read: {error}", err=True)
        return None
