"""`matbench history`: find the commits that made a kernel slower."""

from __future__ import annotations

import hashlib
import sys
from contextlib import ExitStack
from pathlib import Path

import click

from matbench.cli import options
from matbench.cli.app import main
from matbench.cli.console import Interruption, progress, require_apart, say, say_printed
from matbench.cli.options import Share
from matbench.cli.selection import KernelFiles, kernel_argument, read_for
from matbench.files import temporary_folder

#: Longest time to time two versions in turns, in seconds.
_TURNS_S = 10.0


@main.command()
@kernel_argument
@click.option("--since", metavar="REV", help="Begin with the version as of a git revision.")
@click.option(
    "--bisect",
    type=Share(),
    metavar="SHARE",
    help="Measure only what is needed to find what made the last version slower than the first by "
    "more than SHARE, which takes the place of --threshold.",
)
@click.option(
    "--resume",
    metavar="FILE",
    help="Measure only what FILE lacks, and add that to it. Default: a file for each kernel file "
    "in the user's state folder.",
)
@options.grouped
def history(
    kernel: str, files: KernelFiles, sizes: options.SizeOptions, constants: options.ConstantOptions,
    device: options.DeviceOptions, launches: options.LaunchOptions,
    deadlines: options.DeadlineOptions, verdict: options.VerdictOptions, since: str | None,
    bisect: float | None, resume: str | None, shown: options.ReportOptions,
) -> None:  # fmt: skip
    """Find the commits that made a kernel slower.

    Each version of its file in git, with its table and the headers it includes, is checked and
    timed in turns with the right version before it; what is not committed counts as the last.
    Versions that differ only in comments are not measured. A commit is to blame if the whole
    interval is beyond --threshold, in a second comparison too. The next call measures only what is
    new.

    \b
    matbench history sgemm.cu --sizes 4096 --threshold 3%
    matbench history sgemm.cu --since v1.0 --bisect 3%
    """
    chosen = files.one(kernel)
    options.require_device(chosen)

    from matbench.analysis.statistics import ComparisonPlan
    from matbench.features.history import view
    from matbench.features.history.commits import versions
    from matbench.features.history.search import HistorySearch, RecordedBench
    from matbench.kernelfile import sweep
    from matbench.records.environment import run_environment, state_folder
    from matbench.records.writing import RecordWriter
    from matbench.worker.worker import WorkerPool

    info = device.choose()
    launches.require_one_kind(info)
    problem, overrides = sizes.one_problem(chosen), constants.values([chosen])
    require_apart({"--resume": resume, **shown.outputs}, read_for([chosen]))
    margin = verdict.threshold if bisect is None else bisect
    plan = ComparisonPlan(threshold=margin, maximum_time_ns=(launches.max_time or _TURNS_S) * 1e9)
    about = run_environment(sys.argv[1:], [info], sizes.recorded)
    file = Path(chosen.file).resolve()
    place = hashlib.sha256(bytes(file)).hexdigest()[:8]
    kept = state_folder() / "history" / f"{file.stem}-{place}.jsonl"
    path = kept if resume is None else Path(resume)
    with ExitStack() as stack:
        listed = versions(chosen, files.given, since, stack.enter_context(temporary_folder()))
        search = HistorySearch(listed, margin)
        writer = stack.enter_context(RecordWriter(path, about, "resume", own=resume is None))
        interruption = stack.enter_context(Interruption())
        pool = stack.enter_context(WorkerPool(launches.quick(), deadlines.deadlines, say_printed))
        total = 2 * len(search.steps) - 1 if bisect is None else None
        display = stack.enter_context(progress(total))
        bench = RecordedBench(pool, info, plan, problem.seed, writer)
        search.run(
            bench,
            lambda version: sweep.cases([version], [problem], overrides, info),
            display.begin,
            bisect=bisect is not None,
        )
    shown.show(view.report(search, [*writer.environments, about], len(listed)))
    if path.exists():
        say(f"kept in {path}: the next call measures only what is new", err=True)
    done = sum(step.outcome is not None for step in search.steps)
    interruption.exit(done, len(search.steps), "versions")
    last = search.steps[-1].outcome
    sys.exit(last is not None and last.is_broken)
