"""The live display of a sweep: how far it is, what it does, and the fastest so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from matbench import workloads
from matbench.analysis.ranking import Ranked
from matbench.model import settings_of
from matbench.records.outcome import Outcome
from matbench.show import outcomes, safe, units

_WIDEST_BAR = 40
_NARROWEST_BAR = 4
#: The bar, the current case, and a line of the terminal that is left alone.
_OTHER_LINES = 3


class Leader(NamedTuple):
    """A size, the fastest kernel there with its parameters, and its speed.

    The name also says how many others may be the fastest.
    """

    size: str
    name: str
    rate: str


@dataclass(frozen=True)
class Progress:
    """The state of a sweep at one moment, laid out to fit the terminal.

    Without `total` steps are not counted. `begun`: what those that are not done amount to.
    `fastest` are the leaders of the outcomes so far.
    """

    total: int | None
    done: int
    elapsed_s: float
    left_s: float | None = None
    doing: str = ""
    labels: Sequence[str] = ()
    fastest: Sequence[Leader] = ()
    begun: float = 0.0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._bar(options.max_width, edges=console.no_color)
        # Padded, so that the case stays where it is meanwhile.
        doing = f"{self.doing:<10} " if self.doing else ""
        for label in self.labels:
            yield _line(doing + label)
        room = options.size.height - _OTHER_LINES - max(0, len(self.labels) - 1)
        if self.fastest and room > 0:
            yield from self._ranking(room, options.max_width)

    def _ranking(self, room: int, width: int) -> Iterator[RenderableType]:
        """At most `room` lines of the fastest, at the largest sizes, with a heading if it fits."""
        shown = list(self.fastest[-room:])
        if hidden := len(self.fastest) - len(shown):
            del shown[0]
            yield _line(f"… {hidden + 1} more", style="dim")
        elif len(shown) < room:
            yield _line("fastest so far", style="dim")
        sizes, _, rates = (max(map(cell_len, column)) for column in zip(*self.fastest, strict=True))
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True, max_width=max(1, width - sizes - rates - 4))
        table.add_column(justify="right", no_wrap=True)
        for place in shown:
            table.add_row(*map(_line, place))
        yield table

    def _bar(self, width: int, *, edges: bool) -> Table:
        """The bar and its figures; without colours, brackets mark its ends."""
        words = [units.clock(self.elapsed_s)]
        if self.total is not None:
            words.insert(0, f"{self.done:{len(str(self.total))}}/{self.total}")
        if self.left_s is not None and self.left_s >= 1:  # later, it took longer than expected
            words.append(f"{units.clock(self.left_s)} left")
        figures = Text("  ".join(words), no_wrap=True, overflow="ellipsis")
        left, right = ([Text("[")], [Text("]")]) if edges else ([], [])
        bar_width = min(_WIDEST_BAR, width - figures.cell_len - 1 - 4 * edges)
        line = Table.grid(padding=(0, 1, 0, 0))
        if bar_width < _NARROWEST_BAR:
            line.add_row(figures)
        else:
            bar = ProgressBar(self.total, self.done + self.begun, width=bar_width)
            line.add_row(*left, bar, *right, figures)
        return line


def failure(outcome: Outcome) -> Text:
    """A case that is wrong or failed, with the first line of its reason."""
    reason, _, _ = (outcome.reason or "").partition("\n")
    about = _line(f"{outcome.case.label}: {reason}")
    return Text.assemble((outcome.status, outcomes.STYLES[outcome.status]), " ", about)


def places(best: Iterable[Sequence[Ranked]]) -> list[Leader]:
    """The leaders of each ranking in words."""
    described = []
    for row, *others in best:
        case = row.outcome.case
        size = outcomes.size_label(case.problem) + ", float64" * row.is_double
        rate = units.rates([row.work_per_s], workloads.workload_of(case.problem).rate)(
            row.work_per_s
        )
        name = f"{case.kernel} {settings_of(case.params)}".strip()
        if others:
            name += f" or one of {len(others)} others" if len(others) > 1 else " or another"
        described.append(Leader(size, name, rate))
    return described


def _line(text: str, style: str = "") -> Text:
    return Text(safe.flat(text), style=style, no_wrap=True, overflow="ellipsis")
