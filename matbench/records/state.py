"""The user's state folder: files of JSON lines that later runs read."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec
import platformdirs

from matbench import regular
from matbench.errors import UsageError
from matbench.records.appending import LockedFile

_WAIT_S = 10
_MOST_BYTES = 1 << 28
T = TypeVar("T", bound=msgspec.Struct)

HINT = "set MATBENCH_STATE_DIR to another folder"


def state_folder() -> Path:
    """`MATBENCH_STATE_DIR`, or the platform's folder for this user's state."""
    return Path(os.environ.get("MATBENCH_STATE_DIR") or platformdirs.user_state_dir("matbench"))


def content(path: Path) -> bytes:
    """A file of the folder; an `OSError` for a pipe or a device, which could block for ever."""
    with regular.opened(path) as file:
        return file.read(_MOST_BYTES)


def decoded(line: bytes, kind: type[T]) -> T | None:
    """The record in a line; None if there is none that this version can read."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def append_line(path: Path, line: bytes | None, what: str) -> None:
    """Add one line; with None only find out whether that is possible.

    `UsageError` if `what`, such as `the winner`, cannot be stored.
    """
    try:
        opened = LockedFile(path, hint=HINT, wait_s=_WAIT_S, own=True)
        with closing(opened) as file:
            size = file.size
            file.append((line or b"") + b"\n")
            if line is None:
                file.truncate(size)
    except OSError as error:
        reason = f"{what} cannot be stored: {error.strerror}"
        raise UsageError(f"{path}: {reason}; {HINT}") from None
