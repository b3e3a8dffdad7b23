"""Writes files whose names come from elsewhere, and nothing outside of their folder."""

from __future__ import annotations

from pathlib import Path

from matbench.errors import UsageError


def below(folder: Path, name: str) -> Path:
    """A path in the folder; `UsageError` if the name leads out of it, through links as well."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise UsageError(f"{name!r:.100}: leads out of the folder of its kernel's files")
    return path


def write(folder: Path, name: str, data: bytes) -> None:
    """Write a file below the folder."""
    path = below(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
