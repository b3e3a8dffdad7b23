"""The git revision of a folder that need not be trusted: nothing it configures is run.

Git's own check for changes runs the clean filters that a repository names. So git only lists here
what was committed and staged, and the files are compared with that in Python.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import time
from pathlib import Path, PurePosixPath

_TIMEOUT_S = 5.0
#: Larger projects are not searched for changes.
_MAX_BYTES = 64 * 1024**2
_SAFE = (
    "--no-pager",
    "-c", "core.fsmonitor=false",
    "-c", f"core.hooksPath={os.devnull}",
    # A folder that merely looks like a repository, as one inside a project's files can.
    "-c", "safe.bareRepository=explicit",
)  # fmt: skip
#: Attributes by which git stores other bytes than the file's.
_CONVERSIONS = ("filter", "ident", "working-tree-encoding")


def project_revision() -> str | None:
    """The commit of the project in the current folder, `-dirty` where its files were modified.

    None without git or a commit. Without the suffix where it cannot be known within a few seconds.
    """
    try:
        git = _Git(time.monotonic() + _TIMEOUT_S)
        root, _, commit = (
            git("rev-parse", "--show-toplevel", "HEAD").rstrip(b"\n").rpartition(b"\n")
        )
    except (OSError, subprocess.SubprocessError):
        return None
    revision = commit.decode("ascii", "replace")
    with_changes = f"{revision}-dirty"
    try:
        return with_changes if _is_modified(git, Path(os.fsdecode(root))) else revision
    except (OSError, ValueError, subprocess.SubprocessError):
        return revision


class _Git:
    """Runs git so that it neither writes, nor connects, nor runs another program."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        # A relative entry of PATH would take a `git` from the folder itself.
        folders = os.environ.get("PATH", "").split(os.pathsep)
        path = os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())
        found = shutil.which("git", path=path) if path else None
        if found is None:
            raise FileNotFoundError("git")
        self.command = (found, *_SAFE)
        kept = {"GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"}
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_") or name in kept
        } | {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}

    def __call__(self, *words: str, root: Path | None = None, given: bytes = b"") -> bytes:
        return subprocess.run(
            [*self.command, *words],
            cwd=root,
            env=self.environment,
            input=given,
            capture_output=True,
            check=True,
            timeout=max(0.0, self.deadline - time.monotonic()),
        ).stdout


def _is_modified(git: _Git, root: Path) -> bool:
    """Whether staged or tracked files differ from the commit; a `ValueError` if that is too much.

    The right to execute a file does not count, since not every file system keeps it.
    """
    committed = _listed(git("ls-tree", "-r", "-z", "--full-tree", "HEAD", root=root))
    staged = _listed(git("ls-files", "-s", "-z", root=root))
    if committed != staged:
        return True
    left_out = _left_out(git("ls-files", "-t", "-z", root=root))
    left_bytes = _MAX_BYTES
    differing: list[bytes] = []
    for name, id_ in committed.items():
        if name in left_out:
            continue
        contents = _contents(root, name, left_bytes)
        if contents is None:
            return True
        left_bytes -= len(contents)
        if time.monotonic() > git.deadline:
            raise ValueError("too much to compare")
        # Line ends may be another system's.
        if not (_is(contents, id_) or _is(contents.replace(b"\r\n", b"\n"), id_)):
            differing.append(name)
    return bool(differing) and not set(differing) <= _converted(git, root, differing)


def _listed(listing: bytes) -> dict[bytes, str]:
    """The hash of each file that `ls-tree` (mode, type, id) or `ls-files` (mode, id, stage) lists.

    Other repositories within this one are left out: their files are not this one's.
    """
    found = {}
    for line in listing.split(b"\0")[:-1]:
        about, _, name = line.partition(b"\t")
        mode, second, third = about.decode("ascii").split(" ")
        if mode == "160000":
            continue
        if second == "blob":
            found[name] = third
        else:
            found[name] = second if third == "0" else "in conflict"
    return found


def _left_out(listing: bytes) -> set[bytes]:
    """The files that a sparse checkout leaves out."""
    return {line[2:] for line in listing.split(b"\0") if line.startswith(b"S ")}


def _contents(root: Path, name: bytes, most_bytes: int) -> bytes | None:
    """What git would store of a file if it had no filter; None when it is not there."""
    parts = PurePosixPath(os.fsdecode(name))
    if parts.is_absolute() or ".." in parts.parts:
        raise ValueError("a path that leaves the project")
    path = root / parts
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return os.fsencode(path.readlink())
        if not stat.S_ISREG(found.st_mode):  # to open a pipe would wait for its other end
            return None
        if found.st_size > most_bytes:
            raise ValueError("too much to compare")
        with path.open("rb") as file:
            return file.read(found.st_size)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is(contents: bytes, id_: str) -> bool:
    """Whether these are the bytes that git stored under this hash."""
    kind = "sha1" if len(id_) == 40 else "sha256"
    stored = b"blob %d\0%b" % (len(contents), contents)
    return hashlib.new(kind, stored, usedforsecurity=False).hexdigest() == id_


def _converted(git: _Git, root: Path, names: list[bytes]) -> set[bytes]:
    """Those whose stored bytes a filter or an encoding makes, which would have to be run."""
    told = git("check-attr", "-z", "--stdin", *_CONVERSIONS, root=root, given=b"\0".join(names))
    fields = told.split(b"\0")
    return {
        name
        for name, value in zip(fields[::3], fields[2::3], strict=False)
        if value not in (b"unspecified", b"unset")
    }
