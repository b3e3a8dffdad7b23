"""Watches one kernel file: checks each saved version, and compares it with the last right one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matbench.cli import registry
from matbench.cli.options import require_device
from matbench.cli.selection import parsed
from matbench.errors import MatbenchError, UsageError
from matbench.kernelfile import catalogue, includes
from matbench.kernelfile.includes import code_of
from matbench.model import Case, Kernel, Problem
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Outcome
from matbench.show.reasons import skip_reason
from matbench.worker.comparing import Bench, Contender

#: How long a file must stay unchanged before a change counts as a save, in seconds. Editors empty a
#: file before they write it, or replace it: one that is empty is no save at all.
_STEADY_S = 0.05
#: A change without an event, as on some network drives, is found within this time.
_LOOK_AGAIN_MS = 1000
_WORDS = {"wrong": "is wrong", "failed": "failed", "skipped": "was skipped", "measured": "no time"}


class Saves:
    """A file, its table and the files that it includes, polled for changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: tuple[bytes, ...] | None = None
        self._seen: tuple[bytes, ...] | None = None

    def new(self) -> bytes | None:
        """The content, if there is a change that was not seen and is not being written."""
        held = self._held()
        if held is None or held == self._seen:
            return None
        time.sleep(_STEADY_S)
        if self._held() != held:
            return None
        self._found = held
        return held[0]

    def see(self) -> None:
        """What was found is not new any more."""
        self._seen = self._found

    def wait(self) -> Iterator[object]:
        """Each iteration waits until something may have changed."""
        from watchfiles import watch

        # Watch the folder: editors replace the file by renaming another, and headers are beside
        # it. Headers elsewhere are checked after each timeout.
        folder = self.path.absolute().parent
        while True:
            try:
                yield from watch(
                    folder, watch_filter=None, recursive=False, rust_timeout=_LOOK_AGAIN_MS,
                    yield_on_timeout=True,
                )  # fmt: skip
            except OSError as error:
                raise MatbenchError(f"{folder} cannot be watched: {error}") from None
            except RuntimeError:  # another file's name is not UTF-8
                yield None

    def _held(self) -> tuple[bytes, ...] | None:
        """All that is watched; None between the steps of a rename, say, or while it is empty."""
        try:
            content = self.path.read_bytes()
        except OSError:
            return None
        if not content:
            return None
        held = [content]
        with contextlib.suppress(OSError):
            held.append(self.path.with_suffix(".toml").read_bytes())
        with contextlib.suppress(UsageError):  # reported when the file is checked
            found = includes.find_includes(content.decode(errors="replace"), self.path)
            held += [f"{header.path} {header.sha256}".encode() for header in found]
        return tuple(held)


@dataclass
class SavedVersion:
    """One save at `saved` (HH:MM:SS); `wrong` says why it was not timed, `has_wrong_result` that it
    ran.

    `paste` may have lines of code that would fix it. One that differs only in comments and blanks
    from the last right version is `same_as` that, by its label, and not timed again. Otherwise it
    has contenders and, if there was a right version before, comparisons with that.
    """

    number: int
    saved: str
    wrong: str = ""
    has_wrong_result: bool = False
    paste: tuple[str, ...] = ()
    same_as: str = ""
    contenders: dict[Problem, Contender] = field(default_factory=dict)
    comparisons: dict[Problem, ComparisonRecord] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"version {self.number}"


class WatchedVersions:
    """The versions of a file, oldest first."""

    def __init__(
        self, bench: Bench, path: Path, cases: Callable[[Kernel], list[Case]],
        given: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """`cases` are those of one version, the smallest problem first.

        Values `given` on the command line override keys of the file's table.
        """
        self.bench, self.path, self.cases, self.given = bench, path, cases, given
        self.versions: list[SavedVersion] = []
        #: The last right version, and the label and code of the last that was timed to the end.
        self._right: SavedVersion | None = None
        self._timed = "", ""

    def look(self, content: bytes) -> Iterator[str]:
        """Check and time the current content; yields a description before each step.

        If the caller stops early, the version keeps its results so far.
        """
        version = SavedVersion(len(self.versions) + 1, time.strftime("%H:%M:%S"))
        self.versions.append(version)
        try:
            kernel, _ = parsed(content, self.path, self.given or {})
            [kernel] = catalogue.told_apart([kernel])
            require_device(kernel)
            code = code_of(kernel)
            if code == self._timed[1]:
                version.same_as = self._timed[0]
                return
            cases = self.cases(kernel)
        except UsageError as error:
            suggestion = registry.with_lines_to_paste(error)
            version.wrong, version.paste = str(suggestion), suggestion.paste
            return
        self.bench.pool.build_ahead([(self.bench.device, case) for case in cases])
        looks: dict[Problem, list[tuple[Case, Outcome]]] = {}
        for case in (case for case in cases if case.skip is None):
            yield f"checking {case.label}"
            outcome = self.bench.measure(case)
            if outcome.median_ns is None:
                said = f"{case.label} {_WORDS[outcome.status]}: {outcome.reason}"
                version.wrong = "\n".join([said, *outcome.notes])
                version.has_wrong_result = outcome.status == "wrong"
                return
            looks.setdefault(case.problem, []).append((case, outcome))
        if not looks:
            skipped = [f"{c.label} skipped: {skip_reason(c.skip)}" for c in cases if c.skip]
            version.wrong = "; ".join(dict.fromkeys(skipped))
            return
        version.contenders = {at: Contender.of(looks[at], version.label) for at in looks}
        before, self._right = self._right, version
        for problem, new in version.contenders.items():
            if before is not None and problem in before.contenders:
                yield f"timing {before.label} and {version.label} in turns at {problem.size}"
                version.comparisons[problem] = self.bench.compare(before.contenders[problem], new)
        self._timed = version.label, code
