"""Kernel files as of a git revision: `mine.cu@v1.0`, `matmul.py@HEAD~1::multiply`.

A version is written to a folder that has the layout of the repository, with its table and the
headers or modules of the same commit. `git cat-file` reads them, which applies no filters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from matbench import files, programs
from matbench.errors import UsageError
from matbench.kernelfile import includes, python_file, tables
from matbench.model import Kernel

#: A file, a revision, which may contain anything, and a function.
_WRITTEN = re.compile(r"(.*?\.\w+)@(.*?)(?:::(\w+))?", re.DOTALL)
#: Modes of regular files in a tree; links and submodules are not followed.
_REGULAR = ("100644", "100755")


class Version(NamedTuple):
    """A file as of a revision, and the function in it that is meant; `shown` is the file's name in
    messages."""

    shown: str
    file: Path
    revision: str
    function: str = ""

    def __str__(self) -> str:
        return self.of(f"{self.shown}@{self.revision}")

    def of(self, file: str) -> str:
        """The function, if one is meant, in a file."""
        return f"{file}{python_file.SEPARATOR}{self.function}" if self.function else file


class Taken(NamedTuple):
    """The path of a version's file in its folder, what messages call the file, the front matter of
    the command line for it, and the names in the repository of all files that belong to it."""

    path: Path
    shown: str
    given: dict[str, Any]
    names: frozenset[str]


def named(name: str) -> Version | None:
    """The version that a name on the command line means, or None: an existing file comes first."""
    written = _WRITTEN.fullmatch(name)
    if written is None or os.path.lexists(python_file.split(name)[0]):
        return None
    return Version(written[1], Path(written[1]), written[2], written[3] or "")


def version(kernel: Kernel, revision: str) -> Version:
    """The version of a kernel's file; `UsageError` if it has none of its own."""
    if kernel.kind.is_library or not kernel.file:
        raise UsageError(f"{kernel.name}: a library has no kernel file to compare with")
    if named(kernel.path) is not None:
        raise UsageError(f"{kernel.path}: is of a revision already; name the file")
    shown, function = python_file.split(kernel.path)
    return Version(shown, Path(kernel.file), revision, function)


def place(version: Version) -> tuple[Path, str]:
    """The root of the repository that a file is in, or was in, and the file's name there.
    `UsageError` if there is none."""
    file = version.file.resolve()
    folder = next(above for above in file.parents if above.is_dir())
    top = programs.git("rev-parse", "--show-toplevel", folder=folder)
    root = Path(os.fsdecode(top or b"").rstrip("\n")).resolve()
    if top is None or not file.is_relative_to(root):
        raise UsageError(f"{version.shown}: its versions need git, and a working tree around it")
    return root, file.relative_to(root).as_posix()


def commit(asked: str, revision: str, root: Path) -> str:
    """The commit that a revision names; `UsageError` if there is none."""
    if (found := programs.git_commit(revision, root)) is None:
        hint = "in CI, fetch it first (`fetch-depth: 0` in actions/checkout)"
        raise UsageError(f"{asked:.200}: no such revision; {hint}")
    return found


#: From the text of a file, its name, those of all files, and its front matter of the command line:
#: the names of other files that it is read with.
Beside = Callable[[str, str, Collection[str], Mapping[str, Any]], Iterable[str]]


def take(
    version: Version, root: Path, name: str, sha: str, folder: Path, given: Mapping[str, Any],
    beside: Beside = lambda *_: (),
) -> Taken | None:  # fmt: skip
    """Write the files of a version, as of a commit, to the folder; None if it has no such file.
    `UsageError`: a name leads out of the folder, or a file cannot be read or is too large."""
    folder = folder.resolve()
    committed = _CommittedFiles(version, root, name, sha, folder)
    if name not in committed.names:
        return None
    text, path = committed.take(name), folder / name
    for other in beside(text, name, committed.names, given):
        committed.take(other)
    table = path.with_suffix(".toml").relative_to(folder).as_posix()
    own = tables.Beside(str(version), committed.take(table)) if table in committed.names else None
    given = dict(given)
    if "include_dirs" in given:
        file = version.file.resolve()
        now = [includes.folder_of(file, each).resolve() for each in given["include_dirs"]]
        given["include_dirs"] = [
            os.path.relpath(at, (root / name).parent) if at.is_relative_to(root) else str(at)
            for at in now
        ]
    if path.suffix != ".py":
        wanted = tables.Table(str(version), text, own, given).values.get("include_dirs", [])
        for include_dir in wanted if tables.fits(wanted, "include_dirs") else ():
            at = Path(os.path.normpath(path.parent / include_dir))
            committed.folders += (at,)
            if at.is_relative_to(folder):
                at.mkdir(parents=True, exist_ok=True)
    committed.files(text)
    shown = f"{version.shown}@{version.revision}"
    return Taken(Path(version.of(str(path))), shown, given, frozenset(committed.taken))


class _CommittedFiles(includes.IncludeSearch):
    """The files of a commit: each is written to a folder when a search for includes looks there."""

    def __init__(self, version: Version, root: Path, name: str, sha: str, folder: Path) -> None:
        super().__init__(folder / name, ())
        self.root, self.sha, self.top = root, sha, folder
        listed = programs.git("ls-tree", "-r", "-z", "--full-tree", sha, folder=root)
        if listed is None:
            raise UsageError(f"{version}: git cannot list its files; fetch it, or see `git fsck`")
        entries = (os.fsdecode(entry).partition("\t") for entry in listed.split(b"\0")[:-1])
        self.names = {name for about, _, name in entries if about.startswith(_REGULAR)}
        self.taken: set[str] = set()

    def take(self, name: str) -> str:
        """Write a file, and return its text."""
        at, where = f"{self.sha}:{name}", f"in git at {self.sha[:12]}"
        size = programs.git("cat-file", "-s", at, folder=self.root)
        if size is not None and int(size) > includes.MAX_FILE_BYTES:
            raise UsageError(f"{name}: larger than {includes.MAX_FILE_BYTES:,} bytes {where}")
        if len(self.taken) >= includes.MAX_FILES:
            raise UsageError(f"{name}: one of more than {includes.MAX_FILES:,} included files")
        data = programs.git("cat-file", "blob", at, folder=self.root)
        if data is None:
            raise UsageError(f"{name}: cannot be read from {where.removeprefix('in ')}")
        files.write_below(self.top, name, data)
        self.taken.add(name)
        return data.decode("utf-8-sig", errors="replace")

    def add(self, path: Path, name: str) -> None:
        inside = os.path.relpath(path, self.top)
        if inside in self.names and inside not in self.taken:
            self.take(inside)
        super().add(path, name)

    def add_all(self, operand: str) -> None:
        above = PurePosixPath(os.path.relpath(self.folder, self.top))
        for name in sorted(filter(includes.is_source, self.names - self.taken)):
            if PurePosixPath(name).is_relative_to(above):
                self.take(name)
        super().add_all(operand)
