"""Opens a file for reading only if it is a regular one: a pipe or a device could block for ever."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def opened(path: Path) -> BinaryIO:
    """The open file; an `OSError` at once if it is anything else."""
    without_waiting = lambda name, flags: os.open(name, flags | os.O_NONBLOCK)  # noqa: E731
    file = open(path, "rb", opener=without_waiting)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file
