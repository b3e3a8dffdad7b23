"""Watches one kernel file: checks each saved version, and compares it with the one before.

Each save is checked like any other kernel. If it is right, it is timed in turns with the previous
version that was right.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matbench.analysis.statistics import ComparisonPlan
from matbench.cli import registry
from matbench.cli.options import require_device
from matbench.errors import MatbenchError, UsageError
from matbench.features.watch.version import SavedVersion, TimedVersion
from matbench.kernelfile import catalogue, includes, tables
from matbench.kernelfile.code import code_of
from matbench.model import Case, Included, Kernel, Problem
from matbench.records.outcome import Outcome
from matbench.show.reasons import skip_reason
from matbench.worker.worker import Worker, WorkerPool

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
            included = includes.find_includes(content.decode(errors="replace"), self.path)
        except UsageError:  # reported when the file is checked
            included = ()
        return _Held(content, included, table)


class WatchedVersions:
    """The versions of a file, oldest first."""

    def __init__(
        self,
        pool: WorkerPool,
        worker: Worker,
        path: Path,
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
        self.pool = pool
        self.worker = worker
        self.path = path
        self.cases = cases
        self.plan = plan
        self.draw = draw
        self.versions: list[SavedVersion] = []
        self._best: dict[tuple[int, Problem], Case] = {}
        self._before: SavedVersion | None = None
        #: The last right version that was timed to the end, and its code.
        self._timed = "", ""

    def look(self, content: bytes) -> Iterator[str]:
        """Check and time the current content; yields a description before each step.

        If the caller stops early, the version keeps its results so far.
        """
        if self.versions and not self.versions[-1].wrong and self.versions[-1].standings:
            self._before = self.versions[-1]
        version = SavedVersion(len(self.versions) + 1, time.strftime("%H:%M:%S"))
        self.versions.append(version)
        try:
            kernel = catalogue.parse(content, self.path, given=self.given)
            [kernel] = catalogue.told_apart([kernel])
            require_device(kernel)
            code = code_of(kernel)
            label, timed = self._timed
            if code == timed:
                version.same_as = label
                return
            cases = sorted(self.cases(kernel), key=lambda c: _volume(c.problem))
        except UsageError as error:
            suggestion = registry.with_lines_to_paste(error)
            version.wrong, version.paste = str(suggestion), suggestion.paste
            return
        yield from self._check(version, cases)
        for problem, standing in version.standings.items():
            before = self._before
            if before is not None and problem in before.standings:
                yield f"timing {before.label} and {version.label} in turns at {problem.size}"
                old = self._best[before.number, problem]
                self._compare(version, problem, standing, before.label, old)
        if not version.wrong:
            self._timed = version.label, code

    def _check(self, version: SavedVersion, cases: Sequence[Case]) -> Iterator[str]:
        """Check and time every case; the fastest of each size represents the version."""
        self.pool.build_ahead([(self.worker.device, case) for case in cases])
        fastest: dict[Problem, TimedVersion] = {}
        for case in cases:
            if case.skip is not None:
                continue
            yield f"checking {case.label}"
            outcome = self.worker.measure(case)
            if outcome.median_ns is None:
                drawn = self.draw(outcome)
                what = _WORDS[outcome.status]
                lines = [f"{case.label} {what}: {outcome.reason}", *outcome.notes, drawn]
                version.wrong = "\n".join(filter(None, lines))
                return
            best = fastest.get(case.problem)
            if best is None or outcome.median_ns < best.median_ns:
                fastest[case.problem] = TimedVersion(case.params, outcome.median_ns)
                self._best[version.number, case.problem] = case
        if not fastest:
            skipped = [f"{c.label} skipped: {skip_reason(c.skip)}" for c in cases if c.skip]
            version.wrong = "; ".join(dict.fromkeys(skipped))
        version.standings = fastest

    def _compare(
        self,
        version: SavedVersion,
        problem: Problem,
        standing: TimedVersion,
        opponent: str,
        other: Case,
    ) -> None:
        candidate = self._best[version.number, problem]
        from matbench.worker import comparing

        workers, cases = (self.worker, self.worker), (other, candidate)
        record = comparing.compare(workers, cases, self.plan, problem.seed)
        named = {"baseline_name": opponent, "candidate_name": version.label}
        standing.comparisons.append(msgspec.structs.replace(record, **named))


_WORDS = {"wrong": "is wrong", "failed": "failed", "skipped": "was skipped", "measured": "no time"}


def _volume(problem: Problem) -> int:
    return problem.M * problem.N * problem.K
