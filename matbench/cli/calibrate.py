"""`matbench calibrate`: how much the time of unchanged code differs between runs."""

from __future__ import annotations

import sys

import click

from matbench.cli.app import main
from matbench.cli.console import Interruption, say, show_report
from matbench.cli.kernel_files import KernelFiles, kernel_names
from matbench.cli.options import (
    ConstantOptions,
    DeadlineOptions,
    DeviceOptions,
    LaunchOptions,
    OutputOptions,
    SizeOptions,
    format_option,
    grouped,
)
from matbench.cli.run import Sweep
from matbench.cli.selection import Cases
from matbench.cli.types import PlainRange

#: Measured if no kernel is named: a kernel that every device runs in a short time.
_KERNEL, _CONSTANTS = "tiled", ("TILE=16",)


@main.command()
@click.argument("kernels", nargs=-1, shell_complete=kernel_names)
@click.option(
    "--runs",
    type=PlainRange(10, 100),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of processes that measure each kernel.",
)
@grouped(
    files=KernelFiles,
    sizes=SizeOptions,
    constants=ConstantOptions,
    device=DeviceOptions,
    launches=LaunchOptions,
    deadlines=DeadlineOptions,
)
@format_option
def calibrate(
    kernels: tuple[str, ...],
    runs: int,
    files: KernelFiles,
    sizes: SizeOptions,
    constants: ConstantOptions,
    device: DeviceOptions,
    launches: LaunchOptions,
    deadlines: DeadlineOptions,
    fmt: str,
) -> None:
    """Measure how much the times of unchanged KERNELS differ between runs on this device.

    Later runs write the result to their record files, and `diff` allows for it. Calibrate a machine
    in the state in which it will measure, and again when that changes. KERNELS: default tiled.

    \b
    matbench calibrate
    matbench calibrate tiled pipelined --sizes 1000,4096 --runs 40
    """
    from matbench.analysis import repetitions, statistics
    from matbench.kernelfile import sweep
    from matbench.measure.options import Options
    from matbench.records import calibrations
    from matbench.show import calibration

    if not kernels and not constants.settings:
        constants = ConstantOptions(_CONSTANTS)
    chosen = files.named(kernels or (_KERNEL,))
    info = device.choose()
    launches.require_one_kind(info)
    calibrations.require()
    problems = sizes.problems(chosen)
    overrides = constants.values(chosen)
    cases: Cases = [((info,), case) for case in sweep.cases(chosen, problems, overrides, info)]
    options = Options(
        blocks=False,
        cold=not launches.hot,
        hot=launches.hot,
        graph=launches.graph,
        max_time_s=launches.max_time,
    )
    work = Sweep(cases, options, repeat=runs)
    interruption = Interruption()
    with interruption:
        work.work_through(OutputOptions(None, False, False, None), deadlines, sizes.recorded)
    interruption.exit(len(work.outcomes), len(cases) * runs, "measurements")
    timed = [each for each in repetitions.sets(work.outcomes) if each[0].status == "measured"]
    if not timed or any(outcome.is_broken for outcome in work.outcomes):
        work.show(fmt, fastest=False, interrupted=False)
        say("not calibrated: every kernel must be right in every process", err=True)
        sys.exit(1)
    found = [repetitions.variation(together) for together in timed]
    assert work.environment is not None
    show_report(calibration.report(found, [work.environment]), fmt)
    whole = repetitions.largest(found)
    calibrations.keep(info, whole, work.environment.time)
    say(
        f"saved for {info.label}: two processes differ by up to {whole.processes:.2%}, two groups "
        f"of {statistics.ENOUGH} by up to {whole.recordings:.2%} ({calibrations.path()})",
        err=True,
    )
