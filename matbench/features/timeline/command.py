"""`matbench blocks`: how long each block of one launch took, and where it ran."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from matbench.cli.app import main
from matbench.cli.console import Interruption, say_printed, show_report
from matbench.cli.kernel_files import KernelFiles, kernel_argument
from matbench.cli.options import (
    ConstantOptions,
    DeadlineOptions,
    DeviceOptions,
    LaunchOptions,
    SizeOptions,
    format_option,
    grouped,
)
from matbench.cli.outputs import require_apart
from matbench.cli.progress import progress
from matbench.errors import UsageError
from matbench.features.page.command import write_page


@main.command("blocks")
@kernel_argument
@grouped
@click.option(
    "--timeline",
    metavar="FILE",
    help="Draw a timeline of the blocks to FILE (.svg, .png, or .html for a page), replacing it if "
    "it exists.",
)
@format_option
def profile_blocks(
    kernel: str,
    files: KernelFiles,
    sizes: SizeOptions,
    constants: ConstantOptions,
    device: DeviceOptions,
    deadlines: DeadlineOptions,
    timeline: str | None,
    fmt: str,
) -> None:
    """Time each block of one launch: how long, and where it ran.

    An instrumented second build reads the device's clocks before and after each block; its overhead
    is shown. The kernel file is not changed. --format csv lists each block's timestamps.

    \b
    matbench blocks tiled --sizes 1000 --set TILE=16
    matbench blocks mine.cu --timeline mine.html
    """
    from matbench.features.charts import drawing
    from matbench.features.timeline import clocking, picture, view
    from matbench.features.timeline.profile import analyse
    from matbench.kernelfile import sweep
    from matbench.records import provenance
    from matbench.show import outcomes
    from matbench.worker.comparing import Bench
    from matbench.worker.worker import WorkerPool

    if timeline is not None:
        drawing.require(Path(timeline), ".html")
    chosen = files.one(kernel)
    require_apart({"--timeline": timeline}, files.read_for([chosen]))
    if not chosen.kind.has_source:
        raise UsageError(f"{chosen.name} is {chosen.kind.called}; its blocks cannot be timed")
    problem = sizes.one_problem(chosen)
    info = device.choose(chosen)
    cases = sweep.cases([chosen], [problem], constants.values([chosen]), info)
    options = LaunchOptions(cold=True, hot=False, graph=False, max_time=None).quick(blocks=True)
    with (
        Interruption() as interruption,
        WorkerPool(options, deadlines.deadlines, say_printed) as pool,
        progress(1) as display,
    ):
        display.begin(f"{chosen.name} at {problem.size}")
        case = Bench(pool, info).fastest(cases).case
        outcome, stamps = clocking.clocked(pool.worker(info), case)
    interruption.exit(0, 1, "cases")
    about = provenance.environment(sys.argv[1:], [info], sizes.recorded)
    if stamps is None or case.launch is None:
        show_report(outcomes.report([outcome], [about]), fmt)
        sys.exit(0 if outcome.status == "skipped" else 1)
    profile = analyse(stamps, case.launch, info)
    if timeline is not None:
        path = Path(timeline)
        if drawing.suffix(path) == "html":
            write_page(path, [outcome], [about], [(profile, [outcome])])
        else:
            picture.draw(profile, path, case.label)
    show_report(view.recorded([(profile, [outcome])], [about], stamps), fmt)
