"""`matbench run`: check and time kernels over sizes and parameters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matbench.cli.app import main
from matbench.cli.options import (
    deadline_options,
    device_options,
    format_option,
    kernel_file_options,
    kernel_names,
    problem_options,
    sampling_options,
)
from matbench.cli.shared import (
    Interruption,
    cases_of,
    chosen_kernels,
    deadlines_of,
    problems_of,
    progress,
    require_one_kind,
    show_report,
)
from matbench.cli.watch import follow, rungs
from matbench.errors import UsageError
from matbench.workloads import MATMUL, WORKLOADS

if TYPE_CHECKING:
    from matbench.model import Case, DeviceInfo, Environment, Inputs, Outcome
    from matbench.records.results import Mode


@main.command()
@click.argument("kernels", nargs=-1, shell_complete=kernel_names)
@kernel_file_options
@click.option(
    "--group",
    type=click.Choice(["tutorial", "ladder", "baseline", "all"]),
    help="Run a whole group; tutorial when no kernel is named.",
)
@click.option(
    "--workload",
    type=click.Choice(list(WORKLOADS)),
    help="What is computed, when no kernel is named: matmul by default.",
)
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="LIST",
    help="Add baselines beside the kernels: cublas, cublas-tf32, cublas-bf16, numpy …, or 'cublas*'"
    " for all of them; repeatable.",
)
@click.option(
    "--tuned", is_flag=True, help="Take the parameters that `matbench tune` kept for this device."
)
@problem_options
@device_options
@click.option("--output", metavar="FILE", help="Keep the records: JSON Lines, case by case.")
@click.option("--append", is_flag=True, help="Add to an existing output file.")
@click.option("--force", is_flag=True, help="Replace an existing output file.")
@click.option(
    "--resume", metavar="FILE", help="Go on with an interrupted sweep; what is finished stays."
)
@format_option
@click.option(
    "--smoke",
    is_flag=True,
    help=f"Every kernel at small awkward sizes ({MATMUL.smoke_sizes}), for CI.",
)
@click.option(
    "--watch",
    metavar="FILE.cu",
    help="Check and time this file on every save, in turns with what it was and with KERNELS.",
)
@sampling_options
@click.option("--no-blocks", is_flag=True, help="Leave out per-block times.")
@click.option(
    "--error-map",
    metavar="FILE.png",
    help="Draw where C is wrong; FILE_2.png and so on for more, and nothing is replaced.",
)
@deadline_options
def run(
    kernels: tuple[str, ...],
    kernel_files: tuple[str, ...],
    kernels_dir: str | None,
    group: str | None,
    workload: str | None,
    baselines: tuple[str, ...],
    tuned: bool,
    sizes: str | None,
    tiles: str | None,
    settings: tuple[str, ...],
    inputs: Inputs | None,
    seed: int,
    backend: str,
    device: str | None,
    output: str | None,
    append: bool,
    force: bool,
    resume: str | None,
    fmt: str,
    smoke: bool,
    watch: str | None,
    cold: bool,
    hot: bool,
    graph: bool,
    precision: float | None,
    max_time: float | None,
    no_blocks: bool,
    error_map: str | None,
    timeout: float,
    build_timeout: float,
) -> None:
    """Check and time KERNELS over sizes and parameters.

    With no names given: the kernels that --kernel and --kernels-dir add, else the tutorial's, or
    those of a --workload. --cold and --hot together time both kinds of launches.

    \b
    matbench run --sizes 256,1000
    matbench run tiled kahan --tiles 16,32 --sizes 512x1024x768
    matbench run --kernel mine.cu --output mine.jsonl
    matbench run --workload dot --sizes 2^20
    matbench run --group ladder --baseline cublas,cublas-tf32

    With --watch FILE.cu, each save is checked, timed and compared with the version before, the
    last that was right, and with the nearest rung: of KERNELS (else the tutorial's and the
    ladder's) the slowest that it has not beaten yet. Ctrl-C ends it, with exit code 0.

    \b
    matbench run --watch mine.cu
    matbench run --watch mine.cu tiled vectorized --sizes 1000
    """
    from matbench import backends
    from matbench.kernelfile import sweep
    from matbench.measure.bench import Options
    from matbench.show import plots

    if error_map is not None:
        plots.require(Path(error_map), plots.ERROR_MAP_SUFFIXES)
    if graph and not hot:
        raise UsageError("--graph launches hot samples; add --hot")
    if sum((append, force, resume is not None)) > 1:
        raise UsageError("--append, --force and --resume exclude each other; give one of them")
    if resume is not None and output is not None:
        raise UsageError("--resume FILE writes to that file; leave --output away")
    if watch is not None:
        unfit = {
            "--output": output, "--append": append, "--force": force, "--resume": resume,
            "--smoke": smoke, "--workload": workload, "--format": fmt != "rich",
            "--baseline": baselines, "--tuned": tuned,
        }  # fmt: skip
        if given := [option for option, value in unfit.items() if value]:
            raise UsageError(f"--watch shows a file from save to save; leave {given[0]} away")
        info = backends.choose(backend, device)
        require_one_kind(cold, hot, graph, info)
        follow(
            Path(watch),
            rungs=rungs(kernels, kernel_files, kernels_dir, group),
            problems=lambda kernel: problems_of([kernel], sizes, inputs, seed),
            settings=settings,
            tiles=tiles,
            device=info,
            options=Options(
                blocks=False,
                cold=not hot,
                hot=hot,
                graph=graph,
                precision=precision or 0.05,
                max_time_s=max_time or 0.3,
                minimum_samples=3,
                error_map=error_map,
            ),
            deadlines=deadlines_of(timeout, build_timeout),
        )
        return
    if tuned and (tiles is not None or settings):
        raise UsageError("--tuned takes parameters as they were kept; leave --tiles and --set away")
    if smoke and not (kernels or kernel_files or kernels_dir or group or workload):
        group = "all"
    chosen = chosen_kernels(
        kernels,
        kernel_files,
        kernels_dir,
        group,
        workload,
        baselines,
        of_every_workload=smoke and workload is None,
    )
    problems = problems_of(chosen, sizes, inputs, seed, smoke=smoke)
    overrides = sweep.parse_settings(settings, tiles, chosen)
    cases = cases_of(chosen, problems, overrides, backend, device, tuned=tuned)
    if graph and not any(info.backend == "cuda" for info, _ in cases):
        raise UsageError(f"--graph needs CUDA; this is {cases[0][0].label}")

    mode: Mode = "resume" if resume else "append" if append else "force" if force else "new"
    _work_through(
        cases,
        options=Options(
            blocks=not (no_blocks or smoke),
            cold=cold or not hot,
            hot=hot,
            graph=graph,
            # A smoke run takes enough samples to see that timing works, no more.
            precision=1e9 if smoke else precision,
            max_time_s=0.05 if smoke else max_time,
            minimum_samples=3 if smoke else 10,
            error_map=error_map,
        ),
        deadlines=deadlines_of(timeout, build_timeout),
        outputs=[(Path(target), mode)] if (target := resume or output) else [],
        fmt=fmt,
        settings={"seed": seed, "inputs": inputs or "default"},
    )


def _work_through(
    cases: list[tuple[DeviceInfo, Case]],
    *,
    options: Any,
    deadlines: Any,
    outputs: list[tuple[Path, Mode]],
    fmt: str,
    settings: dict[str, Any],
) -> None:
    """Measure, record each outcome as it is made, print the table, and exit with what it means."""
    from contextlib import ExitStack

    from matbench.measure.worker import Crew

    outcomes: list[Outcome] = []
    about: Environment | None = None
    devices = list({info.label: info for info, _ in cases}.values())
    with Interruption() as interruption, ExitStack() as stack:
        crew = stack.enter_context(Crew(options, deadlines))
        crew.start(info for info, case in cases[:1])  # while this process imports the rest
        from matbench.records import results
        from matbench.show import report

        about = results.environment(sys.argv[1:], devices, settings)
        writers = [results.RecordWriter(path, about, mode) for path, mode in outputs]
        last = results.last_run_path()
        writers.append(results.RecordWriter(last, about, "force", best_effort=True))
        finished: dict[Any, Outcome] = {}
        modes = {None, options.on("gpu").mode, options.on("cpu").mode}
        for writer in writers:
            stack.enter_context(writer)
            if writer.mode == "resume":
                found = results.finished(writer.outcomes)
                finished |= {key: o for key, o in found.items() if o.timing_mode in modes}
            for note in writer.notes:
                click.echo(note, err=True)
        advance = stack.enter_context(progress(len(cases)))
        known = [finished.get(results.case_key(case, info)) for info, case in cases]
        crew.build_ahead([c for c, done in zip(cases, known, strict=True) if done is None])
        for (info, case), done in zip(cases, known, strict=True):
            advance(case.label)
            if done is not None:
                outcomes.append(done)
                continue
            outcome = crew.worker(info).run(case)
            outcomes.append(outcome)
            for writer in writers:
                writer.write(outcome)
    if about is not None and (outcomes or not interruption):
        show_report(report.outcome_report(outcomes, [about]), fmt)
    interruption.exit(len(outcomes), len(cases), "cases")
    if any(outcome.status in ("wrong", "failed") for outcome in outcomes):
        sys.exit(1)
