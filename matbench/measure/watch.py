"""Follows one kernel file: what became of each save, and how it stands to what it has to beat.

A save is checked like any other kernel. One that is right is timed in turns with the version before
it, the last that was right, and with the nearest rung: of the other kernels the slowest that it
has not beaten yet, and when it has beaten all, the fastest. The rungs are measured one case at a
time while nobody saves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from matbench.analysis.statistics import Comparison, ComparisonPlan
from matbench.errors import MatbenchError, UsageError
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, Kernel, Problem, settings_of
from matbench.show import report

if TYPE_CHECKING:
    from matbench.measure.worker import Crew, Worker

#: How long a file has to stay as it is before a change counts as a save, in seconds: editors
#: empty it before they write it, or put another one in its place.
_STEADY_S = 0.05
#: A change that no event tells of, as on some network drives, is found within this time.
_LOOK_AGAIN_MS = 1000
#: How many lines of a compiler's message are shown, and how many versions before the last.
_SHOWN_LINES = 12
_SHOWN_VERSIONS = 8


class Saves:
    """A file that is looked at again and again; `seen` is what it held when it was judged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: bytes | None = None

    def new(self) -> bytes | None:
        """What it holds, if that was not `seen` yet and no one is writing just now."""
        content = self._content()
        if content is None or content == self.seen:
            return None
        time.sleep(_STEADY_S)
        return content if self._content() == content else None

    def wait(self) -> Iterator[None]:
        """Each turn lasts until something may have changed."""
        from watchfiles import watch

        # The folder: an editor's rename puts another file into the place of a watched one.
        folder = self.path.absolute().parent
        turns = watch(
            folder,
            watch_filter=lambda _, changed: Path(changed).name == self.path.name,
            recursive=False,
            rust_timeout=_LOOK_AGAIN_MS,
            yield_on_timeout=True,
        )
        try:
            for _ in turns:
                yield
        except OSError as error:
            raise MatbenchError(f"{folder} cannot be watched: {error}") from None

    def _content(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except OSError:  # between the two steps of a rename, say
            return None


@dataclass
class Duel:
    """A version at its fastest against an opponent at its own; without a comparison, why not."""

    opponent: str
    params: dict[str, int]
    comparison: Comparison | None
    reason: str = ""


@dataclass
class Standing:
    """A version at one size: its fastest case, and how that stands to its opponents."""

    case: Case
    median_ns: float
    duels: list[Duel] = field(default_factory=list)
    rung: Kernel | None = None


@dataclass
class Version:
    """One save; `wrong` says why it was not timed."""

    number: int
    saved: str
    wrong: str = ""
    standings: dict[Problem, Standing] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"version {self.number}"


class Watch:
    """The versions of a file, oldest first, and the rungs they are held against."""

    def __init__(
        self,
        crew: Crew,
        worker: Worker,
        path: Path,
        rungs: Sequence[Kernel],
        problems: Callable[[Kernel], Iterable[Problem]],
        settings: Sequence[str],
        tiles: str | None,
        plan: ComparisonPlan,
    ) -> None:
        self.crew = crew
        self.worker = worker
        self.path = path
        self.rungs = rungs
        self.problems = problems
        self.settings = settings
        self.tiles = tiles
        self.plan = plan
        self.versions: list[Version] = []
        self.before: Version | None = None
        self.ladder: dict[Problem, list[Case]] = {}
        self.climbed: dict[Problem, list[tuple[float, Case]]] = {}

    # -- a save ----------------------------------------------------------------------------

    def cases(self, kernel: Kernel) -> list[Case]:
        """What is run of a version, the smallest size first; `UsageError` for options amiss."""
        overrides = sweep.parse_settings(self.settings, self.tiles, [kernel])
        problems = sorted(self.problems(kernel), key=lambda p: p.M * p.N * p.K)
        return sweep.cases([kernel], problems, overrides, self.worker.device)

    def look(self, content: bytes) -> Iterator[str]:
        """Judge what the file holds now: says before each step what it is about to do.

        Whoever does not go on to the next step leaves the version as far as it has come.
        """
        if self.versions and not self.versions[-1].wrong and self.versions[-1].standings:
            self.before = self.versions[-1]
        version = Version(len(self.versions) + 1, time.strftime("%H:%M:%S"))
        self.versions.append(version)
        try:
            kernel = catalogue.parse(content, str(self.path))
            catalogue.Catalogue([*catalogue.builtin(), kernel])  # the name is its own
            if kernel.on_host:
                raise UsageError(f"{kernel.name} runs on the host alone; `matbench run` shows it")
            cases = self.cases(kernel)
        except UsageError as error:
            version.wrong = str(error)
            return
        yield from self._check(version, cases)
        for standing in version.standings.values():
            problem = standing.case.problem
            if self.before is not None and problem in self.before.standings:
                old = self.before.standings[problem].case
                yield f"{self.before.label} and {version.label} in turns at {problem.size}"
                self._duel(standing, self.before.label, old)
        yield from self._against_rungs(version)

    def _check(self, version: Version, cases: Sequence[Case]) -> Iterator[str]:
        """Check and time every case; the fastest of each size stands for the version."""
        self.crew.build_ahead([(self.worker.device, case) for case in cases])
        found: dict[Problem, Standing] = {}
        for case in cases:
            if case.skip is not None:
                continue
            yield f"checking {case.label}"
            outcome = self.worker.run(case)
            if outcome.median_ns is None:
                told = f"{case.label} {_STATUS[outcome.status]}: {outcome.reason}"
                version.wrong = "\n".join([told, *outcome.notes])  # where its error map is, say
                return
            best = found.get(case.problem)
            if best is None or outcome.median_ns < best.median_ns:
                found[case.problem] = Standing(case, outcome.median_ns)
        for problem in found:
            if problem not in self.ladder:
                cases = sweep.cases(self.rungs, [problem], {}, self.worker.device)
                self.ladder[problem] = [c for c in cases if c.skip is None and not c.kernel.on_host]
                self.climbed[problem] = []
        if not found:
            version.wrong = "; ".join(dict.fromkeys(f"{c.label} skipped: {c.skip}" for c in cases))
        version.standings = found

    def _duel(self, standing: Standing, opponent: str, case: Case) -> None:
        duel = self.worker.compare(case, standing.case, self.plan, case.problem.seed)
        sides = (duel.baseline, duel.candidate)
        reason = "; ".join(f"{o.kernel} {o.status}: {o.reason}" for o in sides if o.reason)
        standing.duels.append(Duel(opponent, case.params, duel.comparison, reason))

    # -- the rungs -------------------------------------------------------------------------

    @property
    def can_climb(self) -> bool:
        """Whether there is something to do while nobody saves."""
        return bool(self.versions) and any(
            self.ladder[problem] or (standing.rung is None and self._nearest(standing))
            for problem, standing in self.versions[-1].standings.items()
        )

    def climb(self) -> Iterator[str]:
        """Measure the rungs, then hold the version at hand against them; says each step."""
        for problem, cases in self.ladder.items():
            while cases:
                yield f"measuring the rungs at {problem.size}, {len(cases)} to go: {cases[0].label}"
                case = cases.pop(0)
                outcome = self.worker.run(case)
                if outcome.median_ns is not None:
                    self.climbed[problem].append((outcome.median_ns, case))
            yield from self._against_rungs(self.versions[-1])

    def _against_rungs(self, version: Version) -> Iterator[str]:
        """The nearest rung of each size whose rungs are all measured."""
        for problem, standing in version.standings.items():
            rung = None if self.ladder[problem] else self._nearest(standing)
            if rung is not None and standing.rung is None:
                yield f"{rung.kernel.name} and {version.label} in turns at {problem.size}"
                standing.rung = rung.kernel
                self._duel(standing, rung.kernel.name, rung)

    def _nearest(self, standing: Standing) -> Case | None:
        """The slowest rung that is faster than the version, or the fastest of all."""
        best: dict[str, tuple[float, Case]] = {}
        for median_ns, case in self.climbed[standing.case.problem]:
            name = case.kernel.name
            if name != standing.case.kernel.name and not (
                name in best and best[name][0] <= median_ns
            ):
                best[name] = median_ns, case
        ordered = sorted(best.values(), key=lambda found: found[0])
        ahead = [case for median_ns, case in ordered if median_ns < standing.median_ns]
        return ahead[-1] if ahead else ordered[0][1] if ordered else None

    # -- what is shown ---------------------------------------------------------------------

    def line(self, version: Version) -> str:
        """What became of a version, on one line."""
        head = f"{version.label}, {version.saved}"
        if version.wrong:
            return f"{head}: not timed: {' '.join(version.wrong.split())}"
        sizes = [
            "; ".join(
                [
                    f"{report.duration(standing.median_ns)} at {problem.size}"
                    + (f" ({values})" if (values := settings_of(standing.case.params)) else ""),
                    *map(_in_words, standing.duels),
                ]
            )
            for problem, standing in version.standings.items()
        ]
        return f"{head}: right; {'; '.join(sizes)}" if sizes else f"{head}: saved anew meanwhile"

    def screen(self) -> Iterator[RenderableType]:
        """The last version at length, the ones before it in a line each."""
        version = self.versions[-1]
        yield Text(f"{self.path.name} · {version.label} · {version.saved}", style="bold")
        yield Text(self.worker.device.label)
        if self.worker.device.kind == "cpu":
            yield Text(report.CPU_TIMINGS)
        yield Text()
        if version.wrong:
            first, *others = version.wrong.splitlines()
            yield Text(first, style="bold red")
            yield from map(Text, others[:_SHOWN_LINES])
            if others[_SHOWN_LINES:]:
                yield Text(f"… and {len(others) - _SHOWN_LINES} lines more")
            yield Text("Nothing was timed; mend it and save.")
        elif version.standings:
            yield _table(version)
            yield Text("\nin turns with the version before and the nearest rung; below 1 is faster")
        earlier = [v for v in self.versions[-_SHOWN_VERSIONS - 1 : -1] if v.wrong or v.standings]
        if earlier:
            yield Text()
        for old in reversed(earlier):
            yield Text(self.line(old), style="dim", overflow="ellipsis", no_wrap=True)


_STATUS = {"wrong": "is wrong", "failed": "failed", "skipped": "was skipped", "measured": "no time"}


def _in_words(duel: Duel) -> str:
    found = duel.comparison
    if found is None or found.ratio is None:
        return f"not compared with {duel.opponent}: {' '.join(duel.reason.split())}"
    return f"{found.ratio:.3f} of {duel.opponent}: {found.verdict}"


def _table(version: Version) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("size", "time", "parameters", "against", "ratio", "interval", "verdict"):
        right = title in ("time", "ratio", "interval")
        justify: Literal["left", "right"] = "right" if right else "left"
        table.add_column(title, justify=justify, no_wrap=right, overflow="fold")
    for problem, standing in version.standings.items():
        own = [
            problem.size,
            report.duration(standing.median_ns),
            settings_of(standing.case.params) or report.UNKNOWN,
        ]
        for cells in map(_cells, standing.duels) if standing.duels else [()]:
            table.add_row(*own, *cells)
            own = [""] * len(own)
    return table


def _cells(duel: Duel) -> tuple[str | Text, ...]:
    found = duel.comparison
    against = f"{duel.opponent} {settings_of(duel.params)}".strip()
    if found is None or found.ratio is None:
        return against, report.UNKNOWN, report.UNKNOWN, duel.reason
    low, high = found.interval or (found.ratio, found.ratio)
    style = report.VERDICT_STYLE[found.verdict]
    return against, f"{found.ratio:.3f}", f"{low:.3f} to {high:.3f}", Text(found.verdict, style)
