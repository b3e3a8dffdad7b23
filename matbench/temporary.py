"""Temporary folders, with a clear error if none can be created."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from matbench.errors import UsageError

#: A younger folder may be one that its owner has not locked yet.
_YOUNG_S = 60.0


@contextmanager
def folder(parent: str | None = None) -> Iterator[Path]:
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
