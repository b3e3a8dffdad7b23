"""Finds other programs, such as compilers and profilers, and runs git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_TIMEOUT_S = 5.0
_SAFE = (
    "--no-pager",
    "-c", "core.fsmonitor=false",
    "-c", f"core.hooksPath={os.devnull}",
    # Ignore folders that merely look like a repository, such as one among a project's files.
    "-c", "safe.bareRepository=explicit",
)  # fmt: skip
_KEPT = {"GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"}


def absolute_folders(path: str) -> str:
    """The absolute folders of a search path."""
    return os.pathsep.join(
        folder for folder in path.split(os.pathsep) if Path(folder).is_absolute()
    )


def which(name: str, path: str | None = None) -> str | None:
    """A program's path, searched in the absolute folders of `path`, by default of PATH: a relative
    or empty one could run a program from the current folder."""
    absolute = absolute_folders(os.environ.get("PATH", "") if path is None else path)
    return shutil.which(name, path=absolute) if absolute else None


def output(*command: str) -> str:
    """What a program writes to its standard output, whether or not it fails."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def git(
    *arguments: str, folder: Path | None = None, timeout_s: float | None = None
) -> bytes | None:
    """What a git command prints in a folder, which runs nothing that the repository configures, as
    filters, hooks and helpers; None if it fails or takes too long, or without git."""
    program = which("git")
    if program is None:
        return None
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k in _KEPT}
    try:
        return subprocess.run(
            [program, *_SAFE, *arguments],
            cwd=folder,
            env=kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=timeout_s or _TIMEOUT_S,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def git_commit(revision: str, folder: Path | None = None) -> str | None:
    """The commit that a revision names; None if there is none."""
    name = f"{revision}^{{commit}}"
    found = git("rev-parse", "--verify", "--end-of-options", name, folder=folder)
    return found.decode("ascii", "replace").strip() or None if found is not None else None
