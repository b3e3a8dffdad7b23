"""`matbench watch`: check and time one kernel file whenever it is saved."""

from __future__ import annotations

from pathlib import Path

import click

from matbench import signals, workloads
from matbench.cli import options
from matbench.cli.app import main
from matbench.cli.console import say, say_printed
from matbench.cli.selection import KernelFiles, load
from matbench.errors import UsageError
from matbench.kernelfile import python_file
from matbench.model import Case, Kernel

#: Longest time to time two versions in turns, in seconds.
_TURNS_S = 3.0


@main.command()
@click.argument("file", metavar="FILE")
@options.grouped
def watch(
    file: str, files: KernelFiles, sizes: options.SizeOptions, constants: options.ConstantOptions,
    device: options.DeviceOptions, launches: options.LaunchOptions,
    deadlines: options.DeadlineOptions,
) -> None:  # fmt: skip
    """Check and time FILE whenever it is saved, until Ctrl-C.

    Each version is checked, timed and compared with the last correct version; one with the same
    code is not. Without --sizes, a CPU takes the smallest default size only. Ctrl-C exits with code
    0.

    \b
    matbench watch mine.cu
    matbench watch mine.cu --sizes 1000
    """
    path = Path(file)
    if python_file.is_python(file):
        raise UsageError(f"{file}: watch takes kernel files; for functions, use `matbench run`")
    if not path.is_file():
        what = f"no such file; create one with `matbench new {path.stem}`"
        if not path.suffix or path.exists():
            what = "not a kernel file; name one such as mine.cu"
        raise UsageError(f"{path}: {what}")

    from matbench.analysis.statistics import ComparisonPlan
    from matbench.features.watch import view
    from matbench.features.watch.versions import Saves, WatchedVersions
    from matbench.kernelfile import sweep
    from matbench.worker.comparing import Bench
    from matbench.worker.worker import WorkerPool

    info = device.choose()
    launches.require_one_kind(info)
    given = files.given

    def cases(kernel: Kernel) -> list[Case]:
        overrides = constants.values([kernel])
        problems = sizes.problems([kernel])
        problems.sort(key=workloads.work_of)
        every = sweep.cases([kernel], problems, overrides, info)
        able = [case.problem.size for case in every if case.skip is None]
        if sizes.sizes is None and info.kind == "cpu" and able:
            return [case for case in every if case.problem.size == able[0]]
        return every

    plan = ComparisonPlan(maximum_time_ns=(launches.max_time or _TURNS_S) * 1e9)
    with WorkerPool(launches.quick(), deadlines.deadlines, say_printed) as pool:
        pool.start([info])
        bench = Bench(pool, info, plan, sizes.seed)
        watched = WatchedVersions(bench, path, cases, given)
        try:
            first, _ = load(path, given)
        except UsageError:
            pass  # can be fixed while the file is watched
        else:
            cases(first)  # fails now if the options fit no version
        try:
            view.follow(Saves(path), watched)
        except KeyboardInterrupt:
            if not signals.is_ctrl_c():
                raise
            say("")
