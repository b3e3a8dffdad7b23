"""Git repositories written by tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SETTINGS = (
    "user.name=a", "user.email=a@b", "commit.gpgsign=false", "protocol.file.allow=always",
)  # fmt: skip


def git(folder: Path, *words: str) -> str:
    """What a git command prints in a folder."""
    settings = (word for setting in _SETTINGS for word in ("-c", setting))
    done = subprocess.run(
        ["git", *settings, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
