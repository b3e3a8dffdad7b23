"""Opens and writes files that may be anyone's: no pipe, and nothing outside of a folder. Makes
temporary folders, with a clear error if none can be created."""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from matbench.errors import UsageError

#: A younger folder may be one that its owner has not locked yet.
_YOUNG_S = 60.0


def opened(path: Path) -> BinaryIO:
    """A regular file, for reading; an `OSError` at once if it is anything else: a pipe or a device
    could block for ever."""
    without_waiting = lambda name, flags: os.open(name, flags | os.O_NONBLOCK)  # noqa: E731
    file = open(path, "rb", opener=without_waiting)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def told(path: Path) -> str:
    """What a file of the system tells, which may not be there; empty if nothing does."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def replace(target: Path, data: bytes) -> None:
    """Replace a file as a whole, with its permissions, by a temporary one that is written beside
    it; an `OSError` leaves it as it was."""
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("x+b") as file:  # never through a link
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def below(folder: Path, name: str) -> Path:
    """A path in the folder; `UsageError` if the name leads out of it, through links as well."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise UsageError(f"{name!r:.100}: leads out of the folder of its kernel's files")
    return path


def write_below(folder: Path, name: str, data: bytes) -> None:
    """Write a file in the folder; `UsageError` as for `below`."""
    path = below(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@contextmanager
def temporary_folder(parent: str | None = None) -> Iterator[Path]:
    """A new temporary folder, removed at the end of the block, or by a later run if this process is
    killed: it is locked until then. It is in `TMPDIR` by default."""
    try:
        parent = parent or tempfile.gettempdir()
        _remove_abandoned(parent)
        made = tempfile.TemporaryDirectory(".tmp", "matbench-", parent, ignore_cleanup_errors=True)
    except OSError as error:
        reason = f"no temporary folder can be created: {error.strerror}"
        raise UsageError(f"{reason}; set TMPDIR to another folder") from None
    with made as name:
        lock = os.open(name, os.O_RDONLY)
        try:
            with suppress(OSError):  # then no other process can lock it either
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield Path(name)
        finally:
            os.close(lock)


@functools.cache
def _remove_abandoned(parent: str) -> None:
    """Remove this user's folders of that name, not links to any, that nobody has locked."""
    for path in Path(parent).glob("matbench-????????.tmp"):
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                state = os.fstat(lock)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if state.st_uid == os.geteuid() and time.time() - state.st_mtime > _YOUNG_S:
                    shutil.rmtree(path)
            finally:
                os.close(lock)
