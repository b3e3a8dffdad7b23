"""The live display of long commands, on standard error."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from matbench.cli.console import open_console, printing_above

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from matbench.analysis.eta import Kind
    from matbench.records.outcome import CaseRecord, Outcome
    from matbench.records.resuming import CaseKey
    from matbench.show.progress import Leader, Progress

#: Drawing takes a few milliseconds of a core, which a kernel on the CPU would miss.
_DRAWN_PER_S = 2


@contextmanager
def progress(total: int | None, plan: Iterable[CaseRecord] = ()) -> Iterator[Display]:
    """A display on a terminal, nothing in a pipe; without a total there is only a clock.

    `plan` are the cases that will run, from which the time left is estimated.
    """
    console = open_console(stderr=True)
    display = Display(console, total, plan)
    if not console.is_interactive:
        yield display
        return
    from rich.live import Live

    live = Live(
        get_renderable=display.state,
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
    start_s: float


@dataclass
class _Begun:
    """A case with rounds left: the share that is done, and how long they took."""

    kind: Kind
    share: float = 0.0
    spent_s: float = 0.0


class Display:
    """The steps of a command, of several devices if need be; a thread draws their state."""

    def __init__(self, console: Console, total: int | None, plan: Iterable[CaseRecord]) -> None:
        from matbench.analysis.eta import Estimate, Kind

        self._console = console
        self._total = total
        self._left = Counter(map(Kind.from_case, plan))
        self._estimate = Estimate()
        self._leading: list[Outcome] = []
        self._fastest: list[Leader] = []
        self._done = 0
        #: By device, if several work at the same time: the steps that were begun and are not done.
        self._steps: dict[str, _Step] = {}
        self._begun: dict[CaseKey, _Begun] = {}
        self._start_s = time.monotonic()
        #: Held while the state changes, or anything is printed or drawn.
        self.lock = threading.RLock()

    def begin(self, label: str, case: CaseRecord | None = None, place: str = "") -> None:
        """Begin a step, such as a round of a case of the plan.

        One that was begun there before is done, unless it is a case, which `done` says.
        """
        from matbench.analysis.eta import Kind
        from matbench.measure.worker import Worker
        from matbench.records.resuming import CaseKey

        Worker.doing = ""
        with self.lock:
            before = self._steps.pop(place, None)
            self._done += before is not None and before.key is None
            self._add_time(before)
            key = CaseKey.from_case(case) if case is not None else None
            if key is not None and case is not None and key not in self._begun:
                self._begun[key] = _Begun(Kind.from_case(case))
            self._steps[place] = _Step(label, key, time.monotonic())

    def _add_time(self, step: _Step | None) -> None:
        """A step has ended: its time is that of its case."""
        if step is not None and step.key in self._begun:
            self._begun[step.key].spent_s += time.monotonic() - step.start_s

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
        from matbench.analysis import ranking
        from matbench.records.resuming import CaseKey, outcome_key
        from matbench.show.progress import failure, places

        key = CaseKey.from_case(outcome.case)
        if place in self._steps and outcome.is_broken:
            self.print(failure(outcome), no_wrap=True, overflow="ellipsis")
        others = (known for known in self._leading if outcome_key(known) != outcome_key(outcome))
        best = ranking.best_of([*others, outcome])
        with self.lock:
            self._leading = [row.outcome for rows in best for row in rows]
            self._fastest = places(best)
            step = self._steps.get(place)
            if step is not None and step.key in (key, None):
                self._add_time(self._steps.pop(place))
            if share < 1:
                self._begun[key].share = share
                return
            self._done += 1
            begun = self._begun.pop(key, None)
            if begun is not None and outcome.status != "skipped":
                self._estimate.add(begun.kind, begun.spent_s)
                self._left[begun.kind] -= 1

    def print(self, text: RenderableType, **how: Any) -> None:
        """Print above the display; by default, only the terminal breaks lines."""
        with self.lock:
            self._console.print(text, **(how or {"soft_wrap": True}))

    def state(self) -> Progress:
        """What to draw now."""
        from matbench.measure.worker import Worker
        from matbench.show.progress import Progress

        with self.lock:
            now_s = time.monotonic()
            steps = sorted(self._steps.items())
            several = len(steps) > 1
            running_s = {step.key: now_s - step.start_s for _, step in steps if step.key}
            current = [
                (begun.kind, begun.spent_s + running_s.get(key, 0.0))
                for key, begun in self._begun.items()
            ]
            return Progress(
                total=self._total,
                done=self._done,
                begun=sum(begun.share for begun in self._begun.values()),
                elapsed_s=now_s - self._start_s,
                left_s=self._estimate.left_s(self._left, current, len(steps)),
                doing=Worker.doing if not several else "",
                labels=[
                    f"{place}  {step.label}" if several else step.label for place, step in steps
                ],
                fastest=self._fastest,
            )
