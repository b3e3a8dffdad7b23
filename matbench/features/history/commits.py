"""The versions of a kernel file in git: as of each commit that changed any of its files.

Of a merge only the first parent is followed, so that each version has one before it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matbench import programs
from matbench.cli.selection import load, problem_files
from matbench.errors import UsageError
from matbench.kernelfile import revision
from matbench.kernelfile.includes import code_of
from matbench.model import Kernel, LaunchRules, Skip
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Outcome
from matbench.worker.comparing import Contender

#: A search through all commits of a large repository takes long.
_LIST_S = 60.0


class Ratio(NamedTuple):
    """A ratio of two times, in the middle of its interval."""

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, record: ComparisonRecord) -> Ratio | None:
        """The candidate's time over the baseline's; None if it has no interval."""
        if record.interval is None or record.ratio is None:
            return None
        return cls(record.interval[0], record.ratio, record.interval[1])

    def inverse(self) -> Ratio:
        return Ratio(1 / self.high, 1 / self.middle, 1 / self.low)

    def over(self, other: Ratio) -> Ratio:
        """C over B, of C over A and B over A, which were measured independently.

        Intervals of logarithms are combined by the squares of their widths, as in
        `analysis.statistics.compare_samples`.
        """
        middle = self.middle / other.middle
        below = math.hypot(math.log(self.middle / self.low), math.log(other.high / other.middle))
        above = math.hypot(math.log(self.high / self.middle), math.log(other.middle / other.low))
        return Ratio(middle * math.exp(-below), middle, middle * math.exp(above))


@dataclass(eq=False)
class CommittedVersion:
    """A kernel as of a commit, and what was measured of it: `record` compares it with the version
    `before`.

    Those of the same `code` may differ in comments. For a
    slowdown, `second` is the same ratio from other samples, which must confirm it.
    """

    commit: str
    date: str
    subject: str
    kernel: Kernel
    code: str
    contender: Contender | None = None
    before: CommittedVersion | None = None
    record: ComparisonRecord | None = None
    second: Ratio | None = None

    @property
    def label(self) -> str:
        return f"{self.kernel.name}@{self.commit}" if self.date else self.kernel.name

    @property
    def outcome(self) -> Outcome | None:
        """That of its fastest parameters; None if it was not measured."""
        return self.contender.outcome if self.contender is not None else None


def versions(
    kernel: Kernel, given: Mapping[str, Any], since: str | None, folder: Path
) -> list[CommittedVersion]:
    """All versions, the oldest first: as of `since`, those after it, and what is not committed.

    The hash of each kernel is that of its code: in a record file, alike ones are the same.

    One that cannot be read, or computes something else than the last, has a stand-in that fails.
    Their files are written to the `folder`. `given` is front matter of the command line.
    `UsageError` if no two of them differ in their code.
    """
    now = revision.version(kernel, "HEAD")
    root, name = revision.place(now)
    first, span = [], "HEAD"
    if since is not None:
        start = revision.commit(f"--since {since!r:.60}", since, root)
        first, span = _listed(root, (), "--max-count=1", start), f"{start}..HEAD"
    head = _listed(root, (), "--max-count=1", "HEAD")
    names = {name, (root / name).with_suffix(".toml").relative_to(root).as_posix()}
    by_commit: dict[str, CommittedVersion | None] = {}
    while True:  # older versions may include other headers, which other commits changed
        listed = [*first, *_listed(root, names, "--reverse", "--first-parent", span)]
        waiting = [about for about in (*head, *listed) if about[0] not in by_commit]
        if not waiting:
            break
        for sha, commit, date, subject in waiting:
            by_commit[sha], as_of = None, now._replace(revision=commit)
            try:
                taken = revision.take(as_of, root, name, sha, folder / sha, given, problem_files)
                if taken is None:
                    continue
                names |= taken.names
                then, _ = load(taken.path, taken.given, taken.shown)
                _require_alike(then, kernel)
                then = msgspec.structs.replace(then, name=kernel.name)
                code = code_of(then)
            except UsageError as error:
                reason = str(error).removeprefix(f"{as_of}:").strip()
                rules, code = LaunchRules(block=(), grid=()), sha
                never = Skip("refused", reason)
                then = Kernel(kernel.name, rules, path=kernel.path, file=kernel.file, never=never)
            then = msgspec.structs.replace(then, sha256=code)
            by_commit[sha] = CommittedVersion(commit, date, subject, then, code)
    known = [version for sha, *_ in listed if (version := by_commit[sha])]
    if not known:
        raise UsageError(f"{kernel.path}: no commit has it; commit it first")
    if (code := code_of(kernel)) != known[-1].code:
        kernel = msgspec.structs.replace(kernel, sha256=code)
        known.append(CommittedVersion("now", "", "not committed", kernel, code))
    if len({version.code for version in known}) == 1:
        what = f"all {len(known)} versions have the same code" if known[1:] else "only one version"
        shallow = programs.git("rev-parse", "--is-shallow-repository", folder=root) == b"true\n"
        how = "fetch older ones with `git fetch --unshallow`" if shallow else "nothing to compare"
        raise UsageError(f"{kernel.path}: {what}{f' since {since}' if since else ''}; {how}")
    return known


def _listed(root: Path, names: Iterable[str], *how: str) -> list[list[str]]:
    """The hash, short hash, date and subject of commits; if there are names, that changed them."""
    command = ("--literal-pathspecs", "rev-list", "--format=%h%x09%cs%x09%s", *how, "--", *names)
    lines = programs.git(*command, folder=root, timeout_s=_LIST_S)
    if lines is None:
        raise UsageError(f"{root}: git lists no commits; is there one? If so, see `git fsck`")
    pairs = iter(os.fsdecode(lines).split("\n")[:-1])
    return [[sha.removeprefix("commit "), *next(pairs).split("\t", 2)] for sha in pairs]


def _require_alike(then: Kernel, now: Kernel) -> None:
    """`UsageError` if a version cannot be compared with the kernel as it is now."""
    words = [(k.workload, k.contract.storage, k.contract.result, k.scales) for k in (then, now)]
    old, new = (" ".join(filter(None, each)) for each in words)
    if old != new:
        raise UsageError(f"computes {old}; now it is {new}")
