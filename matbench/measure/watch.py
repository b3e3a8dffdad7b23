"""Watches one kernel file: checks each saved version, and compares it with earlier ones and rungs.

Each save is checked like any other kernel. If it is right, it is timed in turns with the previous
version that was right, and with the next rung: the slowest of the other kernels that is faster,
or the fastest if none is. The rungs are measured one case at a time between saves.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matbench.analysis.claims import weakening
from matbench.analysis.statistics import ComparisonPlan
from matbench.errors import MatbenchError, UsageError
from matbench.kernelfile import catalogue, includes, sweep, tables
from matbench.measure.worker import Crew, Worker
from matbench.model import Case, Included, Kernel, Problem
from matbench.records.outcome import Claims, Outcome
from matbench.records.watch import Standing, Version

#: How long a file must stay unchanged before a change counts as a save, in seconds: editors empty
#: a file before they write it, or replace it.
_STEADY_S = 0.05
#: A change without an event, as on some network drives, is found within this time.
_LOOK_AGAIN_MS = 1000


class _Held(NamedTuple):
    content: bytes
    included: tuple[Included, ...]
    table: bytes | None  # of the file beside it


class Saves:
    """A file and the files that it includes, polled for changes.

    `seen` is the content of the file when it was last checked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: _Held | None = None

    @property
    def seen(self) -> bytes | None:
        return self._seen.content if self._seen else None

    @seen.setter
    def seen(self, content: bytes) -> None:
        self._seen = self._with_included(content)

    def new(self) -> bytes | None:
        """The content, if it or an included file changed since `seen` and is not being written."""
        held = self._held()
        if held is None or held == self._seen:
            return None
        time.sleep(_STEADY_S)
        return held.content if self._held() == held else None

    def wait(self) -> Iterator[None]:
        """Each iteration waits until something may have changed."""
        from watchfiles import watch

        # Watch the folder: editors replace the file by renaming another, and headers are beside
        # it. Headers elsewhere are checked after each timeout.
        folder = self.path.absolute().parent
        turns = watch(
            folder,
            watch_filter=None,
            recursive=False,
            rust_timeout=_LOOK_AGAIN_MS,
            yield_on_timeout=True,
        )
        try:
            for _ in turns:
                yield
        except OSError as error:
            raise MatbenchError(f"{folder} cannot be watched: {error}") from None

    def _held(self) -> _Held | None:
        try:
            return self._with_included(self.path.read_bytes())
        except OSError:  # between the two steps of a rename, say
            return None

    def _with_included(self, content: bytes) -> _Held:
        table = None
        with contextlib.suppress(OSError):
            table = tables.beside_of(self.path).read_bytes()
        try:
            found = includes.of(content.decode(errors="replace"), self.path)
        except UsageError:  # reported when the file is checked
            found = ()
        return _Held(content, found, table)


class Watch:
    """The versions of a file, oldest first, and the rungs that they are compared with."""

    def __init__(
        self,
        crew: Crew,
        worker: Worker,
        path: Path,
        rungs: Sequence[Kernel],
        cases: Callable[[Kernel], Iterable[Case]],
        plan: ComparisonPlan,
        draw: Callable[[Outcome], str] = lambda _: "",
        given: Mapping[str, Any] | None = None,
    ) -> None:
        """`cases` are those of one version.

        `draw` draws the error map of a wrong case, if it has one, and says where it is.

        Values `given` on the command line override keys of the file's table.
        """
        self.given = given
        self.crew = crew
        self.worker = worker
        self.path = path
        self.rungs = rungs
        self.cases = cases
        self.plan = plan
        self.draw = draw
        self.versions: list[Version] = []
        self._best: dict[tuple[int, Problem], Case] = {}
        self._before: Version | None = None
        self._ladder: dict[Problem, list[Case]] = {}
        self._climbed: dict[Problem, list[tuple[float, Case]]] = {}

    # -- a save ----------------------------------------------------------------------------

    def look(self, content: bytes) -> Iterator[str]:
        """Check and time the current content; yields a description before each step.

        If the caller stops early, the version keeps its results so far.
        """
        if self.versions and not self.versions[-1].wrong and self.versions[-1].standings:
            self._before = self.versions[-1]
        version = Version(len(self.versions) + 1, time.strftime("%H:%M:%S"))
        self.versions.append(version)
        try:
            kernel = catalogue.parse(content, self.path, given=self.given)
            catalogue.Catalogue([*catalogue.builtin(), kernel])  # its name must be unique
            if kernel.on_host:
                raise UsageError(f"{kernel.name} runs only on the host; use `matbench run`")
            cases = sorted(self.cases(kernel), key=lambda c: _volume(c.problem))
        except UsageError as error:
            version.wrong, version.paste = str(error), error.paste
            return
        yield from self._check(version, cases)
        for problem, standing in version.standings.items():
            before = self._before
            if before is not None and problem in before.standings:
                yield f"timing {before.label} and {version.label} in turns at {problem.size}"
                old = self._best[before.number, problem]
                self._compare(version, problem, standing, before.label, old)
        yield from self._against_rungs(version)

    def _check(self, version: Version, cases: Sequence[Case]) -> Iterator[str]:
        """Check and time every case; the fastest of each size represents the version."""
        self.crew.build_ahead([(self.worker.device, case) for case in cases])
        found: dict[Problem, Standing] = {}
        for case in cases:
            if case.skip is not None:
                continue
            yield f"checking {case.label}"
            measured = self.worker.measure(case)
            outcome = measured.outcome
            if outcome.median_ns is None:
                drawn = self.draw(outcome)
                what = _WORDS[outcome.status]
                lines = [f"{case.label} {what}: {outcome.reason}", *outcome.notes, drawn]
                version.wrong = "\n".join(filter(None, lines))
                return
            best = found.get(case.problem)
            if best is None or outcome.median_ns < best.median_ns:
                found[case.problem] = Standing(case.params, outcome.median_ns)
                self._best[version.number, case.problem] = case
        for problem in found:
            if problem not in self._ladder:
                rungs = sweep.cases(self.rungs, [problem], {}, self.worker.device)
                self._ladder[problem] = [
                    case for case in rungs if case.skip is None and not case.kernel.on_host
                ]
                self._climbed[problem] = []
        if not found:
            version.wrong = "; ".join(dict.fromkeys(f"{c.label} skipped: {c.skip}" for c in cases))
        version.standings = found

    def _compare(
        self, version: Version, problem: Problem, standing: Standing, opponent: str, other: Case
    ) -> None:
        own = self._best[version.number, problem]
        record = self.worker.compare(other, own, self.plan, problem.seed)
        named = {"baseline_name": opponent, "candidate_name": version.label}
        standing.comparisons.append(msgspec.structs.replace(record, **named))

    # -- the rungs -------------------------------------------------------------------------

    @property
    def can_climb(self) -> bool:
        """Whether there is something to do between saves."""
        if not self.versions:
            return False
        version = self.versions[-1]
        return any(
            self._ladder[problem]
            or (standing.rung is None and self._nearest(version, problem, standing) is not None)
            for problem, standing in version.standings.items()
        )

    def climb(self) -> Iterator[str]:
        """Measure the rungs, then compare the current version with them; yields each step."""
        for problem, cases in self._ladder.items():
            while cases:
                yield f"measuring the rungs at {problem.size}, {len(cases)} left: {cases[0].label}"
                case = cases.pop(0)
                outcome = self.worker.measure(case).outcome
                if outcome.median_ns is not None:
                    self._climbed[problem].append((outcome.median_ns, case))
            yield from self._against_rungs(self.versions[-1])

    def _against_rungs(self, version: Version) -> Iterator[str]:
        """Compare with the next rung at each size whose rungs are all measured."""
        for problem, standing in version.standings.items():
            if self._ladder[problem] or standing.rung is not None:
                continue
            rung = self._nearest(version, problem, standing)
            if rung is not None:
                yield f"timing {rung.kernel.name} and {version.label} in turns at {problem.size}"
                standing.rung = rung.kernel.name
                self._compare(version, problem, standing, rung.kernel.name, rung)

    def _nearest(self, version: Version, problem: Problem, standing: Standing) -> Case | None:
        """The slowest rung that is faster than the version, or the fastest of all.

        If the version has no claims, rungs without claims are preferred.
        """
        mine = self._best[version.number, problem].kernel
        own, has_claims = mine.name, bool(weakening(Claims.of(mine)))
        best: dict[str, tuple[float, Case]] = {}
        for median_ns, case in self._climbed[problem]:
            name = case.kernel.name
            if name != own and not (name in best and best[name][0] <= median_ns):
                best[name] = median_ns, case

        def place(found: tuple[float, Case]) -> tuple[bool, float]:
            weaker = not has_claims and bool(weakening(Claims.of(found[1].kernel)))
            return weaker, -found[0]

        ahead = [found for found in best.values() if found[0] < standing.median_ns]
        if ahead:
            return min(ahead, key=place)[1]
        return min(best.values(), key=lambda found: found[0])[1] if best else None


_WORDS = {"wrong": "is wrong", "failed": "failed", "skipped": "was skipped", "measured": "no time"}


def _volume(problem: Problem) -> int:
    return problem.M * problem.N * problem.K
