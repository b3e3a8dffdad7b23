"""`matbench tune`: find the fastest values of a kernel's constants."""

from __future__ import annotations

import sys

import click

from matbench.cli import options
from matbench.cli.app import main
from matbench.cli.console import Interruption, require_apart, say, write_file
from matbench.cli.selection import KernelFiles, kernel_argument, read_for
from matbench.errors import UsageError
from matbench.records.outcome import Outcome
from matbench.show import safe
from matbench.show.reasons import skip_reason

_SHOWN_BROKEN = 5


@main.command()
@kernel_argument
@options.grouped
@click.option(
    "--budget",
    metavar="N|TIME",
    help="Budget for each size: a count of candidates (200), or about how long all may take (90s, "
    "10m, 1h). Default: unlimited.",
)
@click.option(
    "--write", is_flag=True, help="Make the winner's values the only ones in [sweep] of the table."
)
def tune(
    kernel: str, files: KernelFiles, sizes: options.SizeOptions, constants: options.ConstantOptions,
    device: options.DeviceOptions, deadlines: options.DeadlineOptions, budget: str | None,
    write: bool, shown: options.ReportOptions,
) -> None:  # fmt: skip
    """Find the fastest values of KERNEL's constants.

    Every legal combination of [sweep] and [tune] is checked and sampled
    briefly, in random order (--seed); slow ones are dropped early. The finalists are measured in
    full and compared in turns. The winner must be FASTER than the best default parameters.

    \b
    matbench tune tiled --sizes 1000,4096
    matbench tune warp-tiled --sizes 4096 --budget 5m
    matbench tune mine.cu --sizes 1000 --set TILE=4,8,16,32 --write
    """
    chosen = files.one(kernel)
    overrides = constants.values([chosen])
    if not (chosen.sweep or chosen.tune):
        raise UsageError(f"{chosen.name} has no constants to tune")
    require_apart(shown.outputs, read_for([chosen]))

    from matbench.features.tune import search as tuning
    from matbench.features.tune import view, writing
    from matbench.features.tune.search_space import space
    from matbench.records.environment import run_environment

    bounds = tuning.parse_budget(budget)
    problems = sizes.problems([chosen])
    path = writing.place(chosen) if write else None
    if write and len(problems) > 1:
        raise UsageError("--write takes the winner of one size; give one, as in --sizes 4096")
    infos = device.choose_alike(chosen)
    spaces = [
        space(chosen, problem, infos[0], overrides, sizes.seed, bounds.candidates)
        for problem in problems
    ]
    excluded = [
        f"{len(skips):,} excluded: {skip_reason(*skips)}"
        for space in spaces
        if not space.cases
        for skips in sorted(space.refused, key=len, reverse=True)
    ]
    for reason in dict.fromkeys(excluded):
        say(reason, err=shown.fmt != "rich")

    searches = [tuning.TuningSearch(space, bounds) for space in spaces]
    with Interruption() as interruption:
        tuning.run(searches, infos, deadlines.deadlines)
    done = sum(search.complete for search in searches)
    standings = [standing for search in searches for standing in search.standings]
    if not standings:
        interruption.exit(done, len(searches), "sizes")
    about = run_environment(sys.argv[1:], infos, sizes.recorded)
    shown.show(view.report([one for each in searches for one in each.records()], [about]))
    _tell_broken([one.outcome for one in standings if one.outcome.is_broken])
    for leader in filter(None, (search.leader() for search in searches)):
        values = " ".join(f"--set {name}={value}" for name, value in leader.case.params.items())
        say(f"to use it at {leader.case.problem.size}: {values}", err=True)
    if path is not None and searches[0].winner is not None:
        if files.one(kernel).sha256 != chosen.sha256:
            raise UsageError(f"--write: {chosen.path} changed during the search; tune it again")
        write_file(path, writing.written(chosen, path, searches[0].winner.case.params))
        say(f"wrote {path}", err=True)
    interruption.exit(done, len(searches), "sizes")
    if not standings or any(one.candidates and not one.leader() for one in searches):
        sys.exit(1)


def _tell_broken(broken: list[Outcome]) -> None:
    for outcome in broken[:_SHOWN_BROKEN]:
        first, _, _ = (outcome.reason or "").partition("\n")
        say(safe.line(f"{outcome.case.label} is {outcome.status}: {first}"), err=True)
    if len(broken) > _SHOWN_BROKEN:
        say(f"and {len(broken) - _SHOWN_BROKEN} more were wrong or failed", err=True)
