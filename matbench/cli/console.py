"""Output of the commands, and how they end: reports, files, a live display, exit codes.

Everything is printed by `say` or a console from `open_console`, which make it safe for a terminal.
Files are refused if they would destroy or mix up others.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matbench import files, signals
from matbench.errors import UsageError, listed
from matbench.show import safe

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from matbench.records.outcome import Outcome
    from matbench.show.table import Report
    from matbench.show.terminal import Screen
    from matbench.worker.output import CapturedOutput

#: The live display, above which text is printed: other output on its terminal would tear it.
_live: Display | None = None


def say(text: str, *, err: bool = False) -> None:
    """Print text, made safe for a terminal."""
    if _live is not None and (sys.stderr if err else sys.stdout).isatty():
        _live.print(text)
    else:
        click.echo(safe.text(text), err=err)


def say_printed(printer: str, said: CapturedOutput) -> None:
    """Print what a kernel, its compiler or the driver wrote, marked as theirs."""
    for line in said.lines:
        say(f"{printer} output: {safe.line(line)}", err=True)
    if said.more:
        say(f"{printer} output: … {said.more:,} more lines", err=True)


def open_console() -> Screen:
    """A console as wide as the terminal; in a pipe it has room for every column.

    Text is never markup and cannot control the terminal; only rich's own codes can.
    """
    from matbench.show.terminal import Screen

    console = Screen()
    return console if console.is_terminal else Screen(width=10_000)


def show_rich(*renderables: Any) -> None:
    """Print them; in a pipe without the blanks that fill the lines of tables."""
    from matbench.show import terminal

    console = open_console()
    if not console.is_terminal:
        say(terminal.text(*renderables))
        return
    for renderable in renderables:
        console.print(renderable)


def show_report(report: Report, fmt: str) -> None:
    """Print a report in the given format; `rich` fits the terminal's width."""
    from matbench.show import formats, terminal

    if fmt != "rich":
        say(formats.text(report, fmt))
        return
    console = open_console()
    show_rich(*terminal.renderables(report, console.width if console.is_terminal else None))


def require_apart(outputs: Mapping[str, str | None], others: Iterable[str | Path | None]) -> None:
    """`UsageError` if an output, by its option, is the file of another one or one of the `others`.

    Links lead to the same file, also if it does not exist yet. Special files can be shared.
    """
    used = [Path(other) for other in others if other is not None]
    for option, output in outputs.items():
        if output is None:
            continue
        path = Path(output)
        if any(_is_same(path, other) for other in used) and (path.is_file() or not path.exists()):
            raise UsageError(
                f"{option} {path}: this command reads or writes that file already; name another"
            )
        used.append(path)


def require_file(option: str, path: Path, suffixes: Collection[str], *, force: bool) -> None:
    """`UsageError` if the file of an option has another suffix, lacks a folder, or exists."""
    wrong = f"{option} {path}:"
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"{wrong} the name must end in {listed(suffixes)}")
    if path.is_dir():
        raise UsageError(f"{wrong} is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{wrong} no folder {path.parent}; create it, or name another file")
    if os.path.lexists(path) and not force:
        raise UsageError(f"{wrong} exists; --force replaces it")


def _is_same(path: Path, other: Path) -> bool:
    with suppress(OSError):  # one does not exist
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def write_file(path: Path, data: bytes) -> None:
    """Replace the file as a whole, with its permissions, or leave it as it was."""
    target = path.resolve()
    try:
        if target.exists() and not target.is_file():  # a device or a pipe
            path.write_bytes(data)
        else:
            files.replace(target, data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def exit_with(
    outcomes: Iterable[Outcome], *, allow_skips: bool = True, done: str = "measured"
) -> None:
    """Exit 1 for a wrong or failed case, and if no case ran unless that is allowed."""
    statuses = [outcome.status for outcome in outcomes]
    if "wrong" in statuses or "failed" in statuses:
        sys.exit(1)
    if "measured" not in statuses and not allow_skips:
        say(f"nothing was {done}; use --allow-skips to exit with 0 anyway", err=True)
        sys.exit(1)


class Interruption(AbstractContextManager["Interruption"]):
    """Lets Ctrl-C and similar signals end only the work in this block: the command then prints its
    results so far, and `exit` says how far it got."""

    exit_code: int | None = None

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> bool:
        if not isinstance(error, KeyboardInterrupt):
            return False
        signals.ignore()
        self.exit_code = signals.exit_code()
        return True

    def __bool__(self) -> bool:
        return self.exit_code is not None

    def exit(self, done: int, total: int, what: str, *, resume: str | None = None) -> None:
        """If interrupted, end the command and print how to `resume` it; otherwise do nothing."""
        if self.exit_code is not None:
            say(f"interrupted: {done} of {total} {what} are done", err=True)
            if resume is not None:
                say(resume, err=True)
            sys.exit(self.exit_code)


# The live display of long commands, on standard error: a bar, and what is being done

#: Drawing takes a few milliseconds of a core, which a kernel on the CPU would miss.
_DRAWN_PER_S = 2
_WIDEST_BAR = 40
_WIDTH_OF_FIGURES = 35  # beside the bar: 9999/9999 0:00:00 0:00:00 left
#: From how long the time left is estimated: a single case may take minutes.
_ESTIMATED_OVER_S = 600


@contextmanager
def progress(total: int | None, done: float = 0) -> Iterator[Display]:
    """A display on a terminal, nothing in a pipe; without a total there is only a clock.

    So many of the total were `done` before.
    """
    console = None
    if sys.stderr.isatty():
        from matbench.show.terminal import Screen

        console = Screen(stderr=True)
    display = Display(console, total, done)
    if console is None or not console.is_interactive:  # it cannot move its cursor
        yield display
        return
    from rich.live import Live

    # Its own thread might draw in the middle of what another prints.
    live = Live(
        get_renderable=display.drawn, console=console, auto_refresh=False, transient=True,
        redirect_stdout=False, redirect_stderr=False,
    )  # fmt: skip
    ended = threading.Event()

    def draw() -> None:
        with suppress(OSError):  # the terminal may be closed
            while not ended.wait(1 / _DRAWN_PER_S):
                with display.lock:
                    if not ended.is_set():
                        live.refresh()

    global _live
    _live = display
    try:
        live.start(refresh=True)
        threading.Thread(target=draw, daemon=True).start()
        yield display
    finally:
        ended.set()
        with suppress(OSError), display.lock:
            live.stop()
        _live = None


class Display:
    """What a command does, on several devices if need be; a thread draws it, if on a terminal."""

    def __init__(self, console: Console | None, total: int | None, done: float = 0) -> None:
        self._console = console
        self._done = done
        self._doing: dict[str, str] = {}  # by device
        #: Held while the state changes, or anything is printed or drawn.
        self.lock = threading.RLock()
        if console is None:
            return
        from rich import progress as parts

        # The bar, if there is room for one, and its figures.
        room = min(_WIDEST_BAR, console.width - _WIDTH_OF_FIGURES)
        bar = [parts.BarColumn(room)] if room > 0 else []
        count = [parts.MofNCompleteColumn()] if total is not None else []
        left = [parts.TimeRemainingColumn(), parts.TextColumn("left")] if bar and count else []
        self._bar = parts.Progress(
            *bar, *count, parts.TimeElapsedColumn(), *left,
            console=console, auto_refresh=False, speed_estimate_period=_ESTIMATED_OVER_S,
        )  # fmt: skip
        self._task = self._bar.add_task("", total=total)

    def show(self, label: str, place: str = "") -> None:
        """What is done there from now on."""
        from matbench.worker.worker import Worker

        Worker.doing = ""
        with self.lock:
            self._doing[place] = label

    def begin(self, label: str, place: str = "") -> None:
        """Begin a step; the one that was begun there before is done."""
        self.end(place)
        self.show(label, place)

    def end(self, place: str) -> None:
        """The step that was begun there is done."""
        with self.lock:
            self._done += self._doing.pop(place, None) is not None

    def done(self, outcome: Outcome, place: str, share: float) -> None:
        """So much more of a case is done. The next may have been begun there already."""
        with self.lock:
            self._done += share
            if self._doing.get(place) == outcome.case.label:
                del self._doing[place]
        if outcome.is_broken and self._console is not None:
            from rich.text import Text

            from matbench.show.outcomes import STYLES

            reason, _, _ = (outcome.reason or "").partition("\n")
            status = outcome.status, STYLES[outcome.status]
            about = safe.flat(f"{outcome.case.label}: {reason}")
            self.print(Text.assemble(status, " ", about), no_wrap=True, overflow="ellipsis")

    def print(self, text: RenderableType, **how: Any) -> None:
        """Print above the display; by default, only the terminal breaks lines."""
        assert self._console is not None
        with self.lock:
            self._console.print(text, **(how or {"soft_wrap": True}))

    def drawn(self) -> RenderableType:
        """The bar, and a line for each device."""
        from rich.console import Group
        from rich.text import Text

        from matbench.worker.worker import Worker

        with self.lock:
            self._bar.update(self._task, completed=round(self._done, 6))  # thirds add up
            lines = [f"{place}  {label}" for place, label in sorted(self._doing.items())]
            if len(lines) == 1:
                [label] = self._doing.values()
                # Padded, so that the case stays where it is meanwhile.
                lines = [f"{Worker.doing:<10} {label}" if Worker.doing else label]
            texts = (Text(safe.flat(line), no_wrap=True, overflow="ellipsis") for line in lines)
            return Group(self._bar, *texts)
