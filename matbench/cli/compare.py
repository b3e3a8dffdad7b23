"""`matbench compare`: which of two kernels is faster, timed in turns."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from matbench.cli.app import main
from matbench.cli.console import Interruption, say_printed, show_report
from matbench.cli.kernel_files import KernelFiles, is_path, kernel_names
from matbench.cli.options import (
    ConstantOptions,
    DeadlineOptions,
    DeviceOptions,
    LaunchOptions,
    SizeOptions,
    SustainedOptions,
    VerdictOptions,
    format_option,
    grouped,
    require_device,
)
from matbench.cli.outputs import require_apart
from matbench.cli.progress import progress
from matbench.cli.registry import FeatureOptions
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.analysis.statistics import ComparisonPlan
    from matbench.model import DeviceInfo, Kernel, Problem
    from matbench.records.comparison import ComparisonRecord
    from matbench.worker.worker import WorkerPool

#: Longest time to time two kernels in turns, in seconds.
_TURNS_S = 10.0
#: Fewer pairs of sustained blocks, each of a second, cannot decide.
_LEAST_BLOCKS = 9


@main.command()
@click.argument(
    "contenders", nargs=-1, required=True, metavar="BASELINE CANDIDATE", shell_complete=kernel_names
)
@grouped
@format_option
def compare(
    contenders: tuple[str, ...],
    files: KernelFiles,
    sizes: SizeOptions,
    constants: ConstantOptions,
    device: DeviceOptions,
    launches: LaunchOptions,
    seconds: SustainedOptions,
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
    matbench compare old/tiled.cu new/tiled.cu --fail-if-slower 3%
    matbench compare --against main tiled kahan --fail-if-slower 3%
    """
    from matbench.records import provenance
    from matbench.show import comparisons
    from matbench.worker.worker import WorkerPool

    info = device.choose()
    launches.require_one_kind(info)
    of_versions = features.value("versions", "against") is not None
    with ExitStack() as stack:
        if of_versions:
            changed = features["versions"].changed(_sides(contenders, files), files.given)
            pairs, remarks = stack.enter_context(changed)
        else:
            pairs, remarks = [_pair(contenders, files)], []
        kernels = _kernels(pairs, features, files, contenders, info)
        rounds = _rounds(pairs, sizes.problems(kernels), constants.values(kernels))
        plan = _plan(launches, verdict, seconds, rounds)
        options = launches.quick(sustained_s=seconds.sustained)
        records: list[ComparisonRecord] = []
        interruption = stack.enter_context(Interruption())
        pool = stack.enter_context(WorkerPool(options, deadlines.deadlines, say_printed))
        display = stack.enter_context(progress(len(rounds)))
        for turns in rounds:
            display.begin(turns.label)
            records.append(turns.taken(pool, info, plan, sizes.seed))
    if not records:
        interruption.exit(0, len(rounds), "comparisons")
    about = provenance.environment(sys.argv[1:], [info], sizes.recorded)
    show_report(comparisons.report(records, [about]), fmt)
    if gate := features.get("gate"):
        gate.summarize(records, [about], remarks)
    interruption.exit(len(records), len(rounds), "comparisons")
    _exit(records, gate, of_versions=of_versions)


def _plan(
    launches: LaunchOptions,
    verdict: VerdictOptions,
    seconds: SustainedOptions,
    rounds: Sequence[_Turns],
) -> ComparisonPlan:
    """How many pairs are taken; sustained ones are blocks of a second, all of which count."""
    from matbench.analysis.statistics import ComparisonPlan

    most_ns = 1e9 * (launches.max_time or _TURNS_S)
    if seconds.sustained is None:
        return ComparisonPlan(threshold=verdict.threshold, maximum_time_ns=most_ns)
    seconds.require_without(cold=launches.cold, hot=launches.hot)
    for name in (s.label for turns in rounds for s in turns.pair if s.kernel.kind.is_apart):
        raise UsageError(f"--sustained compares kernels; {name} is a function: use `matbench run`")
    if any(turns.problem.beta for turns in rounds):
        raise UsageError("--sustained needs beta = 0: else each launch adds to C of the last")
    pairs = max(_LEAST_BLOCKS, math.ceil(seconds.sustained))
    return ComparisonPlan((pairs,), verdict.threshold)


def _kernels(
    pairs: list[Pair],
    features: FeatureOptions,
    files: KernelFiles,
    contenders: Sequence[str],
    info: DeviceInfo,
) -> list[Kernel]:
    """The kernels of all sides; `UsageError` if one of them cannot run on the device, or if the
    summary would replace a file that is read."""
    kernels = [*{side.label: side.kernel for pair in pairs for side in pair}.values()]
    for kernel in kernels:
        if kernel.on_host and info.kind == "gpu":
            how = "compare it with `--backend opencl`"
            raise UsageError(f"{kernel.name} runs only on the host; {how}")
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


class Side(NamedTuple):
    """A kernel, or a version of one, and its name in the table."""

    kernel: Kernel
    label: str


Pair = tuple[Side, Side]


class _Turns(NamedTuple):
    """A pair at one problem, with values of constants."""

    pair: Pair
    problem: Problem
    given: dict[str, tuple[int, ...]]

    @property
    def label(self) -> str:
        baseline, candidate = self.pair
        return f"{candidate.label} against {baseline.label} at {self.problem.size}"

    def taken(
        self, pool: WorkerPool, device: DeviceInfo, plan: ComparisonPlan, seed: int
    ) -> ComparisonRecord:
        """Time the fastest case of each side in turns."""
        import msgspec

        from matbench.kernelfile import sweep
        from matbench.worker import comparing
        from matbench.worker.quick_look import fastest

        looks = [
            fastest(pool, device, sweep.cases([side.kernel], [self.problem], self.given, device))
            for side in self.pair
        ]
        cases, notes = zip(*looks, strict=True)
        workers = [pool.worker(device, case.kernel) for case in cases]
        record = comparing.compare(workers, cases, plan, seed)
        return msgspec.structs.replace(
            record,
            baseline_name=self.pair[0].label,
            candidate_name=self.pair[1].label,
            notes=tuple(dict.fromkeys((*filter(None, notes), *record.notes))),
        )


def _rounds(
    pairs: Sequence[Pair], problems: Sequence[Problem], overrides: dict[str, tuple[int, ...]]
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


def _pair(names: tuple[str, ...], files: KernelFiles) -> Pair:
    """The kernels to compare; one that is named twice is compared with itself."""
    if any(name.endswith(".jsonl") for name in names):
        raise UsageError("to compare record files, use `matbench diff OLD.jsonl NEW.jsonl`")
    if len(names) != 2:
        raise UsageError("name two kernels, or any number with --against")
    sides = _sides(names, files)
    if len({side.kernel.workload for side in sides}) > 1:
        which = ", ".join(f"{one.kernel.name} computes {one.kernel.workload}" for one in sides)
        raise UsageError(f"only kernels of one workload can be compared: {which}")
    first, second = sides if len(sides) > 1 else sides * 2
    if unlike := first.kernel.contract.unlike(second.kernel.contract):
        raise UsageError(
            f"{first.label} and {second.label} cannot be compared; {unlike}. "
            f"`matbench run` shows both in one table"
        )
    return first, second


def _sides(names: tuple[str, ...], files: KernelFiles) -> list[Side]:
    """The kernels by name; those of the same name as given on the command line."""
    from matbench.model import BASELINE

    different = list(dict.fromkeys(names))
    kernels = files.each(different)
    for kernel in kernels:
        if kernel.library == BASELINE:
            require_device(kernel)
    known = [kernel.name for kernel in kernels]
    return [
        Side(kernel, kernel.name if known.count(kernel.name) == 1 else name)
        for kernel, name in zip(kernels, different, strict=True)
    ]


def _shared(pair: Pair, overrides: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The constants given on the command line that both kernels sweep."""
    return {
        name: values
        for name, values in overrides.items()
        if all(name in (*side.kernel.sweep, *side.kernel.tune) for side in pair)
    }
