"""What commands print, and how they end: reports, the progress bar, interruptions, exit codes.

All that is printed goes through `say` or a console of `open_console`, which make it harmless.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from matbench import signals
from matbench.show import safe

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    from matbench.measure.output import Said
    from matbench.records.environment import Environment
    from matbench.records.outcome import Outcome
    from matbench.show.table import Report


def say(text: str, *, err: bool = False) -> None:
    """Print it, harmless to a terminal."""
    click.echo(safe.text(text), err=err)


def say_printed(printer: str, said: Said) -> None:
    """What a kernel printed, or its compiler or driver, as such."""
    for line in said.lines:
        say(f"{printer} output: {safe.line(line)}", err=True)
    if said.more:
        say(f"{printer} output: … {said.more:,} more lines", err=True)


def open_console(*, stderr: bool = False) -> Console:
    """Terminals get their own width; in a pipe nothing is cut.

    No text of a renderable is markup or commands the terminal; only rich's own codes do.
    """
    from rich.console import Console

    class Screen(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text = segment.text if segment.control else safe.text(segment.text)
                yield segment._replace(text=text)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1

    def screen(width: int | None = None) -> Console:
        return Screen(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)

    console = screen()
    return console if console.is_terminal else screen(10_000)


def chart_width() -> int:
    """How wide a chart made of letters is drawn."""
    console = open_console()
    return min(console.width, 100) if console.is_terminal else 76


def show_rich(*renderables: Any) -> None:
    console = open_console()
    for renderable in renderables:
        console.print(renderable)


def show_report(report: Report, fmt: str) -> None:
    """A report in the form that was asked for; on a terminal as wide as it is."""
    from matbench.show import formats, terminal

    if fmt != "rich":
        say(formats.text(report, fmt))
        return
    console = open_console()
    show_rich(*terminal.renderables(report, console.width if console.is_terminal else None))


def read_records(files: Iterable[str]) -> tuple[list[Environment], list[Outcome]]:
    """All records of some files, retried failures once; what is odd about them is said."""
    from matbench.records import reading, resuming

    environments: list[Environment] = []
    outcomes: list[Outcome] = []
    for file in files:
        notes: list[str] = []
        found_environments, found = reading.read(Path(file), notes)
        environments += found_environments
        outcomes += resuming.without_retried(found)
        for note in notes:
            say(f"note: {note}", err=True)
    return environments, outcomes


def exit_with(
    outcomes: Iterable[Outcome], *, allow_skips: bool = True, done: str = "measured"
) -> None:
    """Exit 1 for a wrong or failed case, and unless that is allowed where none could run."""
    statuses = [outcome.status for outcome in outcomes]
    if "wrong" in statuses or "failed" in statuses:
        sys.exit(1)
    if "measured" not in statuses and not allow_skips:
        say(f"nothing was {done}; --allow-skips makes that exit 0", err=True)
        sys.exit(1)


@contextmanager
def progress(total: int | None) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal's standard error, nothing in a pipe; call it with what comes next.
    Without a total it counts."""
    console = open_console(stderr=True)
    if not console.is_terminal:
        yield lambda label: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    # rich tells what is left of a bar by its colour; without colours it is blank, and needs edges.
    left, right = ([TextColumn("\\[")], [TextColumn("]")]) if console.no_color else ([], [])
    columns = (
        *left,
        BarColumn(),
        *right,
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task("", total=total)
    started = False

    def advance(label: str) -> None:
        nonlocal started
        bar.update(task, description=label, advance=1 if started else 0)
        started = True

    bar.start()
    try:
        yield advance
    finally:
        with suppress(OSError):  # a terminal that was closed
            bar.stop()


class Interruption:
    """Ctrl-C or its like ends the work in this block, and then no more than that: what is known
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

    def exit(self, done: int, total: int, what: str, *, resume: str | None = None) -> None:
        """End the command where it was interrupted, and say what goes on with it; else go on."""
        if self.code is not None:
            say(f"interrupted: {done} of {total} {what} are done", err=True)
            if resume is not None:
                say(f"continue with: {resume}", err=True)
            sys.exit(self.code)
