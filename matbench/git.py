"""Reads a git repository without running anything that it configures: filters, hooks, helpers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from matbench import programs

_TIMEOUT_S = 5.0
_SAFE = (
    "--no-pager",
    "-c", "core.fsmonitor=false",
    "-c", f"core.hooksPath={os.devnull}",
    # Ignore folders that merely look like a repository, such as one among a project's files.
    "-c", "safe.bareRepository=explicit",
)  # fmt: skip
_KEPT = {"GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"}


def output(
    *arguments: str, folder: Path | None = None, timeout_s: float | None = None
) -> bytes | None:
    """What a git command prints in a folder; None if it fails or takes too long, or without git."""
    git = programs.which("git")
    if git is None:
        return None
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k in _KEPT}
    try:
        return subprocess.run(
            [git, *_SAFE, *arguments],
            cwd=folder,
            env=kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=timeout_s or _TIMEOUT_S,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def commit(revision: str, folder: Path | None = None) -> str | None:
    """The commit that a revision names; None if there is none."""
    name = f"{revision}^{{commit}}"
    found = output("rev-parse", "--verify", "--end-of-options", name, folder=folder)
    return found.decode("ascii", "replace").strip() or None if found is not None else None
