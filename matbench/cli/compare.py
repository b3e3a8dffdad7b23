"""`matbench compare`: which of two kernels, or of two record files, is faster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from matbench.cli.app import main
from matbench.cli.options import (
    Seconds,
    Share,
    deadline_options,
    device_options,
    format_option,
    kernel_file_options,
    kernel_names,
    launch_options,
    problem_options,
)
from matbench.cli.shared import (
    Interruption,
    catalogue_of,
    deadlines_of,
    fastest,
    named_kernels,
    problems_of,
    progress,
    require_one_kind,
    show_report,
    show_rich,
)
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.measure.bench import Duel
    from matbench.model import Inputs, Kernel
    from matbench.show.report import ComparisonRow


#: So many cases that one of two record files lacks are named.
_SHOWN_LABELS = 8


@main.command()
@click.argument(
    "contenders",
    nargs=-1,
    required=True,
    metavar="BASELINE CANDIDATE",
    shell_complete=kernel_names,
)
@click.option("--matrix", is_flag=True, help="Compare any number of kernels, each with each.")
@kernel_file_options
@problem_options
@device_options
@click.option(
    "--threshold",
    type=Share(),
    default="1%",
    show_default=True,
    metavar="SHARE",
    help="Within it the two count as the SAME.",
)
@launch_options
@click.option(
    "--max-time",
    type=Seconds(),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Take turns no longer than this, for each pair and size.",
)
@click.option(
    "--fail-if-slower",
    type=Share(),
    metavar="SHARE",
    help="Exit 1 when the candidate is SLOWER by more than this, as in 5%.",
)
@click.option(
    "--force", is_flag=True, help="Judge record files although their environments differ."
)
@format_option
@deadline_options
def compare(
    contenders: tuple[str, ...],
    matrix: bool,
    kernel_files: tuple[str, ...],
    kernels_dir: str | None,
    sizes: str | None,
    tiles: str | None,
    settings: tuple[str, ...],
    inputs: Inputs | None,
    seed: int,
    backend: str,
    device: str | None,
    threshold: float,
    cold: bool,
    hot: bool,
    graph: bool,
    max_time: float,
    fail_if_slower: float | None,
    force: bool,
    fmt: str,
    timeout: float,
    build_timeout: float,
) -> None:
    """Compare two kernels: is CANDIDATE FASTER, SLOWER or the SAME?

    Both run on the same inputs in turns, in random order. Values of a constant that both sweep and
    that --tiles or --set names are compared one by one; otherwise each kernel runs at its fastest,
    and a note says of what.

    Two record files are compared case by case: exit 3 with --fail-if-slower when they come from
    environments that differ.

    \b
    matbench compare tiled shared-row
    matbench compare naive-2d tiled --tiles 16,32 --fail-if-slower 5%
    matbench compare --matrix tiled naive-2d shared-row
    matbench compare old.jsonl new.jsonl --fail-if-slower 3%
    """
    from itertools import combinations

    from matbench import backends
    from matbench.analysis import comparison
    from matbench.analysis.statistics import ComparisonPlan
    from matbench.kernelfile import sweep
    from matbench.measure.bench import Options
    from matbench.measure.worker import Crew
    from matbench.records import results
    from matbench.show import report

    if all(name.endswith(".jsonl") for name in contenders) and len(contenders) == 2:
        _compare_files(contenders[0], contenders[1], threshold, fail_if_slower, force, fmt)
        return
    if len(contenders) < 2 or (len(contenders) > 2 and not matrix):
        raise UsageError("compare takes two kernels, or two .jsonl files; --matrix takes more")
    records = [name for name in contenders if name.endswith(".jsonl")]
    if records:
        raise UsageError(f"{records[0]}: record files are compared with one another, two at a time")
    catalogue, _ = catalogue_of(kernel_files, kernels_dir)
    chosen = named_kernels(list(dict.fromkeys(contenders)), catalogue)
    if len(chosen) < 2:
        chosen *= 2  # a kernel against itself: what noise looks like
    for kernel in chosen:
        if kernel.on_host:
            raise UsageError(f"{kernel.name} runs on the host alone; `matbench run` shows it")
    overrides = sweep.parse_settings(settings, tiles, chosen)
    if len({kernel.workload for kernel in chosen}) > 1:
        each = ", ".join(f"{kernel.name} is of {kernel.workload}" for kernel in chosen)
        raise UsageError(f"only kernels of one workload can be compared: {each}")
    problems = problems_of(chosen, sizes, inputs, seed)
    info = backends.choose(backend, device)
    require_one_kind(cold, hot, graph, info)
    plan = ComparisonPlan(threshold=threshold, maximum_time_ns=max_time * 1e9)
    options = Options(
        blocks=False,
        precision=0.05,
        max_time_s=0.3,
        minimum_samples=3,
        cold=not hot,
        hot=hot,
        graph=graph,
    )
    rounds = [
        (pair, problem, overrides | {name: (value,) for name, value in fixed.items()})
        for problem in problems
        for pair in combinations(chosen, 2)
        for fixed in sweep.combinations(_shared(pair, overrides))
    ]
    rows: list[ComparisonRow] = []
    duels: list[Duel] = []
    deadlines = deadlines_of(timeout, build_timeout)
    with (
        Interruption() as interruption,
        Crew(options, deadlines) as crew,
        progress(len(rounds)) as advance,
    ):
        worker = crew.worker(info)
        for pair, problem, given in rounds:
            advance(f"{pair[0].name} against {pair[1].name} at {problem.size}")
            (first, of_first), (second, of_second) = (
                fastest(worker, sweep.cases([kernel], [problem], given, info)) for kernel in pair
            )
            duels.append(worker.compare(first, second, plan, seed))
            notes = tuple(dict.fromkeys(filter(None, (of_first, of_second))))
            rows.append(comparison.row_of(duels[-1], notes))
    if not rows:
        interruption.exit(0, len(rounds), "comparisons")
    about = results.environment(sys.argv[1:], [info], {"seed": seed, "inputs": inputs or "default"})
    if matrix and fmt == "rich":
        show_rich(*report.matrix(rows, [kernel.name for kernel in chosen]))
    else:
        show_report(report.comparison_report(rows, [about]), fmt)
    interruption.exit(len(rows), len(rounds), "comparisons")
    bad = any(o.status in ("wrong", "failed") for d in duels for o in (d.baseline, d.candidate))
    _exit_if_slower(rows, fail_if_slower, bad=bad)


def _exit_if_slower(
    rows: Sequence[ComparisonRow], fail_if_slower: float | None, *, bad: bool
) -> None:
    """Exit 1 for what is wrong or too slow, and where --fail-if-slower had nothing to judge."""
    from matbench.analysis import comparison

    if bad or any(comparison.is_too_slow(row, fail_if_slower) for row in rows):
        sys.exit(1)
    if fail_if_slower is not None and not any(row.verdict for row in rows):
        click.echo("no verdict: --fail-if-slower had nothing to judge", err=True)
        sys.exit(1)


def _shared(
    pair: tuple[Kernel, Kernel], overrides: dict[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The constants given on the command line that both kernels sweep."""
    return {
        name: values
        for name, values in overrides.items()
        if all(name in (*kernel.sweep, *kernel.tune) for kernel in pair)
    }


def _compare_files(
    old: str, new: str, threshold: float, fail_if_slower: float | None, force: bool, fmt: str
) -> None:
    """Cases of two record files; what differs between their environments is said first."""
    from matbench.analysis import comparison
    from matbench.records import results
    from matbench.show import report

    notes: list[str] = []
    first, second = results.read(Path(old), notes), results.read(Path(new), notes)
    joined = comparison.compare_records(first, second, (old, new), threshold)
    for line in (*notes, *joined.differences):
        click.echo(f"note: {line}", err=True)
    show_report(report.comparison_report(joined.rows, second[0]), fmt)
    for file, labels in ((old, joined.only_old), (new, joined.only_new)):
        if labels:
            shown = ", ".join(labels[:_SHOWN_LABELS])
            more = len(labels) - _SHOWN_LABELS
            rest = f" and {more:,} more" if more > 0 else ""
            click.echo(f"only in {file}: {shown}{rest}", err=True)
    for line in joined.broken:
        click.echo(line, err=True)
    if fail_if_slower is None:
        return
    if not comparison.comparable(joined) and not force:
        click.echo("not comparable: the environments differ; --force judges them anyway", err=True)
        sys.exit(3)
    _exit_if_slower(joined.rows, fail_if_slower, bad=bool(joined.broken))
