"""The live display of long commands, on standard error: a bar, and what is being done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from matbench.cli.console import open_console, printing_above

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress

    from matbench.records.outcome import CaseRecord, Outcome
    from matbench.records.resuming import CaseKey

#: Drawing takes a few milliseconds of a core, which a kernel on the CPU would miss.
_DRAWN_PER_S = 2
_WIDEST_BAR = 40


@contextmanager
def progress(total: int | None) -> Iterator[Display]:
    """A display on a terminal, nothing in a pipe; without a total there is only a clock."""
    console = open_console(stderr=True)
    display = Display(console, total)
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


class _Step(NamedTuple):
    label: str
    key: CaseKey | None


class Display:
    """The steps of a command, of several devices if need be; a thread draws their state."""

    def __init__(self, console: Console, total: int | None) -> None:
        self._console = console
        self._bar = _bar(console)
        self._task = self._bar.add_task("", total=total)
        self._done = 0
        #: By device, if several work at the same time: the steps that were begun and are not done.
        self._steps: dict[str, _Step] = {}
        #: What is done of the cases that have rounds left.
        self._shares: dict[CaseKey, float] = {}
        #: Held while the state changes, or anything is printed or drawn.
        self.lock = threading.RLock()

    def begin(self, label: str, case: CaseRecord | None = None, place: str = "") -> None:
        """Begin a step, such as a round of a case.

        One that was begun there before is done, unless it is a case, which `done` says.
        """
        from matbench.measure.worker import Worker
        from matbench.records.resuming import CaseKey

        Worker.doing = ""
        with self.lock:
            before = self._steps.pop(place, None)
            self._done += before is not None and before.key is None
            key = CaseKey.from_case(case) if case is not None else None
            self._steps[place] = _Step(label, key)

    def end(self, place: str) -> None:
        """The step that was begun there is done."""
        with self.lock:
            self._done += self._steps.pop(place, None) is not None

    def done(self, outcome: Outcome, place: str = "", share: float = 1.0) -> None:
        """The outcome of the case that was begun there, when this share of its rounds is done.

        If none was begun, it is one that was known before.
        """
        if not self._console.is_terminal:
            return
        from matbench.records.resuming import CaseKey
        from matbench.show.progress import failure

        step, key = self._steps.get(place), CaseKey.from_case(outcome.case)
        if step is not None and outcome.is_broken:
            self.print(failure(outcome), no_wrap=True, overflow="ellipsis")
        with self.lock:
            if step is not None and step.key in (key, None):
                self._steps.pop(place, None)
            if share < 1:
                self._shares[key] = share
                return
            self._shares.pop(key, None)
            self._done += 1
            if step is None:  # the time left is not known from what took none
                self._bar.reset(self._task, completed=self._done)

    def print(self, text: RenderableType, **how: Any) -> None:
        """Print above the display; by default, only the terminal breaks lines."""
        with self.lock:
            self._console.print(text, **(how or {"soft_wrap": True}))

    def drawn(self) -> RenderableType:
        """The bar, and a line for each device."""
        from rich.console import Group

        from matbench.measure.worker import Worker
        from matbench.show.progress import line

        with self.lock:
            completed = self._done + sum(self._shares.values())
            self._bar.update(self._task, completed=completed, count=self._done)
            if len(self._steps) == 1 and Worker.doing:
                [step] = self._steps.values()
                # Padded, so that the case stays where it is meanwhile.
                return Group(self._bar, line(f"{Worker.doing:<10} {step.label}"))
            places = sorted(self._steps.items())
            labels = (
                f"{place}  {step.label}" if len(places) > 1 else step.label
                for place, step in places
            )
            return Group(self._bar, *map(line, labels))


def _bar(console: Console) -> Progress:
    """The bar and its figures; without colours, brackets mark its ends."""
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column
    from rich.text import Text

    class Count(ProgressColumn):
        def render(self, task: Task) -> Text:
            if task.total is None:
                return Text()
            return Text(f"{task.fields.get('count', 0):{len(str(task.total))}}/{task.total}")

    class Left(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            return super().render(task).append(" left") if task.time_remaining else Text()

    room = console.width - 30
    edges = [TextColumn(r"\["), TextColumn("]")] if console.no_color and room > 0 else []
    bar = [BarColumn(bar_width=min(_WIDEST_BAR, room))] if room > 0 else []
    figures = (Count, TimeElapsedColumn, *([Left] if bar else []))
    return Progress(
        *edges[:1],
        *bar,
        *edges[1:],
        *(kind(table_column=Column(no_wrap=True)) for kind in figures),
        console=console,
        auto_refresh=False,
    )
