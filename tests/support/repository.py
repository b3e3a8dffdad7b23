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


def tree(folder: Path, *entries: tuple[str, str, str]) -> str:
    """A tree of entries (mode, name, hash), whatever their names are."""
    data = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(sha) for mode, name, sha in entries)
    command = ["git", "hash-object", "-w", "--literally", "-t", "tree", "--stdin"]
    done = subprocess.run(command, cwd=folder, input=data, check=True, capture_output=True)
    return done.stdout.decode().strip()
