"""`matbench compare`: which of two kernels, timed in turns, or two record files is faster."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec.structs import replace

from matbench.cli import options
from matbench.cli.app import main
from matbench.cli.console import Interruption, progress, require_apart, say, say_printed
from matbench.cli.registry import FeatureOptions
from matbench.cli.selection import KernelFiles, kernel_names, read_for
from matbench.errors import UsageError
from matbench.kernelfile import revision, sweep
from matbench.kernelfile.includes import code_of
from matbench.model import Kernel, Problem
from matbench.records.comparison import ComparisonRecord

if TYPE_CHECKING:
    from matbench.analysis.statistics import ComparisonPlan

#: A baseline and a candidate.
Pair = tuple[Kernel, Kernel]
#: A pair at one problem, with values of constants.
Turns = tuple[Pair, Problem, dict[str, tuple[int, ...]]]

#: Longest time to time two kernels in turns, in seconds.
_TURNS_S = 10.0
#: Fewer pairs of sustained blocks, each of a second, cannot decide.
_LEAST_BLOCKS = 9


@main.command()
@click.argument(
    "contenders", nargs=-1, required=True, metavar="BASELINE CANDIDATE", shell_complete=kernel_names
)
@click.option(
    "--against",
    metavar="REV",
    help="Compare each FILE with FILE@REV, its version in git, such as main or HEAD~1.",
)
@options.grouped
def compare(
    contenders: tuple[str, ...],
    files: KernelFiles,
    sizes: options.SizeOptions,
    constants: options.ConstantOptions,
    device: options.DeviceOptions,
    launches: options.LaunchOptions,
    seconds: options.SustainedOptions,
    deadlines: options.DeadlineOptions,
    verdict: options.VerdictOptions,
    features: FeatureOptions,
    shown: options.CaseReportOptions,
    against: str | None,
) -> None:
    """Compare kernels or record files: is CANDIDATE FASTER, SLOWER or the SAME?

    Kernels run on the same inputs in turns, in random order. If both sweep a constant that --set
    gives, its values are compared one by one. Otherwise each kernel runs with its fastest
    parameters, and a note says which were tried. Record files (.jsonl) are compared case by case.

    \b
    matbench compare tiled shared-row
    matbench compare naive-2d tiled --set TILE=16,32 --fail-if-slower 5%
    matbench compare tiled.cu@v1.0 tiled.cu --fail-if-slower 3%
    matbench compare --against main tiled kahan --fail-if-slower 3%
    matbench compare old.jsonl new.jsonl --fail-if-slower 3%
    """
    if any(name.endswith(".jsonl") for name in contenders):
        _compare_files(contenders, verdict.threshold, features, shown)
        return
    named = files.loaded(contenders).named(dict.fromkeys(contenders))
    info = device.choose()
    launches.require_one_kind(info)
    remarks: list[str] = []
    if against is None:
        pairs = [_pair(contenders, named)]
    else:
        pairs = [*_versions(named, files, against, remarks)]
    kernels = list({kernel.name: kernel for pair in pairs for kernel in pair}.values())
    for kernel in kernels:
        options.require_turns(kernel, info)
    gate = features.get("gate")
    written = {"GITHUB_STEP_SUMMARY": gate and gate.summary, **shown.outputs}
    require_apart(written, read_for(kernels, contenders))

    from matbench.records.environment import run_environment
    from matbench.show import comparisons
    from matbench.worker.comparing import Bench
    from matbench.worker.worker import WorkerPool

    overrides = constants.values([*kernels, *named])  # also of one that has not changed
    rounds = _rounds(pairs, sizes.problems(kernels), overrides)
    plan = _plan(launches, verdict, seconds, rounds)
    how = launches.quick(sustained_s=seconds.sustained)
    records: list[ComparisonRecord] = []
    with (
        Interruption() as interruption,
        WorkerPool(how, deadlines.deadlines, say_printed) as pool,
        progress(len(rounds)) as display,
    ):
        bench = Bench(pool, info, plan, sizes.seed)
        for pair, problem, given in rounds:
            display.begin(f"{pair[1].name} against {pair[0].name} at {problem.size}")
            cases = (sweep.cases([kernel], [problem], given, info) for kernel in pair)
            records.append(bench.compare(*map(bench.fastest, cases)))
    if not records:
        interruption.exit(0, len(rounds), "comparisons")
    about = run_environment(sys.argv[1:], [info], sizes.recorded)
    shown.show(comparisons.report(records, [about], *([gate.refuses] if gate is not None else [])))
    if gate is not None:
        gate.summarize(records, [about], remarks)
    interruption.exit(len(records), len(rounds), "comparisons")
    _exit(records, gate, of_versions=against is not None)


def _pair(names: Sequence[str], kernels: Sequence[Kernel]) -> Pair:
    """The kernels to compare; one that is named twice is compared with itself."""
    if len(names) != 2:
        raise UsageError("name two kernels, or any number with --against")
    first, second = kernels[0], kernels[-1]
    if first.workload != second.workload:
        which = ", ".join(f"{one.name} computes {one.workload}" for one in kernels)
        raise UsageError(f"only kernels of one workload can be compared: {which}")
    if unlike := first.contract.unlike(second.contract):
        raise UsageError(
            f"{first.name} and {second.name} cannot be compared; {unlike}. "
            f"`matbench run` shows both in one table"
        )
    return first, second


def _versions(
    kernels: Sequence[Kernel], files: KernelFiles, since: str, remarks: list[str]
) -> Iterator[Pair]:
    """Each kernel that has changed since the revision, and its version as of then as the baseline.

    Prints and adds remarks on the others.
    """
    for kernel in kernels:
        old = files.as_of(revision.version(kernel, since))
        is_same = old is not None and code_of(replace(old, name=kernel.name)) == code_of(kernel)
        if old is None or is_same:
            what = "unchanged" if is_same else "new"
            remarks.append(f"{kernel.name}: {what} since {since}, not compared")
            say(remarks[-1], err=True)
            continue
        old = replace(old, name=f"{kernel.name}@{since}")
        if old.workload != kernel.workload:
            raise UsageError(f"{old.name} computes {old.workload}, and now {kernel.workload}")
        yield old, kernel


def _rounds(
    pairs: Sequence[Pair], problems: Sequence[Problem], overrides: dict[str, tuple[int, ...]]
) -> list[Turns]:
    """Each pair at each problem of its workload, with each value that both are given."""
    found = []
    for problem in problems:
        for pair in (pair for pair in pairs if pair[0].workload == problem.workload):
            constants = [{*kernel.sweep, *kernel.tune} for kernel in pair]
            shared = {n: overrides[n] for n in overrides if all(n in known for known in constants)}
            for fixed in sweep.combinations(shared):
                given = overrides | {name: (value,) for name, value in fixed.items()}
                found.append((pair, problem, given))
    return found


def _compare_files(
    names: Sequence[str],
    threshold: float,
    features: FeatureOptions,
    shown: options.CaseReportOptions,
) -> None:
    """Compare two record files; `UsageError` for options that say how kernels are measured."""
    if len(names) != 2 or not all(name.endswith(".jsonl") for name in names):
        raise UsageError("to compare record files, name two: OLD.jsonl NEW.jsonl")
    if "gate" not in features:
        raise UsageError("to compare record files, the feature `gate` is needed")
    context = click.get_current_context()
    groups = shown, features["gate"]
    apply = {"contenders", "threshold", *(own.name for group in groups for own in fields(group))}
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in apply and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[0]} is for kernels, not for record files")
    features["gate"].compare_files(*names, threshold, shown)


def _plan(
    launches: options.LaunchOptions,
    verdict: options.VerdictOptions,
    seconds: options.SustainedOptions,
    rounds: Sequence[Turns],
) -> ComparisonPlan:
    """How many pairs are taken; sustained ones are blocks of a second, all of which count."""
    from matbench.analysis.statistics import ComparisonPlan

    most_ns = 1e9 * (launches.max_time or _TURNS_S)
    if seconds.sustained is None:
        return ComparisonPlan(threshold=verdict.threshold, maximum_time_ns=most_ns)
    seconds.require_without(method=launches.method)
    for name in (kernel.name for pair, *_ in rounds for kernel in pair if kernel.kind.is_apart):
        raise UsageError(f"--sustained compares kernels; {name} is a function: use `matbench run`")
    if any(problem.beta for _, problem, _ in rounds):
        raise UsageError("--sustained needs beta = 0: else each launch adds to C of the last")
    pairs = max(_LEAST_BLOCKS, math.ceil(seconds.sustained))
    return ComparisonPlan((pairs,), verdict.threshold)


def _exit(records: list[ComparisonRecord], gate: Any, *, of_versions: bool) -> None:
    """Exit 1 if a kernel was wrong, or as the gate says, if there is one.

    A version that was wrong does not count against one that is right.
    """
    before = [record.baseline.is_broken for record in records]
    now = any(record.candidate.is_broken for record in records)
    if of_versions and all(before) and not now:
        return
    broken = now or (any(before) and not of_versions)
    if gate is not None:
        gate.exit(records, broken=broken)
    sys.exit(broken)
