"""Record files for tests, and the files beside them."""

from __future__ import annotations

from pathlib import Path

from matbench.records.environment import Environment
from matbench.records.outcome import Outcome
from matbench.records.reading import Contents, Finding
from matbench.records.writing import Mode, RecordWriter
from support.records import environment


def write(
    path: Path, *records: Outcome | Finding, mode: Mode = "new", about: Environment | None = None
) -> None:
    """Write these records to a file, or append them."""
    with RecordWriter(path, about or environment(), mode) as writer:
        for record in records:
            writer.write(record)


def read(path: Path, notes: list[str] | None = None) -> tuple[list[Environment], list[Outcome]]:
    """The environments and outcomes of a file; `notes` get those on its lines."""
    contents = Contents(path)
    if notes is not None:
        notes += contents.notes
    return contents.environments, contents.outcomes


def only(folder: Path) -> list[str]:
    """The files of a folder, hidden ones too."""
    return sorted(entry.name for entry in folder.iterdir())
