"""`matbench blocks`: how long each block of one launch took, and where it ran."""

from __future__ import annotations

import sys

from matbench.cli import options
from matbench.cli.app import main
from matbench.cli.console import Interruption, progress, require_apart, say_printed
from matbench.cli.selection import KernelFiles, kernel_argument, read_for
from matbench.errors import UsageError


@main.command("blocks")
@kernel_argument
@options.grouped
def profile_blocks(
    kernel: str, files: KernelFiles, sizes: options.SizeOptions, constants: options.ConstantOptions,
    device: options.DeviceOptions, deadlines: options.DeadlineOptions, shown: options.ReportOptions,
) -> None:  # fmt: skip
    """Time each block of one launch: how long, and where it ran.

    An instrumented second build reads the device's clocks before and after each block; its overhead
    is shown. The kernel file is not changed. --format csv lists each block's timestamps.

    \b
    matbench blocks tiled --sizes 1000 --set TILE=16
    matbench blocks mine.cu --picture mine.svg
    """
    chosen = files.one(kernel)
    require_apart(shown.outputs, read_for([chosen]))
    if not chosen.kind.has_source:
        raise UsageError(f"{chosen.name} is {chosen.kind.called}; its blocks cannot be timed")

    from matbench.features.timeline import clocking, view
    from matbench.features.timeline.profile import analyse
    from matbench.kernelfile import sweep
    from matbench.records.environment import run_environment
    from matbench.show import outcomes
    from matbench.worker.comparing import Bench
    from matbench.worker.worker import WorkerPool

    problem = sizes.one_problem(chosen)
    info = device.choose(chosen)
    cases = sweep.cases([chosen], [problem], constants.values([chosen]), info)
    how = options.LaunchOptions(method=("cold",), max_time=None).quick(blocks=True)
    with (
        Interruption() as interruption,
        WorkerPool(how, deadlines.deadlines, say_printed) as pool,
        progress(1) as display,
    ):
        display.begin(f"{chosen.name} at {problem.size}")
        case = Bench(pool, info).fastest(cases).case
        outcome, stamps = clocking.clocked(pool.worker(info), case)
    interruption.exit(0, 1, "cases")
    about = run_environment(sys.argv[1:], [info], sizes.recorded)
    if stamps is None or case.launch is None:
        shown.show(outcomes.report([outcome], [about]))
        sys.exit(0 if outcome.status == "skipped" else 1)
    shown.show(view.recorded([(analyse(stamps, case.launch, info), [outcome])], [about], stamps))
