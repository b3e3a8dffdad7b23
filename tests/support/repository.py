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


def commit(folder: Path, **files: str | bytes) -> str:
    """The commit of these files; `__` in a name stands for `/`, `_` for `.`."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    git(folder, "add", "-A", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", "a")
    return git(folder, "rev-parse", "HEAD")


def tree(folder: Path, *entries: tuple[str, str, str]) -> str:
    """A tree of entries (mode, name, hash), whatever their names are."""
    data = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(sha) for mode, name, sha in entries)
    command = ["git", "hash-object", "-w", "--literally", "-t", "tree", "--stdin"]
    done = subprocess.run(command, cwd=folder, input=data, check=True, capture_output=True)
    return done.stdout.decode().strip()
