"""`matbench tune`: the fastest values of a kernel's constants, found and kept."""

from __future__ import annotations

import sys

import click

from matbench.cli.app import main
from matbench.cli.options import (
    deadline_options,
    device_options,
    format_option,
    one_kernel,
    problem_options,
)
from matbench.cli.shared import (
    Interruption,
    deadlines_of,
    one_kernel_of,
    problems_of,
    progress,
    show_report,
)
from matbench.errors import UsageError
from matbench.model import Inputs


@main.command()
@one_kernel
@problem_options
@device_options
@click.option(
    "--budget",
    metavar="N|TIME",
    help="What the first looks may take: 200 candidates, or 90s, 10m, 1h. All, when not given.",
)
@click.option("--why", is_flag=True, help="Say which conditions refused how many combinations.")
@format_option
@deadline_options
def tune(
    kernel: str,
    kernel_files: tuple[str, ...],
    kernels_dir: str | None,
    sizes: str | None,
    tiles: str | None,
    settings: tuple[str, ...],
    inputs: Inputs | None,
    seed: int,
    backend: str,
    device: str | None,
    budget: str | None,
    why: bool,
    fmt: str,
    timeout: float,
    build_timeout: float,
) -> None:
    """Find the fastest values of KERNEL's constants, and keep them for `run --tuned`.

    Every legal combination of [sweep] and [tune] is checked and looked at, in an order drawn with
    --seed; losers are left early. The last ones are measured in full and take turns, and the winner
    must be faster than what a bare run takes beyond doubt.

    \b
    matbench tune tiled --sizes 1000,4096
    matbench tune warp-tiled --sizes 4096 --budget 5m --why
    matbench tune mine.cu --set TILE=4,8,16,32
    """
    from matbench import backends
    from matbench.kernelfile import sweep
    from matbench.measure import tune as tuning
    from matbench.measure.bench import Options
    from matbench.measure.worker import Crew
    from matbench.records import results
    from matbench.show import report

    bounds = tuning.parse_budget(budget)
    chosen = one_kernel_of(kernel, kernel_files, kernels_dir)
    overrides = sweep.parse_settings(settings, tiles, [chosen])
    if not (chosen.sweep or chosen.tune):
        raise UsageError(f"{chosen.name} has no constants to tune")
    problems = problems_of([chosen], sizes, inputs, seed)
    info = backends.host_device() if chosen.on_host else backends.choose(backend, device)
    spaces = [tuning.space(chosen, problem, info, overrides, seed) for problem in problems]
    said = [
        f"{refused.many:,} refused: {refused.example}"
        for space in spaces
        if why or not space.cases
        for refused in sorted(space.refused.values(), reverse=True)
    ]
    for line in dict.fromkeys(said):
        click.echo(line, err=fmt != "rich")
    searches = [tuning.Search(space, bounds) for space in spaces]
    store, kept = tuning.Store(), []
    store.require()
    total = sum(search.steps for search in searches)
    deadlines = deadlines_of(timeout, build_timeout)
    with (
        Interruption() as interruption,
        Crew(Options(blocks=False), deadlines) as crew,
        progress(total) as advance,
    ):
        for search in searches:
            if search.space.cases:
                search.run(crew.worker(info), crew.builders, advance)
    done = sum(search.complete for search in searches)
    if not any(search.standings for search in searches):
        interruption.exit(done, len(searches), "sizes")
    about = results.environment(sys.argv[1:], [info], {"seed": seed, "inputs": inputs})
    show_report(report.tuning_report(tuning.rows(searches), [about]), fmt)
    broken = [standing for search in searches for standing in search.broken()]
    for standing in broken[:5]:
        outcome = standing.outcome
        first = (outcome.reason or "").partition("\n")[0]
        click.echo(f"{standing.case.label} is {outcome.status}: {first}", err=True)
    if len(broken) > 5:
        click.echo(f"and {len(broken) - 5} more that were wrong or failed", err=True)
    for search in searches:  # at last, so that a full disk takes nothing but this
        winner = tuning.tuned(search, info)
        if winner is not None and store.keep(winner):
            kept.append(winner.problem.size)
    if kept:
        click.echo(f"kept for `matbench run --tuned`: {', '.join(kept)} ({store.path})", err=True)
    interruption.exit(done, len(searches), "sizes")
    if any(search.is_fruitless() for search in searches):
        sys.exit(1)
