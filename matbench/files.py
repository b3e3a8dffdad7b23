"""Opens and writes files that may be anyone's: no pipe, and nothing outside of a folder."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import BinaryIO

from matbench.errors import UsageError


def opened(path: Path) -> BinaryIO:
    """A regular file, for reading; an `OSError` at once if it is anything else.

    A pipe or a device could block for ever.
    """
    without_waiting = lambda name, flags: os.open(name, flags | os.O_NONBLOCK)  # noqa: E731
    file = open(path, "rb", opener=without_waiting)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def replace(target: Path, data: bytes) -> None:
    """Replace a file as a whole, with its permissions; an `OSError` leaves it as it was.

    `data` are written to a temporary file beside it, which then replaces it.
    """
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
