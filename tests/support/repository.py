"""Git repositories written by tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from support.paths import ROOT

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


def cloned(folder: Path) -> Path:
    """The files of this project, also those not committed yet, in a repository of their own."""
    names = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for name in filter(lambda name: (ROOT / name).is_file(), names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "all")
    return folder


def tree(folder: Path, *entries: tuple[str, str, str]) -> str:
    """A tree of entries (mode, name, hash), whatever their names are."""
    data = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(sha) for mode, name, sha in entries)
    command = ["git", "hash-object", "-w", "--literally", "-t", "tree", "--stdin"]
    done = subprocess.run(command, cwd=folder, input=data, check=True, capture_output=True)
    return done.stdout.decode().strip()
