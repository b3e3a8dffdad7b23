"""`matbench run --watch`: one kernel file, from save to save."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from matbench import signals
from matbench.cli.shared import catalogue_of, named_kernels, open_console
from matbench.errors import UsageError
from matbench.model import DeviceInfo, Kernel, Problem

if TYPE_CHECKING:
    from matbench.measure.bench import Options
    from matbench.measure.watch import Saves, Watch
    from matbench.measure.worker import Deadlines

#: How long two versions take turns at most, in nanoseconds.
_TURNS_NS = 3e9


def rungs(
    names: Sequence[str], kernel_files: Sequence[str], kernels_dir: str | None, group: str | None
) -> list[Kernel]:
    """The kernels that were named, or the tutorial's and the ladder's."""
    catalogue, added = catalogue_of(kernel_files, kernels_dir)
    named = named_kernels(names, catalogue) + added
    for kernel in named:
        if kernel.on_host:
            raise UsageError(f"--watch: {kernel.name} runs on the host alone, and is no rung")
    groups = [group] if group else [] if named else ["tutorial", "ladder"]
    return named + [kernel for name in groups for kernel in catalogue.group(name, None)]


def follow(
    path: Path,
    *,
    rungs: Sequence[Kernel],
    problems: Callable[[Kernel], Sequence[Problem]],
    settings: Sequence[str],
    tiles: str | None,
    device: DeviceInfo,
    options: Options,
    deadlines: Deadlines,
) -> None:
    """Look at every save until Ctrl-C, which is the way to end it."""
    from matbench.analysis.statistics import ComparisonPlan
    from matbench.kernelfile import catalogue
    from matbench.measure.watch import Saves, Watch
    from matbench.measure.worker import Crew

    if not path.is_file():
        if path.suffix != ".cu" or path.exists():
            raise UsageError(f"{path}: no kernel file; --watch takes one, as in mine.cu")
        raise UsageError(f"{path}: no such file; `matbench new {path.stem}` writes one")
    plan = ComparisonPlan(maximum_time_ns=_TURNS_NS)
    with Crew(options, deadlines) as crew:
        crew.start([device])
        worker = crew.worker(device)
        watch = Watch(crew, worker, path, rungs, problems, settings, tiles, plan)
        try:
            first = catalogue.load(path)
        except UsageError:
            pass  # to be mended while it is watched
        else:
            watch.cases(first)  # options that suit no version end it here
        try:
            _follow(Saves(path), watch)
        except KeyboardInterrupt:
            if signals.is_terminated():
                raise
            click.echo("")


def _follow(saves: Saves, watch: Watch) -> None:
    turns = saves.wait()
    with _screen(watch) as show:
        while True:
            if (content := saves.new()) is not None:
                saves.seen = content
                _work(watch.look(content), saves, show)
                if not open_console().is_terminal:
                    click.echo(f"{saves.path.name} {watch.line(watch.versions[-1])}")
            elif watch.can_climb:
                _work(watch.climb(), saves, show)
            else:
                show("Waiting for the next save; Ctrl-C ends it.")
                next(turns)


def _work(steps: Iterator[str], saves: Saves, show: Callable[[str], None]) -> None:
    """Go through the steps; leave them when the file is saved anew."""
    for step in steps:
        if saves.new() is not None:
            return
        show(f"{step[:1].upper()}{step[1:]} …")


@contextmanager
def _screen(watch: Watch) -> Iterator[Callable[[str], None]]:
    """Draws where the watch stands, above a line that says what comes next; nothing in a pipe."""
    console = open_console()
    if not console.is_terminal:
        yield lambda line: None
        return
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    # Drawn once a step: nothing else may run while a CPU is timed.
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        yield lambda line: live.update(
            Group(*watch.screen(), Text(f"\n{line}", style="cyan")), refresh=True
        )
