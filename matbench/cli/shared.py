"""What commands share: which kernels and cases are meant, the progress bar, the console."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from matbench import signals, workloads
from matbench.errors import UsageError
from matbench.model import settings_of

if TYPE_CHECKING:
    from rich.console import Console

    from matbench.kernelfile.catalogue import Catalogue
    from matbench.measure.worker import Worker
    from matbench.model import Case, DeviceInfo, Inputs, Kernel, Problem
    from matbench.show.report import Report


def catalogue_of(
    kernel_files: Sequence[str] = (), kernels_dir: str | None = None
) -> tuple[Catalogue, list[Kernel]]:
    """All kernels at hand, and those that were added on the command line."""
    from matbench.kernelfile import catalogue

    added = catalogue.load_folder(Path(kernels_dir)) if kernels_dir else []
    added += [catalogue.load(Path(path)) for path in kernel_files]
    return catalogue.Catalogue([*catalogue.builtin(), *added]), added


def one_kernel_of(
    kernel: str, kernel_files: Sequence[str] = (), kernels_dir: str | None = None
) -> Kernel:
    """The kernel that `KERNEL|FILE.cu` means."""
    (found,) = named_kernels([kernel], catalogue_of(kernel_files, kernels_dir)[0])
    return found


def named_kernels(names: Sequence[str], known: Catalogue) -> list[Kernel]:
    """Kernels by their names, or by the names of their files: `FILE.cu` is read from there."""
    from matbench.kernelfile import catalogue

    loaded = {name: catalogue.load(Path(name)) for name in names if name.endswith(".cu")}
    everything = catalogue.Catalogue([*known.kernels.values(), *loaded.values()])
    return [loaded.get(name) or everything.get(name) for name in names]


def problems_of(
    kernels: Sequence[Kernel],
    sizes: str | None = None,
    inputs: Inputs | None = None,
    seed: int = 0,
    *,
    smoke: bool = False,
) -> list[Problem]:
    """The problems of every workload among the kernels; its own sizes unless some are given."""
    from matbench.kernelfile import sweep

    found = []
    for name in dict.fromkeys(kernel.workload for kernel in kernels):
        workload = workloads.get(name)
        own = workload.smoke_sizes if smoke else workload.default_sizes
        found += sweep.problems(own if smoke or sizes is None else sizes, workload, inputs, seed)
    return found


def open_console(*, stderr: bool = False) -> Console:
    """Terminals get their own width; in a pipe nothing is cut."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=10_000)


def chart_width() -> int:
    """How wide a chart made of letters is drawn."""
    console = open_console()
    return min(console.width, 100) if console.is_terminal else 76


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal's standard error, nothing in a pipe; call it with what comes next."""
    console = open_console(stderr=True)
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


class Interruption:
    """Ctrl-C or SIGTERM ends the work in this block, and then no more than that: what is known
    after it is printed, and `exit` says how far it came."""

    code: int | None = None

    def __enter__(self) -> Interruption:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, KeyboardInterrupt):
            return False
        signals.ignore()
        self.code = signals.exit_code()
        return True

    def __bool__(self) -> bool:
        return self.code is not None

    def exit(self, done: int, total: int, what: str) -> None:
        """End the command where it was interrupted; else go on."""
        if self.code is not None:
            click.echo(f"interrupted: {done} of {total} {what} are done", err=True)
            sys.exit(self.code)


def show_rich(*renderables: Any) -> None:
    console = open_console()
    for renderable in renderables:
        console.print(renderable)


def show_report(table: Report, fmt: str) -> None:
    """A report in the form that was asked for; on a terminal as wide as it is."""
    from matbench.show import report

    if fmt != "rich":
        click.echo(report.text(table, fmt))
        return
    console = open_console()
    width = console.width if console.is_terminal else None
    show_rich(*report.renderables(table, width))


def chosen_kernels(
    names: Sequence[str],
    kernel_files: Sequence[str],
    kernels_dir: str | None,
    group: str | None,
    workload: str | None,
    baselines: Sequence[str] = (),
    *,
    of_every_workload: bool = False,
) -> list[Kernel]:
    """The kernels named, added and grouped; with none of them, the default ones of a workload.

    Those are the tutorial's matrix products, and of another workload the ladder's kernels too.
    `baselines` come on top. A group has the kernels of one workload, or those `of_every_workload`.
    """
    catalogue, added = catalogue_of(kernel_files, kernels_dir)
    if kernels_dir is not None and workload is not None:  # a folder may hold all kinds
        added = [kernel for kernel in added if kernel.workload == workload]
    named = named_kernels(names, catalogue)
    for kernel in named + added:
        if workload not in (None, kernel.workload):
            raise UsageError(f"--workload {workload}: {kernel.name} is of {kernel.workload}")
    of = workload or workloads.DEFAULT
    if group is not None:
        found = catalogue.group(group, None if of_every_workload else of)
        if not found:
            raise UsageError(f"--group {group}: it has no kernel of {of}; see `matbench list`")
        named += found
    chosen = named + added
    if not chosen:
        default = ("tutorial",) if of == workloads.DEFAULT else ("tutorial", "ladder")
        chosen = [kernel for each in default for kernel in catalogue.group(each, of)]
    chosen = chosen + catalogue.baselines(baselines, {kernel.workload for kernel in chosen})
    return list({kernel.name: kernel for kernel in chosen}.values())


def cases_of(
    kernels: Sequence[Kernel],
    problems: Sequence[Problem],
    overrides: dict[str, tuple[int, ...]],
    backend: str,
    device: str | None,
    *,
    tuned: bool = False,
) -> list[tuple[DeviceInfo, Case]]:
    """Each case with its device: the one chosen, or the CPU for baselines of the host.

    `tuned` kernels run with what `matbench tune` kept, or else with their own sweep.
    """
    from matbench import backends
    from matbench.backends import host
    from matbench.kernelfile import sweep

    plain = [kernel for kernel in kernels if not kernel.on_host]
    found: list[tuple[DeviceInfo, Case]] = []
    if plain:
        info = backends.choose(backend, device)
        if tuned:
            found += [(info, case) for case in _tuned_cases(plain, problems, info)]
        else:
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
            found.append((info, case if missing is None else skipped(case, missing)))
    return found


def _tuned_cases(
    kernels: Sequence[Kernel], problems: Sequence[Problem], info: DeviceInfo
) -> list[Case]:
    """What tuning kept; once said of each kernel that it kept nothing for."""
    from matbench.kernelfile import sweep
    from matbench.measure import tune

    store, found, untuned = tune.Store(), [], set()
    for problem in problems:
        for kernel in kernels:
            cases = tune.tuned_cases(kernel, problem, info, store)
            if not cases and (kernel.sweep or kernel.tune) and kernel.name not in untuned:
                untuned.add(kernel.name)
                said = f"{kernel.name} is not tuned on {info.name}; its own sweep runs instead"
                click.echo(f"{said} (`matbench tune {kernel.name}`)", err=True)
            found += cases or sweep.cases([kernel], [problem], {}, info)
    return found


def skipped(case: Case, reason: str) -> Case:
    import msgspec

    return msgspec.structs.replace(case, skip=reason, launch=None)


def deadlines_of(timeout: float, build_timeout: float) -> Any:
    from matbench.measure.worker import Deadlines

    return Deadlines(build_s=build_timeout, run_s=timeout)


def require_one_kind(cold: bool, hot: bool, graph: bool, device: DeviceInfo) -> None:
    """For a command that times one kind of launches: `UsageError` when both are asked for."""
    if cold and hot:
        raise UsageError(
            "--cold or --hot: one kind of launches at a time; `matbench run` takes both"
        )
    if graph and not hot:
        raise UsageError("--graph launches hot samples; add --hot")
    if graph and device.backend != "cuda":
        raise UsageError(f"--graph needs CUDA; this is {device.label}")


def fastest(worker: Worker, cases: list[Case]) -> tuple[Case, str]:
    """The case to compare: the only one, or the fastest by a quick look at all of them.

    With it what was considered, in words; nothing where there was no choice.
    """
    runnable = [case for case in cases if case.skip is None]
    if len(runnable) <= 1:
        return (runnable or cases)[0], ""
    looks = [(worker.run(case), case) for case in runnable]
    timed = [(outcome.median_ns, case) for outcome, case in looks if outcome.median_ns is not None]
    best = min(timed, key=lambda found: found[0])[1] if timed else runnable[0]
    values: dict[str, dict[int, None]] = {}
    for case in runnable:
        for name, value in case.params.items():
            values.setdefault(name, {})[value] = None
    varied = " and ".join(
        f"{name} {', '.join(map(str, found))}" for name, found in values.items() if len(found) > 1
    )
    note = f"{best.kernel.name}: the fastest of {len(runnable)} by a quick look at {varied}"
    bad = [f"{settings_of(case.params)} {o.status}" for o, case in looks if o.median_ns is None]
    return best, f"{note}; {', '.join(bad)}" if bad else note
