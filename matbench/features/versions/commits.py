"""The versions of a kernel file in git: as of each commit that changed any of its files.

Of a merge only the first parent is followed, so that each version has one before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matbench import git
from matbench.errors import UsageError
from matbench.features.versions import git_versions
from matbench.kernelfile import catalogue, tables
from matbench.kernelfile.code import code_of
from matbench.model import Kernel, LaunchRules

#: A search through all commits of a large repository takes long.
_LIST_S = 60.0


@dataclass(eq=False)
class CommittedVersion:
    """A kernel as of a commit; those of the same `code` may differ in comments."""

    commit: str
    date: str
    subject: str
    kernel: Kernel
    code: str

    @property
    def label(self) -> str:
        return f"{self.kernel.name} at {self.commit}" if self.date else self.kernel.name


def versions(
    kernel: Kernel, given: Mapping[str, Any], since: str | None, folder: Path
) -> list[CommittedVersion]:
    """All versions, the oldest first: as of `since`, those after it, and what is not committed.

    One that cannot be read, or computes something else than the last, has a stand-in that fails.
    Their files are written to the `folder`. `given` is front matter of the command line.
    `UsageError` if no two of them differ in their code.
    """
    root, name = git_versions.place(kernel, "history")
    first, span = [], "HEAD"
    if since is not None:
        start = git_versions.commit("--since", since, root)
        first, span = _listed(root, (), "--max-count=1", start), f"{start}..HEAD"
    head = _listed(root, (), "--max-count=1", "HEAD")
    names = {name, tables.beside_of(root / name).relative_to(root).as_posix()}
    by_commit: dict[str, CommittedVersion | None] = {}
    while True:  # older versions may include other headers, which other commits changed
        listed = [*first, *_listed(root, names, "--reverse", "--first-parent", span)]
        waiting = [about for about in (*head, *listed) if about[0] not in by_commit]
        if not waiting:
            break
        for sha, commit, date, subject in waiting:
            by_commit[sha] = None
            if (loaded := _loaded(kernel, sha, folder / sha, given)) is not None:
                names |= loaded[2]
                by_commit[sha] = CommittedVersion(commit, date, subject, *loaded[:2])
    known = [version for sha, *_ in listed if (version := by_commit[sha])]
    if not known:
        raise UsageError(f"{kernel.path}: no commit has it; commit it first")
    if not git_versions.unchanged(known[-1].kernel, kernel):
        known.append(CommittedVersion("now", "", "not committed", kernel, code_of(kernel)))
    if len({version.code for version in known}) == 1:
        what = f"all {len(known)} versions have the same code" if known[1:] else "only one version"
        shallow = git.output("rev-parse", "--is-shallow-repository", folder=root) == b"true\n"
        how = "fetch older ones with `git fetch --unshallow`" if shallow else "nothing to compare"
        raise UsageError(f"{kernel.path}: {what}{f' since {since}' if since else ''}; {how}")
    return known


def _listed(root: Path, names: Iterable[str], *how: str) -> list[list[str]]:
    """The hash, short hash, date and subject of commits; if there are names, that changed them."""
    command = ("--literal-pathspecs", "rev-list", "--format=%h%x09%cs%x09%s", *how, "--", *names)
    lines = git.output(*command, folder=root, timeout_s=_LIST_S)
    if lines is None:
        raise UsageError(f"{root}: git lists no commits; is there one? If so, see `git fsck`")
    pairs = iter(os.fsdecode(lines).split("\n")[:-1])
    return [[sha.removeprefix("commit "), *next(pairs).split("\t", 2)] for sha in pairs]


def _loaded(
    now: Kernel, sha: str, folder: Path, given: Mapping[str, Any]
) -> tuple[Kernel, str, frozenset[str]] | None:
    """The kernel as of then, or what stands for it, its code, and the names of its files."""
    names: frozenset[str] = frozenset()
    try:
        taken = git_versions.extract(now, sha, folder)
        if taken is None:
            return None
        names = taken.names
        kernel = catalogue.load(taken.file, now.path, taken.given(given))
        then, today = (
            (k.workload, k.contract.storage, k.contract.result, *filter(None, [k.scales]))
            for k in (kernel, now)
        )
        if then != today:
            raise UsageError(f"computes {' '.join(then)}; now it is {' '.join(today)}")
        return kernel, code_of(kernel), names
    except UsageError as error:
        reason = str(error).removeprefix(f"{now.path}:").strip()
        rules = LaunchRules(block=(), grid=())
        refused = Kernel(now.name, rules, path=now.path, file=now.file, refused=reason)
        return refused, str(folder), names
