"""`matbench compare`: which of two kernels is faster, timed in turns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from matbench import temporary
from matbench.cli.app import main
from matbench.cli.console import Interruption, say, say_printed, show_report
from matbench.cli.kernel_files import KernelFiles, is_path, kernel_names
from matbench.cli.options import (
    ConstantOptions,
    DeadlineOptions,
    DeviceOptions,
    LaunchOptions,
    SizeOptions,
    VerdictOptions,
    format_option,
    grouped,
)
from matbench.cli.outputs import require_apart
from matbench.cli.progress import progress
from matbench.cli.registry import FeatureOptions
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.analysis.statistics import ComparisonPlan
    from matbench.measure.worker import Worker
    from matbench.model import Kernel, Problem
    from matbench.records.comparison import ComparisonRecord

#: Longest time to time two kernels in turns, in seconds.
_TURNS_S = 10.0


@main.command()
@click.argument(
    "contenders",
    nargs=-1,
    required=True,
    metavar="BASELINE CANDIDATE",
    shell_complete=kernel_names,
)
@click.option("--matrix", is_flag=True, help="Compare any number of kernels pairwise.")
@click.option(
    "--against",
    metavar="REV",
    help="Compare each kernel with its file as of a git revision, such as main or HEAD~1.",
)
@grouped
@format_option
def compare(
    contenders: tuple[str, ...],
    matrix: bool,
    against: str | None,
    files: KernelFiles,
    sizes: SizeOptions,
    constants: ConstantOptions,
    device: DeviceOptions,
    launches: LaunchOptions,
    deadlines: DeadlineOptions,
    verdict: VerdictOptions,
    features: FeatureOptions,
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
    matbench compare old/tiled.cu new/tiled.cu --fail-if-slower 3%
    matbench compare --against main tiled kahan --fail-if-slower 3%
    """
    from matbench.analysis.statistics import ComparisonPlan
    from matbench.measure.worker import WorkerPool
    from matbench.records import provenance
    from matbench.show import comparisons

    info = device.choose()
    launches.require_one_kind(info)
    with ExitStack() as stack:
        if against is None:
            pairs, remarks = _pairs(contenders, files, matrix=matrix)
        else:
            folder = stack.enter_context(temporary.folder())
            pairs, remarks = _versions(contenders, files, against, folder)
        kernels = _kernels(pairs, features, files, contenders)
        rounds = _rounds(pairs, sizes.problems(kernels), constants.values(kernels))
        most_s = launches.max_time or _TURNS_S
        plan = ComparisonPlan(threshold=verdict.threshold, maximum_time_ns=most_s * 1e9)
        records: list[ComparisonRecord] = []
        interruption = stack.enter_context(Interruption())
        pool = stack.enter_context(WorkerPool(launches.quick(), deadlines.deadlines, say_printed))
        display = stack.enter_context(progress(len(rounds)))
        for turns in rounds:
            display.begin(turns.label)
            records.append(turns.taken(pool.worker(info), plan, sizes.seed))
    if not records:
        interruption.exit(0, len(rounds), "comparisons")
    about = provenance.environment(sys.argv[1:], [info], sizes.recorded)
    view = comparisons.matrix if matrix and fmt == "rich" else comparisons.report
    show_report(view(records, [about]), fmt)
    if gate := features.get("gate"):
        gate.summarize(records, [about], remarks)
    interruption.exit(len(records), len(rounds), "comparisons")
    _exit(records, gate, of_versions=against is not None)


def _kernels(
    pairs: list[_Pair], features: FeatureOptions, files: KernelFiles, contenders: Sequence[str]
) -> list[Kernel]:
    """The kernels of all sides; `UsageError` if the summary would replace a file that is read."""
    kernels = [side.kernel for side in _sides(pairs)]
    read = [*files.read_for(kernels), *map(Path, filter(is_path, contenders))]
    require_apart({"--summary": features.value("gate", "summary")}, read)
    return kernels


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


class _Side(NamedTuple):
    """A kernel, or a version of one, and its name in the table."""

    kernel: Kernel
    label: str


_Pair = tuple[_Side, _Side]


class _Turns(NamedTuple):
    """A pair at one problem, with values of constants."""

    pair: _Pair
    problem: Problem
    given: dict[str, tuple[int, ...]]

    @property
    def label(self) -> str:
        baseline, candidate = self.pair
        return f"{candidate.label} against {baseline.label} at {self.problem.size}"

    def taken(self, worker: Worker, plan: ComparisonPlan, seed: int) -> ComparisonRecord:
        """Time the fastest case of each side in turns."""
        import msgspec

        from matbench.kernelfile import sweep
        from matbench.measure.quick_look import fastest

        looks = [
            fastest(worker, sweep.cases([side.kernel], [self.problem], self.given, worker.device))
            for side in self.pair
        ]
        (baseline, candidate), notes = zip(*looks, strict=True)
        return msgspec.structs.replace(
            worker.compare(baseline, candidate, plan, seed),
            baseline_name=self.pair[0].label,
            candidate_name=self.pair[1].label,
            notes=tuple(dict.fromkeys(filter(None, notes))),
        )


def _rounds(
    pairs: Sequence[_Pair], problems: Sequence[Problem], overrides: dict[str, tuple[int, ...]]
) -> list[_Turns]:
    """Each pair at each problem of its workload, with each value that both are given."""
    from matbench.kernelfile import sweep

    return [
        _Turns(pair, problem, overrides | {name: (value,) for name, value in fixed.items()})
        for problem in problems
        for pair in pairs
        if pair[0].kernel.workload == problem.workload
        for fixed in sweep.combinations(_shared(pair, overrides))
    ]


def _sides(pairs: Sequence[_Pair]) -> list[_Side]:
    return list({side.label: side for pair in pairs for side in pair}.values())


def _pairs(
    names: tuple[str, ...], files: KernelFiles, *, matrix: bool
) -> tuple[list[_Pair], list[str]]:
    """Every two of the kernels to compare, and no remarks."""
    return list(combinations(_contenders(names, files, matrix=matrix), 2)), []


def _contenders(names: tuple[str, ...], files: KernelFiles, *, matrix: bool) -> list[_Side]:
    """The kernels to compare; a kernel named twice is compared with itself."""
    if any(name.endswith(".jsonl") for name in names):
        raise UsageError("to compare record files, use `matbench diff OLD.jsonl NEW.jsonl`")
    if len(names) < 2 or (len(names) > 2 and not matrix):
        raise UsageError("name two kernels, or any number with --matrix or --against")
    different = list(dict.fromkeys(names))
    chosen = files.each(different)
    _require_device(chosen)
    if len({kernel.workload for kernel in chosen}) > 1:
        which = ", ".join(f"{kernel.name} computes {kernel.workload}" for kernel in chosen)
        raise UsageError(f"only kernels of one workload can be compared: {which}")
    sides = _labelled(chosen, different)
    return sides if len(sides) > 1 else sides * 2


def _labelled(kernels: Sequence[Kernel], given: Sequence[str]) -> list[_Side]:
    """Kernels by name; those of the same name as given on the command line."""
    names = [kernel.name for kernel in kernels]
    return [
        _Side(kernel, kernel.name if names.count(kernel.name) == 1 else name)
        for kernel, name in zip(kernels, given, strict=True)
    ]


def _versions(
    names: tuple[str, ...], files: KernelFiles, revision: str, folder: Path
) -> tuple[list[_Pair], list[str]]:
    """Each kernel that has changed since a revision, and its file as of then as the baseline.

    Also prints and returns remarks on the others.
    """
    from matbench.kernelfile import catalogue, git_versions

    pairs, remarks = [], []
    different = list(dict.fromkeys(names))
    chosen = files.each(different)
    _require_device(chosen)
    for number, (kernel, name) in enumerate(_labelled(chosen, different)):
        version = git_versions.extract(kernel, revision, folder / str(number))
        if version is None:
            remarks.append(f"{name}: new since {revision}, not compared")
            continue
        shown = f"{kernel.path} at {revision}"
        old = catalogue.load(version.file, shown, version.given(files.given))
        if git_versions.unchanged(old, kernel):
            remarks.append(f"{name}: unchanged since {revision}, not compared")
            continue
        label = f"{name} at {revision}"
        if old.workload != kernel.workload:
            raise UsageError(f"{label} computes {old.workload}, and now {kernel.workload}")
        pairs.append((_Side(old, label), _Side(kernel, name)))
    for remark in remarks:
        say(remark, err=True)
    return pairs, remarks


def _require_device(kernels: Sequence[Kernel]) -> None:
    for kernel in kernels:
        if kernel.on_host:
            raise UsageError(f"{kernel.name} runs only on the host; use `matbench run`")


def _shared(pair: _Pair, overrides: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The constants given on the command line that both kernels sweep."""
    return {
        name: values
        for name, values in overrides.items()
        if all(name in (*side.kernel.sweep, *side.kernel.tune) for side in pair)
    }
