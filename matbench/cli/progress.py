"""The live display of long commands, on standard error: a bar, and what is being done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from matbench.cli.console import open_console, printing_above
from matbench.show import safe

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from matbench.records.outcome import Outcome

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
    console = open_console(stderr=True)
    display = Display(console, total, done)
    if not console.is_interactive:
        yield display
        return
    from rich.live import Live

    live = Live(
        get_renderable=display.drawn,
        console=console,
        auto_refresh=False,  # its thread may draw in the middle of what another prints
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    ended = threading.Event()

    def draw() -> None:
        with suppress(OSError):  # the terminal may be closed
            while not ended.wait(1 / _DRAWN_PER_S):
                with display.lock:
                    if not ended.is_set():
                        live.refresh()

    with printing_above(display.print):
        live.start(refresh=True)
        threading.Thread(target=draw, daemon=True).start()
        try:
            yield display
        finally:
            ended.set()
            with suppress(OSError), display.lock:
                live.stop()


class Display:
    """What a command does, on several devices if need be; a thread draws it."""

    def __init__(self, console: Console, total: int | None, done: float = 0) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        # The bar, if there is room for one, and its figures.
        room = min(_WIDEST_BAR, console.width - _WIDTH_OF_FIGURES)
        columns: list[str | ProgressColumn] = [TimeElapsedColumn()]
        if total is not None:
            columns.insert(0, MofNCompleteColumn())
        if room > 0:
            columns.insert(0, BarColumn(room))
        if total is not None and room > 0:
            columns += [TimeRemainingColumn(), "left"]
        self._bar = Progress(
            *columns, console=console, auto_refresh=False, speed_estimate_period=_ESTIMATED_OVER_S
        )
        self._console = console
        self._task = self._bar.add_task("", total=total)
        self._done = done
        self._doing: dict[str, str] = {}  # by device
        #: Held while the state changes, or anything is printed or drawn.
        self.lock = threading.RLock()

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
        if outcome.is_broken and self._console.is_terminal:
            from rich.text import Text

            from matbench.show.outcomes import STYLES

            reason, _, _ = (outcome.reason or "").partition("\n")
            status = outcome.status, STYLES[outcome.status]
            about = safe.flat(f"{outcome.case.label}: {reason}")
            self.print(Text.assemble(status, " ", about), no_wrap=True, overflow="ellipsis")

    def print(self, text: RenderableType, **how: Any) -> None:
        """Print above the display; by default, only the terminal breaks lines."""
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
