"""Finds other programs: compilers, profilers, git."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def absolute_folders(path: str) -> str:
    """The absolute folders of a search path."""
    return os.pathsep.join(
        folder for folder in path.split(os.pathsep) if Path(folder).is_absolute()
    )


def which(name: str, path: str | None = None) -> str | None:
    """A program's path, searched in the absolute folders of `path`, by default of PATH.

    A relative folder, or an empty one, could run a program from the current folder.
    """
    absolute = absolute_folders(os.environ.get("PATH", "") if path is None else path)
    return shutil.which(name, path=absolute) if absolute else None
