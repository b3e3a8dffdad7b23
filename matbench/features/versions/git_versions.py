"""A kernel file as of a git revision, with its table and the headers that it includes.

Files are read with `git cat-file`, which applies no filters, and written to a folder that has the
layout of the repository, so that includes find their files.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from matbench import git
from matbench.errors import UsageError
from matbench.kernelfile import includes, tables, writing
from matbench.model import BASELINE, Kernel

#: Modes of regular files in a tree; links and submodules are not followed.
_REGULAR = ("100644", "100755")


class Extracted(NamedTuple):
    """A kernel file as of a revision, its folders of headers by their present names, and the names
    in the repository of all files that belong to it."""

    file: Path
    include_dirs: dict[str, str]
    names: frozenset[str]

    def given(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Front matter of the command line, with the folders of headers as of the revision."""
        folders = [self.include_dirs.get(name, name) for name in given.get("include_dirs", ())]
        return {**given, "include_dirs": folders} if folders else dict(given)


def unchanged(old: Kernel, new: Kernel) -> bool:
    """Whether two versions have the same source, headers and front matter, wherever they are."""
    first, second = (
        msgspec.structs.replace(
            kernel,
            name="",
            path="",
            file="",
            sha256="",
            previous=None,
            include_dirs=(),
            includes=tuple(msgspec.structs.replace(header, path="") for header in kernel.includes),
        )
        for kernel in (old, new)
    )
    return first == second


def place(kernel: Kernel, asked: str = "--against", revision: str = "REV") -> tuple[Path, str]:
    """The root of the repository with the kernel's file, and the file's name there.

    `UsageError`, which says what was `asked` for, if there is none.
    """
    if kernel.library == BASELINE or not kernel.file:
        raise UsageError(f"{kernel.name}: a library has no kernel file to compare with")
    if kernel.kind.is_apart:
        written, colons, function = kernel.path.partition("::")
        source, old = Path(written), f"old{Path(written).suffix}"
        folder = [] if source.parent == Path() else ["-C", str(source.parent)]
        git_show = shlex.join(["git", *folder, "show", f"{revision}:./{source.name}"])
        raise UsageError(
            f"{kernel.path}: {asked} takes kernel files; for a function, "
            f"`{git_show} > {old}`, and compare with {old}{colons}{function}"
        )
    file = Path(kernel.file).resolve()
    top = git.output("rev-parse", "--show-toplevel", folder=file.parent)
    root = Path(os.fsdecode(top or b"").rstrip("\n")).resolve()
    if top is None or not file.is_relative_to(root):
        raise UsageError(f"{kernel.path}: {asked} needs git, and a git working tree around it")
    return root, file.relative_to(root).as_posix()


def commit(option: str, revision: str, root: Path) -> str:
    """The commit that a revision names; `UsageError` if there is none."""
    named = git.commit(revision, root)
    if named is None:
        hint = "in CI, fetch it first (`fetch-depth: 0` in actions/checkout)"
        raise UsageError(f"{option} {revision!r:.60}: no such revision; {hint}")
    return named


def extract(kernel: Kernel, revision: str, folder: Path) -> Extracted | None:
    """Write the kernel's files as of the revision into an empty folder.

    None if the revision does not have the kernel file. `UsageError` if there is no repository or
    no such revision, or if a file's name leads out of the folder.
    """
    root, name = place(kernel, revision=revision)
    tree = _Tree(root, commit("--against", revision, root), folder, revision)
    if not tree.has(name):
        return None
    tree.take(name)
    beside = tables.beside_of(root / name).relative_to(root).as_posix()
    if tree.has(beside):
        tree.take(beside)
    inside = {}
    for include_dir in kernel.include_dirs:
        headers = includes.folder_of(Path(kernel.file), include_dir).resolve()
        if headers.is_relative_to(root):
            inside[include_dir] = headers.relative_to(root).as_posix()
            (folder / inside[include_dir]).mkdir(parents=True, exist_ok=True)
    tree.follow(name, list(inside.values()))
    own = {present: str(folder / there) for present, there in inside.items()}
    return Extracted(folder / name, own, frozenset(tree.taken))


class _Tree:
    """The files of one commit, written to a folder when they are needed."""

    def __init__(self, root: Path, commit: str, folder: Path, revision: str) -> None:
        self.root, self.commit, self.folder = root, commit, folder
        listed = git.output("ls-tree", "-r", "-z", "--full-tree", commit, folder=root)
        if listed is None:
            raise UsageError(
                f"{revision!r:.60}: git cannot list its files; fetch it in full, or see `git fsck`"
            )
        entries = (os.fsdecode(entry).partition("\t") for entry in listed.split(b"\0")[:-1])
        self.names = {name for about, _, name in entries if about.startswith(_REGULAR)}
        self.taken: dict[str, str] = {}

    def has(self, name: str) -> bool:
        return name in self.names

    def take(self, name: str) -> str:
        """Write a file, and return its text; `UsageError` if it is larger than any header."""
        size = git.output("cat-file", "-s", f"{self.commit}:{name}", folder=self.root)
        if size is not None and int(size) > includes.MAX_FILE_BYTES:
            most = f"{includes.MAX_FILE_BYTES:,}"
            raise UsageError(f"{name}: larger than {most} bytes in git at {self.commit[:12]}")
        data = git.output("cat-file", "blob", f"{self.commit}:{name}", folder=self.root)
        if data is None:
            raise UsageError(f"{name}: cannot be read from git at {self.commit[:12]}")
        writing.write(self.folder, name, data)
        self.taken[name] = data.decode("utf-8-sig", errors="replace")
        return self.taken[name]

    def follow(self, name: str, include_dirs: list[str]) -> None:
        """Take what a file includes, and so on; if a macro names a file, all sources beside it."""
        waiting = [name]
        while waiting:
            above = posixpath.dirname(current := waiting.pop())
            for operand in includes.operands(self.taken[current]):
                named = includes.name_in(operand)
                if named is None:
                    headers = {
                        other
                        for other in self.names
                        if PurePosixPath(other).is_relative_to(posixpath.dirname(name))
                        and includes.is_source(other)
                    }
                else:
                    places = (above, posixpath.dirname(name), *include_dirs)
                    headers = {posixpath.normpath(posixpath.join(place, named)) for place in places}
                for header in sorted((headers & self.names) - self.taken.keys()):
                    if len(self.taken) >= includes.MAX_FILES:
                        raise UsageError(f"{name}: includes more than {includes.MAX_FILES:,} files")
                    self.take(header)
                    waiting.append(header)
