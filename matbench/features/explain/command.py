"""`matbench explain`: why a kernel is as fast as it is."""

from __future__ import annotations

import itertools
import sys

import click

from matbench.cli import options
from matbench.cli.app import main
from matbench.cli.console import Interruption, exit_with, require_apart
from matbench.cli.selection import KernelFiles, kernel_argument, read_for
from matbench.errors import UsageError
from matbench.features.explain.record import Fit
from matbench.model import Case
from matbench.records.outcome import Outcome

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
    chosen = files.one(kernel)
    if not chosen.kind.is_launched:
        what = f"{chosen.name} is {chosen.kind.called}"
        raise UsageError(f"{what}; it has no source in CUDA C to explain")
    options.require_device(chosen)
    require_apart(shown.outputs, read_for([chosen]))

    from matbench.features.explain import counters as ncu
    from matbench.features.explain import explanation, steps, view
    from matbench.features.explain.architectures import device_of, named
    from matbench.features.nvidia_tools import observer
    from matbench.kernelfile import sweep
    from matbench.records.environment import run_environment
    from matbench.worker.comparing import Contender

    if counters:
        observer.executable("ncu")
    info = steps.device(device, counters=counters)
    gpu = info if info is not None and info.backend == "cuda" else None
    names = arch.split(",") if arch is not None else [] if info is not None else [_CURRENT]
    others = list({found.name: device_of(found) for found in map(named, names)}.values())

    # The largest problem that the first device can run, or else the next.
    devices = [*([info] if info else []), *others]
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
            limits = steps.measure(cases, info, deadlines, measured)
    if measured:
        best = Contender.of(measured)
        case, outcome = best.case, best.outcome
    if not interruption:
        with interruption:
            fits += steps.fits(case, params if asked else [case.params], gpu, others, outcome)
            if counters and gpu is not None:
                counted = ncu.count(gpu, case, deadlines.timeout)
            if outcome is None or outcome.status != "wrong":
                code = steps.machine_code(case, gpu, others, outcome)
    if not (measured or fits):
        interruption.exit(0, len(cases), "cases")
    result = explanation.explanation(case, info, devices[0], outcome, limits, fits, counted, code)
    about = run_environment(sys.argv[1:], [info] if info is not None else [], {})
    shown.show(view.report([result], [about]))
    interruption.exit(len(measured), len(cases), "cases")
    if outcome is not None:
        exit_with([outcome])
