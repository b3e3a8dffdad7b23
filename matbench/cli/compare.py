"""`matbench compare`: which of two kernels is faster, timed in turns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import click

from matbench.cli.app import main
from matbench.cli.console import Interruption, progress, say, say_printed, show_report, show_rich
from matbench.cli.kernel_files import KernelFiles, kernel_names
from matbench.cli.options import (
    ConstantOptions,
    DeadlineOptions,
    DeviceOptions,
    LaunchOptions,
    SizeOptions,
    format_option,
    grouped,
    renamed,
)
from matbench.cli.types import Share
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.model import Kernel
    from matbench.records.comparison import ComparisonRecord

#: Longest time to time two kernels in turns, in seconds.
_TURNS_S = 10.0

threshold_option = click.option(
    "--threshold",
    type=Share(),
    default="1%",
    show_default=True,
    metavar="SHARE",
    help="Largest difference that counts as SAME.",
)
fail_if_slower_option = click.option(
    "--fail-if-slower",
    type=Share(),
    metavar="SHARE",
    help="Exit 1 if the candidate is SLOWER by more than this, such as 5%.",
)


@main.command()
@click.argument(
    "contenders",
    nargs=-1,
    required=True,
    metavar="BASELINE CANDIDATE",
    shell_complete=kernel_names,
)
@click.option("--matrix", is_flag=True, help="Compare any number of kernels pairwise.")
@grouped(
    files=KernelFiles,
    sizes=SizeOptions,
    constants=ConstantOptions,
    device=DeviceOptions,
    launches=LaunchOptions,
    deadlines=DeadlineOptions,
)
@threshold_option
@fail_if_slower_option
@format_option
@renamed("--force", "`matbench diff OLD.jsonl NEW.jsonl --ignore-environment`", is_flag=True)
def compare(
    contenders: tuple[str, ...],
    matrix: bool,
    files: KernelFiles,
    sizes: SizeOptions,
    constants: ConstantOptions,
    device: DeviceOptions,
    launches: LaunchOptions,
    deadlines: DeadlineOptions,
    threshold: float,
    fail_if_slower: float | None,
    fmt: str,
) -> None:
    """Compare two kernels: is CANDIDATE FASTER, SLOWER or the SAME?

    Both run on the same inputs in turns, in random order. If both sweep a constant that --set
    gives, its values are compared one by one. Otherwise each kernel runs with its fastest
    parameters, and a note says which were tried.

    \b
    matbench compare tiled shared-row
    matbench compare naive-2d tiled --set TILE=16,32 --fail-if-slower 5%
    matbench compare --matrix tiled naive-2d shared-row
    """
    import msgspec

    from matbench.analysis.statistics import ComparisonPlan
    from matbench.kernelfile import sweep
    from matbench.measure.quick_look import fastest
    from matbench.measure.worker import Crew
    from matbench.records import provenance
    from matbench.show import comparisons

    chosen = _contenders(contenders, files, matrix=matrix)
    overrides = constants.values(chosen)
    problems = sizes.problems(chosen)
    info = device.choose()
    launches.require_one_kind(info)
    plan = ComparisonPlan(
        threshold=threshold, maximum_time_ns=(launches.max_time or _TURNS_S) * 1e9
    )
    rounds = [
        (pair, problem, overrides | {name: (value,) for name, value in fixed.items()})
        for problem in problems
        for pair in combinations(chosen, 2)
        for fixed in sweep.combinations(_shared(pair, overrides))
    ]
    records: list[ComparisonRecord] = []
    with (
        Interruption() as interruption,
        Crew(launches.quick(), deadlines.deadlines, say_printed) as crew,
        progress(len(rounds)) as advance,
    ):
        worker = crew.worker(info)
        for pair, problem, given in rounds:
            advance(f"{pair[0].name} against {pair[1].name} at {problem.size}")
            (first, of_first), (second, of_second) = (
                fastest(worker, sweep.cases([kernel], [problem], given, info)) for kernel in pair
            )
            found = worker.compare(first, second, plan, sizes.seed)
            notes = tuple(dict.fromkeys(filter(None, (of_first, of_second))))
            records.append(msgspec.structs.replace(found, notes=notes))
    if not records:
        interruption.exit(0, len(rounds), "comparisons")
    about = provenance.environment(sys.argv[1:], [info], sizes.recorded)
    if matrix and fmt == "rich":
        show_rich(*comparisons.matrix(records, [kernel.name for kernel in chosen]))
    else:
        show_report(comparisons.report(records, [about]), fmt)
    interruption.exit(len(records), len(rounds), "comparisons")
    sides = [side for record in records for side in (record.baseline, record.candidate)]
    broken = any(side.status in ("wrong", "failed") for side in sides)
    exit_if_slower(records, fail_if_slower, broken=broken)


def _contenders(names: tuple[str, ...], files: KernelFiles, *, matrix: bool) -> list[Kernel]:
    """The kernels to compare; a kernel named twice is compared with itself."""
    if any(name.endswith(".jsonl") for name in names):
        raise UsageError("to compare record files, use `matbench diff OLD.jsonl NEW.jsonl`")
    if len(names) < 2 or (len(names) > 2 and not matrix):
        raise UsageError("name two kernels, or any number with --matrix")
    chosen = files.named(list(dict.fromkeys(names)))
    for kernel in chosen:
        if kernel.on_host:
            raise UsageError(f"{kernel.name} runs only on the host; use `matbench run`")
    if len({kernel.workload for kernel in chosen}) > 1:
        each = ", ".join(f"{kernel.name} computes {kernel.workload}" for kernel in chosen)
        raise UsageError(f"only kernels of one workload can be compared: {each}")
    return chosen if len(chosen) > 1 else chosen * 2


def _shared(
    pair: tuple[Kernel, Kernel], overrides: dict[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The constants given on the command line that both kernels sweep."""
    return {
        name: values
        for name, values in overrides.items()
        if all(name in (*kernel.sweep, *kernel.tune) for kernel in pair)
    }


def exit_if_slower(
    records: Sequence[ComparisonRecord], fail_if_slower: float | None, *, broken: bool
) -> None:
    """Exit 1 if a result is wrong or too slow, or if --fail-if-slower had nothing to judge."""
    from matbench.analysis import comparison

    if broken or any(comparison.is_too_slow(record, fail_if_slower) for record in records):
        sys.exit(1)
    if fail_if_slower is not None and not any(record.verdict for record in records):
        say("no verdict: --fail-if-slower had nothing to judge", err=True)
        sys.exit(1)
