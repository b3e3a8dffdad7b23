"""The commands: they read options, wire the other rooms together, print, and choose the exit code.

Exit codes: 0 all measured, or skipped with a reason; 1 a wrong or failed case, or slower than
allowed; 2 bad input; 130 interrupted.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from matbench import __version__
from matbench.model import MatbenchError, Problem, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from matbench.bench import Duel
    from matbench.catalogue import Catalogue
    from matbench.model import Case, DeviceInfo, Kernel, Outcome
    from matbench.report import ComparisonRow, Report
    from matbench.results import Mode

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_SIZES = "256,1000"
SMOKE_SIZES = "1,17,33,65x31x129"
INTERRUPTED = 130


def _kernel_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """For the shell's completion."""
    from matbench import catalogue

    return [kernel.name for kernel in catalogue.builtin() if kernel.name.startswith(typed)]


class _Group(click.Group):
    """Turns matbench's own errors into one line and an exit code; lists commands in order."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except UsageError as error:
            raise click.UsageError(str(error)) from None
        except MatbenchError as error:
            raise click.ClickException(str(error)) from None
        except KeyboardInterrupt:  # where there is no table so far
            click.echo("interrupted", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


# One line, not click's three: what, where, how to mend.
def _show_usage_error(error: click.UsageError, file: Any = None) -> None:
    where = f"matbench {error.ctx.info_name}" if error.ctx and error.ctx.parent else "matbench"
    click.echo(f"{where}: {error.format_message()}", file=file or sys.stderr)


click.UsageError.show = _show_usage_error  # type: ignore[method-assign,assignment]


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="matbench")
def main() -> None:
    """Measure CUDA matrix-product kernels: how fast, how exact, and why.

    Every kernel is checked against a float64 product before it is timed, and again after. Without
    an NVIDIA GPU the same kernel files run through OpenCL, on the CPU if need be.
    """
    for stream in (sys.stdout, sys.stderr):  # one that has no × or ★ shows a question mark
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


# -- options that commands share -----------------------------------------------------------------


def _stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


class _Seconds(click.FloatRange):
    """More than none, a day at most; NaN is neither."""

    def __init__(self) -> None:
        super().__init__(0, 86400, min_open=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        seconds = float(super().convert(value, param, ctx))
        if seconds != seconds:
            self.fail(f"{value!r} is no number", param, ctx)
        return seconds


class _Share(click.ParamType[float]):
    """A share written as `5%` or `0.05`."""

    name = "share"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        text = str(value).strip()
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            share = -1
        if not 0 <= share < 10:
            self.fail(f"{value!r}: write a share such as 5% or 0.05", param, ctx)
        return share


_files = _stack(
    click.option(
        "--kernel",
        "kernel_files",
        multiple=True,
        metavar="PATH.cu",
        help="Add a kernel file to those at hand; repeatable.",
    ),
    click.option("--kernels-dir", metavar="DIR", help="Add every *.cu file of a folder."),
)
_device = _stack(
    click.option(
        "--backend",
        type=click.Choice(["auto", "cuda", "opencl"]),
        default="auto",
        show_default=True,
        help="auto: CUDA if it can be used, else an OpenCL GPU, else the CPU through OpenCL.",
    ),
    click.option("--device", metavar="N|NAME", help="Which device, as `matbench info` lists them."),
)
_problems = _stack(
    click.option(
        "--sizes",
        default=DEFAULT_SIZES,
        show_default=True,
        metavar="LIST",
        help="Sizes: 1000 for a square product, MxNxK for A (M×K) times B (K×N).",
    ),
    click.option(
        "--tiles", metavar="LIST", help="Values of TILE, in place of each kernel's own: 8,16,32."
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=LIST",
        help="Values of another swept constant, as in THREADS=128,256; repeatable.",
    ),
    click.option(
        "--inputs",
        type=click.Choice(["uniform", "signed", "normal"]),
        default="uniform",
        show_default=True,
        help="What A and B are drawn from: [0, 1), [-1, 1), or a normal distribution.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**63 - 1),
        default=0,
        show_default=True,
        help="Seed of the inputs.",
    ),
)
_sampling = _stack(
    click.option(
        "--cold",
        is_flag=True,
        help="Time single launches, the L2 cache overwritten before each (a GPU's default).",
    ),
    click.option("--hot", is_flag=True, help="Time launches back to back; with --cold, both."),
    click.option("--graph", is_flag=True, help="Launch the hot ones as a CUDA graph."),
    click.option(
        "--precision",
        type=_Share(),
        metavar="SHARE",
        help="Sample until the median is known to this: 0.5% (GPU) or 2% (CPU) by default.",
    ),
    click.option(
        "--max-time",
        type=_Seconds(),
        metavar="SECONDS",
        help="Sample one case no longer than this: 2 (GPU) or 0.5 (CPU) by default.",
    ),
)
_deadlines = _stack(
    click.option(
        "--timeout",
        type=_Seconds(),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="How long checking and timing one case may take before its process is stopped.",
    ),
    click.option(
        "--build-timeout",
        type=_Seconds(),
        default=120.0,
        show_default=True,
        metavar="SECONDS",
        help="How long building one kernel may take.",
    ),
)


class _Format(click.ParamType[str]):
    """A choice whose values are looked up only when one is given: imports cost start-up time."""

    name = "format"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        from matbench.report import FORMATS

        if value not in FORMATS:
            self.fail(f"{value!r} is none of {', '.join(FORMATS)}", param, ctx)
        return str(value)


_format = click.option(
    "--format",
    "fmt",
    type=_Format(),
    default="rich",
    show_default=True,
    metavar="FORMAT",
    help="rich, csv, json, or one of tabulate's formats: plain, github, pipe, tsv, html, latex …",
)


# -- what commands share -------------------------------------------------------------------------


def _catalogue(
    kernel_files: Sequence[str] = (), kernels_dir: str | None = None
) -> tuple[Catalogue, list[Kernel]]:
    """All kernels at hand, and those that were added on the command line."""
    from matbench import catalogue

    added = catalogue.load_folder(Path(kernels_dir)) if kernels_dir else []
    added += [catalogue.load(Path(path)) for path in kernel_files]
    return catalogue.Catalogue([*catalogue.builtin(), *added]), added


def _problems_of(sizes: str, inputs: str, seed: int) -> list[Problem]:
    from matbench import sweep

    return [
        Problem(M=m, N=n, K=k, inputs=inputs, seed=seed)  # type: ignore[arg-type]
        for m, n, k in sweep.parse_sizes(sizes)
    ]


def _console(*, stderr: bool = False) -> Console:
    """Terminals get their own width; in a pipe nothing is cut."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=10_000)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal's standard error, nothing in a pipe; call it with what comes next."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield lambda label: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        started = False

        def advance(label: str) -> None:
            nonlocal started
            progress.update(task, description=label, advance=1 if started else 0)
            started = True

        yield advance


def _print(*renderables: Any) -> None:
    console = _console()
    for renderable in renderables:
        console.print(renderable)


def _show(table: Report, fmt: str) -> None:
    """A report in the form that was asked for; on a terminal as wide as it is."""
    from matbench import report

    if fmt != "rich":
        click.echo(report.text(table, fmt))
        return
    console = _console()
    width = console.width if console.is_terminal else None
    _print(*report.renderables(table, width))


# -- run -----------------------------------------------------------------------------------------


@main.command()
@click.argument("kernels", nargs=-1, shell_complete=_kernel_names)
@_files
@click.option(
    "--group",
    type=click.Choice(["tutorial", "ladder", "baseline", "all"]),
    help="Run a whole group; tutorial when no kernel is named.",
)
@_problems
@_device
@click.option("--output", metavar="FILE", help="Keep the records: JSON Lines, case by case.")
@click.option("--append", is_flag=True, help="Add to an existing output file.")
@click.option("--force", is_flag=True, help="Replace an existing output file.")
@click.option(
    "--resume", metavar="FILE", help="Go on with an interrupted sweep; what is finished stays."
)
@_format
@click.option(
    "--smoke",
    is_flag=True,
    help=f"Every kernel at small awkward sizes ({SMOKE_SIZES}), for CI.",
)
@_sampling
@click.option("--no-blocks", is_flag=True, help="Leave out per-block times.")
@click.option(
    "--error-map",
    metavar="FILE.png",
    help="Draw where C is wrong; FILE_2.png and so on for more, and nothing is replaced.",
)
@_deadlines
def run(
    kernels: tuple[str, ...],
    kernel_files: tuple[str, ...],
    kernels_dir: str | None,
    group: str | None,
    sizes: str,
    tiles: str | None,
    settings: tuple[str, ...],
    inputs: str,
    seed: int,
    backend: str,
    device: str | None,
    output: str | None,
    append: bool,
    force: bool,
    resume: str | None,
    fmt: str,
    smoke: bool,
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

    With no names given: the kernels that --kernel and --kernels-dir add, else the tutorial's.

    \b
    matbench run --sizes 256,1000
    matbench run tiled kahan --tiles 16,32 --sizes 512x1024x768
    matbench run --kernel mine.cu --output mine.jsonl
    """
    from matbench import plots, sweep
    from matbench.bench import Options

    if error_map is not None:
        plots.require(Path(error_map), plots.ERROR_MAP_SUFFIXES)
    if graph and not hot:
        raise UsageError("--graph launches hot samples; add --hot")
    if sum((append, force, resume is not None)) > 1:
        raise UsageError("--append, --force and --resume exclude each other; give one of them")
    if resume is not None and output is not None:
        raise UsageError("--resume FILE writes to that file; leave --output away")
    problems = _problems_of(SMOKE_SIZES if smoke else sizes, inputs, seed)
    everything = smoke and not (kernels or kernel_files or kernels_dir)
    chosen = _chosen(kernels, kernel_files, kernels_dir, group or ("all" if everything else None))
    overrides = sweep.parse_settings(settings, tiles, chosen)
    cases = _cases(chosen, problems, overrides, backend, device)
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
        deadlines=_deadlines_of(timeout, build_timeout),
        outputs=[(Path(target), mode)] if (target := resume or output) else [],
        fmt=fmt,
        settings={"seed": seed, "inputs": inputs},
    )


def _chosen(
    names: Sequence[str],
    kernel_files: Sequence[str],
    kernels_dir: str | None,
    group: str | None,
) -> list[Kernel]:
    catalogue, added = _catalogue(kernel_files, kernels_dir)
    named = [catalogue.get(name) for name in names]
    if group is not None:
        named += catalogue.group(group)
    chosen = named + added if named or added else catalogue.group("tutorial")
    return list({kernel.name: kernel for kernel in chosen}.values())


def _cases(
    kernels: Sequence[Kernel],
    problems: Sequence[Problem],
    overrides: dict[str, tuple[int, ...]],
    backend: str,
    device: str | None,
) -> list[tuple[DeviceInfo, Case]]:
    """Each case with its device: the one chosen, or the CPU for baselines of the host."""
    from matbench import backends, sweep
    from matbench.backends import host

    plain = [kernel for kernel in kernels if not kernel.on_host]
    found: list[tuple[DeviceInfo, Case]] = []
    if plain:
        info = backends.choose(backend, device)
        found += [(info, case) for case in sweep.cases(plain, problems, overrides, info)]
    for kernel in kernels:
        if not kernel.on_host:
            continue
        missing = None
        if kernel.library is not None:
            info = host.device()
        else:
            try:
                info = backends.host_device()
            except backends.UnavailableError as error:
                info, missing = host.device(), str(error)
        for case in sweep.cases([kernel], problems, overrides, info):
            found.append((info, case if missing is None else _skipped(case, missing)))
    return found


def _skipped(case: Case, reason: str) -> Case:
    import msgspec

    return msgspec.structs.replace(case, skip=reason, launch=None)


def _deadlines_of(timeout: float, build_timeout: float) -> Any:
    from matbench.worker import Deadlines

    return Deadlines(build_s=build_timeout, run_s=timeout)


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

    from matbench.worker import Crew

    outcomes: list[Outcome] = []
    interrupted = False
    devices = list({info.label: info for info, _ in cases}.values())
    with ExitStack() as stack:
        crew = stack.enter_context(Crew(options, deadlines))
        crew.start(info for info, case in cases[:1])  # while this process imports the rest
        from matbench import report, results

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
        advance = stack.enter_context(_progress(len(cases)))
        known = [finished.get(results.case_key(case, info)) for info, case in cases]
        try:
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
        except KeyboardInterrupt:
            interrupted = True
    _show(report.outcome_report(outcomes, [about]), fmt)
    if interrupted:
        click.echo(f"interrupted: {len(outcomes)} of {len(cases)} cases are done", err=True)
        sys.exit(INTERRUPTED)
    if any(outcome.status in ("wrong", "failed") for outcome in outcomes):
        sys.exit(1)


# -- compare, report -----------------------------------------------------------------------------


@main.command()
@click.argument(
    "contenders",
    nargs=-1,
    required=True,
    metavar="BASELINE CANDIDATE",
    shell_complete=_kernel_names,
)
@click.option("--matrix", is_flag=True, help="Compare any number of kernels, each with each.")
@_files
@_problems
@_device
@click.option(
    "--threshold",
    type=_Share(),
    default="1%",
    show_default=True,
    metavar="SHARE",
    help="Within it the two count as the SAME.",
)
@click.option(
    "--fail-if-slower",
    type=_Share(),
    metavar="SHARE",
    help="Exit 1 when the candidate is SLOWER by more than this, as in 5%.",
)
@click.option(
    "--force", is_flag=True, help="Judge record files although their environments differ."
)
@_format
@_deadlines
def compare(
    contenders: tuple[str, ...],
    matrix: bool,
    kernel_files: tuple[str, ...],
    kernels_dir: str | None,
    sizes: str,
    tiles: str | None,
    settings: tuple[str, ...],
    inputs: str,
    seed: int,
    backend: str,
    device: str | None,
    threshold: float,
    fail_if_slower: float | None,
    force: bool,
    fmt: str,
    timeout: float,
    build_timeout: float,
) -> None:
    """Compare two kernels: is CANDIDATE FASTER, SLOWER or the SAME?

    Both run on the same inputs in turns, in random order. Values of a constant that both sweep and
    that --tiles or --set names are compared one by one; otherwise each kernel runs at its fastest.

    Two record files are compared case by case: exit 3 with --fail-if-slower when they come from
    environments that differ.

    \b
    matbench compare tiled shared-row
    matbench compare naive-2d tiled --tiles 16,32 --fail-if-slower 5%
    matbench compare --matrix tiled naive-2d shared-row
    matbench compare old.jsonl new.jsonl --fail-if-slower 3%
    """
    from itertools import combinations

    from matbench import backends, comparison, report, results, sweep
    from matbench.bench import Options
    from matbench.statistics import ComparisonPlan
    from matbench.worker import Crew

    if all(name.endswith(".jsonl") for name in contenders) and len(contenders) == 2:
        _compare_files(contenders[0], contenders[1], threshold, fail_if_slower, force, fmt)
        return
    if len(contenders) < 2 or (len(contenders) > 2 and not matrix):
        raise UsageError("compare takes two kernels, or two .jsonl files; --matrix takes more")
    catalogue, _ = _catalogue(kernel_files, kernels_dir)
    chosen = [catalogue.get(name) for name in dict.fromkeys(contenders)]
    if len(chosen) < 2:
        chosen *= 2  # a kernel against itself: what noise looks like
    for kernel in chosen:
        if kernel.on_host:
            raise UsageError(f"{kernel.name} runs on the host alone; `matbench run` shows it")
    overrides = sweep.parse_settings(settings, tiles, chosen)
    problems = _problems_of(sizes, inputs, seed)
    info = backends.choose(backend, device)
    plan = ComparisonPlan(threshold=threshold)
    options = Options(blocks=False, precision=0.05, max_time_s=0.3, minimum_samples=3)
    rounds = [
        (pair, problem, overrides | {name: (value,) for name, value in fixed.items()})
        for problem in problems
        for pair in combinations(chosen, 2)
        for fixed in sweep.combinations(_shared(pair, overrides))
    ]
    rows: list[ComparisonRow] = []
    duels: list[Duel] = []
    interrupted = False
    with Crew(options, _deadlines_of(timeout, build_timeout)) as crew:
        worker = crew.worker(info)
        with _progress(len(rounds)) as advance:
            try:
                for pair, problem, given in rounds:
                    advance(f"{pair[0].name} against {pair[1].name} at {problem.size}")
                    first, second = (
                        _fastest(worker, sweep.cases([kernel], [problem], given, info))
                        for kernel in pair
                    )
                    duels.append(worker.compare(first, second, plan, seed))
                    rows.append(comparison.row_of(duels[-1]))
            except KeyboardInterrupt:
                interrupted = True
    about = results.environment(sys.argv[1:], [info], {"seed": seed, "inputs": inputs})
    if matrix and fmt == "rich":
        _print(*report.matrix(rows, [kernel.name for kernel in chosen]))
    else:
        _show(report.comparison_report(rows, [about]), fmt)
    if interrupted:
        sys.exit(INTERRUPTED)
    bad = any(o.status in ("wrong", "failed") for d in duels for o in (d.baseline, d.candidate))
    if bad or any(comparison.is_too_slow(row, fail_if_slower) for row in rows):
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
    from matbench import comparison, report, results

    notes: list[str] = []
    first, second = results.read(Path(old), notes), results.read(Path(new), notes)
    joined = comparison.compare_records(first, second, (old, new), threshold)
    for line in (*notes, *joined.differences):
        click.echo(f"note: {line}", err=True)
    _show(report.comparison_report(joined.rows, second[0]), fmt)
    for file, labels in ((old, joined.only_old), (new, joined.only_new)):
        if labels:
            click.echo(f"only in {file}: {', '.join(labels)}", err=True)
    for line in joined.broken:
        click.echo(line, err=True)
    if fail_if_slower is None:
        return
    if not comparison.comparable(joined) and not force:
        click.echo("not comparable: the environments differ; --force judges them anyway", err=True)
        sys.exit(3)
    if joined.broken or any(comparison.is_too_slow(row, fail_if_slower) for row in joined.rows):
        sys.exit(1)


def _fastest(worker: Any, cases: list[Case]) -> Case:
    """The case to compare: the only one, or the fastest by a quick look at all of them."""
    runnable = [case for case in cases if case.skip is None]
    if len(runnable) <= 1:
        return (runnable or cases)[0]
    looks = [(worker.run(case), case) for case in runnable]
    timed = [(outcome.median_ns, case) for outcome, case in looks if outcome.median_ns is not None]
    return min(timed, key=lambda found: found[0])[1] if timed else runnable[0]


# -- check ---------------------------------------------------------------------------------------


@main.command("blocks")
@click.argument("kernel", metavar="KERNEL|FILE.cu", shell_complete=_kernel_names)
@_files
@click.option(
    "--size",
    default="1000",
    show_default=True,
    metavar="N",
    help="The size: 1000 for a square product, MxNxK for A (M×K) times B (K×N).",
)
@click.option("--tile", metavar="T", help="The value of TILE; the fastest of all when not given.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of another swept constant; repeatable.",
)
@_device
@click.option(
    "--timeline",
    metavar="FILE",
    help="Draw when each block ran: .svg, .png, or .html to look closer; replaces the file.",
)
@click.option(
    "--format",
    "fmt",
    type=_Format(),
    default="rich",
    show_default=True,
    metavar="FORMAT",
    help="rich, json, csv (each block's stamps), or one of tabulate's: plain, github, html …",
)
@_deadlines
def profile_blocks(
    kernel: str,
    kernel_files: tuple[str, ...],
    kernels_dir: str | None,
    size: str,
    tile: str | None,
    settings: tuple[str, ...],
    backend: str,
    device: str | None,
    timeline: str | None,
    fmt: str,
    timeout: float,
    build_timeout: float,
) -> None:
    """Clock the blocks of one launch: how long each took, where, and what that means.

    The kernel file is not changed: a second build of it reads the device's clocks around each
    block, and what that costs is shown.

    \b
    matbench blocks tiled --size 1000 --tile 16
    matbench blocks mine.cu --timeline mine.html
    """
    from matbench import backends, blocks, plots, report, results, sweep
    from matbench.bench import Options
    from matbench.worker import Crew

    if timeline is not None:
        plots.require(Path(timeline), plots.TIMELINE_SUFFIXES)
    if kernel.endswith(".cu"):
        kernel_files, kernel = (*kernel_files, kernel), ""
    catalogue, added = _catalogue(kernel_files, kernels_dir)
    chosen = catalogue.get(kernel) if kernel else added[-1]
    if chosen.library is not None:
        raise UsageError(f"{chosen.name} is a library's product; it has no blocks")
    problems = _problems_of(size, "uniform", 0)
    if len(problems) > 1:
        raise UsageError(f"--size {size!r}: one size at a time")
    overrides = sweep.parse_settings(settings, None, [chosen])
    if tile is not None:
        if "TILE" not in (*chosen.sweep, *chosen.tune):
            raise UsageError(f"--tile {tile!r}: {chosen.name} has no TILE; leave it away")
        overrides["TILE"] = sweep.parse_values("--tile", tile)
    info = backends.host_device() if chosen.on_host else backends.choose(backend, device)
    cases = sweep.cases([chosen], problems, overrides, info)
    options = Options(precision=0.05, max_time_s=0.3, minimum_samples=3)
    try:
        with Crew(options, _deadlines_of(timeout, build_timeout)) as crew, _progress(1) as advance:
            advance(f"{chosen.name} at {problems[0].size}")
            case = _fastest(crew.worker(info), cases)
            outcome, sample = crew.worker(info).profile(case)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    about = results.environment(sys.argv[1:], [info], {})
    if sample is None or case.launch is None:
        _show(report.outcome_report([outcome], [about]), fmt)
        sys.exit(0 if outcome.status == "skipped" else 1)
    profile = blocks.analyse(sample, case.launch, info)
    if timeline is not None:
        plots.timeline(sample, profile, Path(timeline), case.label)
    if fmt == "rich":
        _print(*report.block_renderables(profile, case.label))
    elif fmt == "json":
        click.echo(results.array([about, outcome, profile]))
    elif fmt == "csv":
        click.echo(report.block_csv(sample, case.launch))
    else:
        click.echo(report.block_text(profile, case.label, fmt))


@main.command()
@click.argument("kernel", metavar="KERNEL|FILE.cu", shell_complete=_kernel_names)
@_files
@click.option("--tiles", metavar="LIST", help="Values of TILE, in place of the kernel's own.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=LIST",
    help="Values of another swept constant; repeatable.",
)
@_device
@click.option(
    "--large/--no-large",
    default=None,
    help="Also the largest C that memory allows, where indices overflow (default: on a GPU).",
)
@click.option(
    "--sanitize", is_flag=True, help="Also run under compute-sanitizer: all four of its tools."
)
@_format
@_deadlines
def check(
    kernel: str,
    kernel_files: tuple[str, ...],
    kernels_dir: str | None,
    tiles: str | None,
    settings: tuple[str, ...],
    backend: str,
    device: str | None,
    large: bool | None,
    sanitize: bool,
    fmt: str,
    timeout: float,
    build_timeout: float,
) -> None:
    """Probe a kernel at awkward shapes: which of them it gets right.

    What is wrong at the others is said below the table.

    \b
    matbench check tiled
    matbench check mine.cu --sanitize
    """
    from matbench import backends, bench, report, results, sweep
    from matbench import sanitize as sanitizer
    from matbench.worker import Crew

    if kernel.endswith(".cu"):
        kernel_files, kernel = (*kernel_files, kernel), ""
    catalogue, added = _catalogue(kernel_files, kernels_dir)
    chosen = catalogue.get(kernel) if kernel else added[-1]
    if chosen.library is not None:
        raise UsageError(f"{chosen.name} is a library's product; `matbench run` checks it")
    if sanitize:
        sanitizer.executable()
    overrides = sweep.parse_settings(settings, tiles, [chosen])
    info = backends.host_device() if chosen.on_host else backends.choose(backend, device)
    if sanitize and info.backend != "cuda":
        raise UsageError(f"--sanitize watches CUDA alone; this is {info.backend}")
    wants_large = info.kind == "gpu" if large is None else large
    memory = bench.host_memory_bytes() if wants_large else None
    probed = sweep.probed(chosen, overrides, info, memory)

    outcomes: list[Outcome] = []
    found: list[str] = []
    interrupted = False
    with Crew(bench.Options(timed=False), _deadlines_of(timeout, build_timeout)) as crew:
        crew.build_ahead([(info, case) for _, case in probed])
        worker = crew.worker(info)
        with _progress(len(probed)) as advance:
            try:
                for purpose, case in probed:
                    advance(f"{case.label}, {case.problem.inputs}: {purpose}")
                    outcomes.append(worker.run(case))
            except KeyboardInterrupt:
                interrupted = True
    if sanitize and not interrupted:
        found = _sanitized(info, probed, timeout)
    if fmt == "rich":
        purposes = [purpose for purpose, _ in probed]
        _print(*report.check(chosen.name, info, purposes, outcomes))
    else:
        about = results.environment(sys.argv[1:], [info], {})
        _show(report.outcome_report(outcomes, [about]), fmt)
    for line in found:
        click.echo(line)
    if interrupted:
        sys.exit(INTERRUPTED)
    if found or any(outcome.status in ("wrong", "failed") for outcome in outcomes):
        sys.exit(1)


def _sanitized(info: DeviceInfo, probed: list[tuple[str, Case]], timeout: float) -> list[str]:
    """Findings of all tools, for each set of parameters at one shape with edges everywhere."""
    from matbench import sanitize

    cases = {str(c.params): c for purpose, c in probed if purpose == "primes" and c.skip is None}
    runs = [(case, tool) for case in cases.values() for tool in sanitize.TOOLS]
    lines = []
    with _progress(len(runs)) as advance:
        for case, tool in runs:
            advance(f"{tool}: {case.label}")
            findings = sanitize.run(info, case, tool, timeout)
            lines += [f"{case.label}: {finding}" for finding in findings]
    click.echo(f"compute-sanitizer: {len(runs)} runs, {len(lines)} findings", err=True)
    return lines


@main.command("report")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@_format
def report_files(files: tuple[str, ...], fmt: str) -> None:
    """Print the table of one or more record files again."""
    from matbench import report, results

    environments: list[Any] = []
    outcomes: list[Outcome] = []
    for file in files:
        notes: list[str] = []
        found_environments, found = results.read(Path(file), notes)
        environments += found_environments
        outcomes += results.without_retried(found)
        for note in notes:
            click.echo(note, err=True)
    _show(report.outcome_report(outcomes, environments), fmt)


# -- list, show, info ----------------------------------------------------------------------------


@main.command("list")
@_files
@click.option(
    "--format",
    "fmt",
    type=click.Choice(["rich", "plain", "github", "json"]),
    default="rich",
    show_default=True,
    help="How to print it.",
)
def list_kernels(kernel_files: tuple[str, ...], kernels_dir: str | None, fmt: str) -> None:
    """List the kernels, what they sweep and what they require."""
    catalogue, _ = _catalogue(kernel_files, kernels_dir)
    kernels = [k for group in ("tutorial", "ladder", "baseline") for k in catalogue.group(group)]
    rows = [
        {
            "kernel": kernel.name,
            "group": kernel.group,
            "sweeps": _values(kernel.sweep),
            "requires": ", ".join(kernel.requires),
            "summary": kernel.summary,
        }
        for kernel in kernels
    ]
    if fmt == "json":
        import json

        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif fmt == "rich":
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD)
        for name in rows[0]:
            table.add_column(name, no_wrap=name == "kernel")
        for before, row in zip([None, *rows], rows, strict=False):
            if before is not None and before["group"] != row["group"]:
                table.add_section()
            table.add_row(*row.values())
        _print(table)
    else:
        from tabulate import tabulate

        click.echo(tabulate(rows, headers="keys", tablefmt=fmt))


def _values(space: dict[str, tuple[int, ...]]) -> str:
    return "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in space.items())


@main.command()
@click.argument("name", shell_complete=_kernel_names)
@_files
def show(name: str, kernel_files: tuple[str, ...], kernels_dir: str | None) -> None:
    """Show one kernel: its front matter in words, and its source."""
    from rich.syntax import Syntax
    from rich.table import Table

    catalogue, _ = _catalogue(kernel_files, kernels_dir)
    kernel = catalogue.get(name)
    table = Table.grid(padding=(0, 2))
    rules = kernel.launch
    needs = [*kernel.requires, *rules.where]
    rows = {
        kernel.name: kernel.summary,
        "group": kernel.group,
        "file": kernel.path or "none: a call of NumPy",
        "runs by default": _values(kernel.sweep) or "once",
        "can be tuned over": _values(kernel.tune),
        "called as": f"{kernel.entry}({', '.join(kernel.args)})" if kernel.entry else "",
        "block (threads)": " × ".join(map(str, rules.block)),
        "grid (blocks)": " × ".join(map(str, rules.grid)),
        "shared memory sized at launch (bytes)": str(rules.shared_bytes or ""),
        "needs": "; ".join(needs),
        "reads its inputs as": kernel.precision,
        "deterministic": "" if kernel.deterministic else "no, it says",
        **{f"modelled {key.replace('_', ' ')}": text for key, text in kernel.model.items()},
    }
    for label, text in rows.items():
        if text:
            table.add_row(f"[bold]{label}[/bold]", text)
    _print(table, "")
    if kernel.source:
        body = kernel.source.split("// ///\n", 1)[-1].lstrip("\n")
        console = _console()
        if console.is_terminal:
            console.print(Syntax(body, "cuda", theme="ansi_dark", background_color="default"))
        else:
            click.echo(body)


@main.command()
def info() -> None:
    """Show all devices, what other backends lack, and the cache."""
    from rich.table import Table

    from matbench import backends
    from matbench.cache import Cache

    found: list[DeviceInfo] = []
    for name in backends.NAMES:
        try:
            found += backends.devices(name)
        except backends.UnavailableError as error:
            click.echo(f"{name} cannot be used: {error}")
    for device in found:
        table = Table.grid(padding=(0, 2))
        rows: dict[str, Any] = {
            "driver": device.driver,
            "toolkit or runtime": device.toolkit,
            **device.properties,
        }
        for label, value in rows.items():
            shown = f"{value:,}" if isinstance(value, int) else value or "not told"
            table.add_row(f"  {label}", str(shown))
        _print("", f"[bold]{device.label}[/bold] ({device.kind.upper()})", table)
    cache = Cache()
    click.echo(
        f"\ncache: {cache.folder}, {cache.size_bytes() / 1e6:,.1f} MB "
        f"of at most {cache.limit_bytes / 1e6:,.0f} MB (`matbench cache clear` empties it)"
    )


@main.group("cache", cls=_Group)
def cache_group() -> None:
    """Look after the references and compiled code that are kept."""


@cache_group.command("clear")
def cache_clear() -> None:
    """Remove everything from the cache."""
    from matbench.cache import Cache

    cache = Cache()
    click.echo(f"removed {cache.clear() / 1e6:,.1f} MB from {cache.folder}")
