"""The user's state folder: files of JSON lines that later runs read."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import platformdirs

from matbench.errors import UsageError
from matbench.records.appending import LockedFile

_WAIT_S = 10
HINT = "set MATBENCH_STATE_DIR to another folder"


def state_folder() -> Path:
    """`MATBENCH_STATE_DIR`, or the platform's folder for this user's state."""
    return Path(os.environ.get("MATBENCH_STATE_DIR") or platformdirs.user_state_dir("matbench"))


def append_line(path: Path, line: bytes | None, what: str) -> None:
    """Add one line; with None only find out whether that is possible.

    `UsageError` if `what`, such as `the winner`, cannot be stored.
    """
    try:
        opened = LockedFile(path, hint=HINT, wait_s=_WAIT_S, make_folder=True)
        with closing(opened) as file:
            size = file.size
            file.append((line or b"") + b"\n")
            if line is None:
                file.truncate(size)
    except OSError as error:
        reason = f"{what} cannot be stored: {error.strerror}"
        raise UsageError(f"{path}: {reason}; {HINT}") from None
