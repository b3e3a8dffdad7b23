"""Temporary folders that are removed even if their process is killed: then by a later run.

A folder is locked while it is used, and the system ends a lock with its process. That is safer than
a process number, which may be that of another process by now, or of one in another container.
"""

from __future__ import annotations

import fcntl
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from matbench.errors import UsageError

_NAME = re.compile(r"matbench-[a-z0-9_]{8}\.tmp")
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@contextmanager
def folder() -> Iterator[Path]:
    """A new temporary folder, removed at the end of the block."""
    try:
        parent = tempfile.gettempdir()
        _clean(parent)
        path, descriptor = _made(parent)
    except OSError as error:
        reason = f"no temporary folder can be created: {error.strerror}"
        raise UsageError(f"{reason}; set TMPDIR to another folder") from None
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)  # follows no links
        os.close(descriptor)


def _made(parent: str) -> tuple[Path, int]:
    """A new folder, and the descriptor that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix="matbench-", suffix=".tmp", dir=parent))
        with suppress(FileNotFoundError):  # another run removed it before it was locked
            descriptor = os.open(path, _FLAGS)
            with suppress(OSError):  # without locks, a folder may be left behind
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if path.exists():
                return path, descriptor
            os.close(descriptor)


@functools.cache  # once per process
def _clean(parent: str) -> None:
    """Remove the user's folders that are not locked."""
    names: list[str] = []
    with suppress(OSError):  # perhaps nobody may list it
        names = os.listdir(parent)  # noqa: PTH208 - much faster than paths
    for name in filter(_NAME.fullmatch, names):
        with suppress(OSError):
            _remove_unused(Path(parent, name))


def _remove_unused(path: Path) -> None:
    descriptor = os.open(path, _FLAGS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)
