"""Temporary folders, with a clear error if none can be created."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matbench.errors import UsageError


@contextmanager
def folder() -> Iterator[Path]:
    """A new temporary folder, removed at the end of the block."""
    try:
        made = tempfile.TemporaryDirectory(prefix="matbench-", ignore_cleanup_errors=True)
    except OSError as error:
        reason = f"no temporary folder can be created: {error.strerror}"
        raise UsageError(f"{reason}; set TMPDIR to another folder") from None
    with made as name:
        yield Path(name)
