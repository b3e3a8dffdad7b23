"""`matbench blocks`: how long each block of one launch took, and where."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from matbench.cli.app import main
from matbench.cli.options import (
    Format,
    deadline_options,
    device_options,
    one_kernel,
    size_option,
)
from matbench.cli.shared import (
    Interruption,
    deadlines_of,
    fastest,
    one_kernel_of,
    problems_of,
    progress,
    show_report,
    show_rich,
)
from matbench.errors import UsageError


@main.command("blocks")
@one_kernel
@size_option
@click.option("--tile", metavar="T", help="The value of TILE; the fastest of all when not given.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of another swept constant; repeatable.",
)
@device_options
@click.option(
    "--timeline",
    metavar="FILE",
    help="Draw when each block ran: .svg, .png, or .html to look closer; replaces the file.",
)
@click.option(
    "--format",
    "fmt",
    type=Format(),
    default="rich",
    show_default=True,
    metavar="FORMAT",
    help="rich, json, csv (each block's stamps), or one of tabulate's: plain, github, html …",
)
@deadline_options
def profile_blocks(
    kernel: str,
    kernel_files: tuple[str, ...],
    kernels_dir: str | None,
    size: str | None,
    tile: str | None,
    settings: tuple[str, ...],
    backend: str,
    device: str | None,
    timeline: str | None,
    fmt: str,
    timeout: float,
    build_timeout: float,
) -> None:
    """Clock the blocks of one launch: how long each took, where, and what that means.

    The kernel file is not changed: a second build of it reads the device's clocks around each
    block, and what that costs is shown.

    \b
    matbench blocks tiled --size 1000 --tile 16
    matbench blocks mine.cu --timeline mine.html
    """
    from matbench import backends
    from matbench.analysis import blocks
    from matbench.kernelfile import sweep
    from matbench.measure.bench import Options
    from matbench.measure.worker import Crew
    from matbench.records import results
    from matbench.show import plots, report

    if timeline is not None:
        plots.require(Path(timeline), plots.TIMELINE_SUFFIXES, (kernel, *kernel_files))
    chosen = one_kernel_of(kernel, kernel_files, kernels_dir)
    if chosen.library is not None:
        raise UsageError(f"{chosen.name} is a library's product; it has no blocks")
    problems = problems_of([chosen], size)
    if size is None:
        problems = problems[-1:]
    if len(problems) > 1:
        raise UsageError(f"--size {size!r}: one size at a time")
    overrides = sweep.parse_settings(settings, None, [chosen])
    if tile is not None:
        if "TILE" not in (*chosen.sweep, *chosen.tune):
            raise UsageError(f"--tile {tile!r}: {chosen.name} has no TILE; leave it away")
        overrides["TILE"] = sweep.parse_values("--tile", tile)
    info = backends.host_device() if chosen.on_host else backends.choose(backend, device)
    cases = sweep.cases([chosen], problems, overrides, info)
    options = Options(precision=0.05, max_time_s=0.3, minimum_samples=3)
    deadlines = deadlines_of(timeout, build_timeout)
    with (
        Interruption() as interruption,
        Crew(options, deadlines) as crew,
        progress(1) as advance,
    ):
        advance(f"{chosen.name} at {problems[0].size}")
        case, _ = fastest(crew.worker(info), cases)
        outcome, sample = crew.worker(info).profile(case)
    interruption.exit(0, 1, "cases")
    about = results.environment(sys.argv[1:], [info], {})
    if sample is None or case.launch is None:
        show_report(report.outcome_report([outcome], [about]), fmt)
        sys.exit(0 if outcome.status == "skipped" else 1)
    profile = blocks.analyse(sample, case.launch, info)
    if timeline is not None:
        plots.timeline(sample, profile, Path(timeline), case.label)
    if fmt == "rich":
        show_rich(*report.block_renderables(profile, case.label))
    elif fmt == "json":
        click.echo(results.array([about, outcome, profile]))
    elif fmt == "csv":
        click.echo(report.block_csv(sample, case.launch))
    else:
        click.echo(report.block_text(profile, case.label, fmt))
