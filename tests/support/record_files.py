"""Record files for tests, and the files beside them."""

from __future__ import annotations

from pathlib import Path

from matbench.records.outcome import Outcome
from matbench.records.reading import Finding
from matbench.records.writing import Mode, RecordWriter
from support.records import environment


def write(path: Path, *records: Outcome | Finding, mode: Mode = "new") -> None:
    """Write these records to a file, or append them."""
    with RecordWriter(path, environment(), mode) as writer:
        for record in records:
            writer.write(record)


def only(folder: Path) -> list[str]:
    """The files of a folder, hidden ones too."""
    return sorted(entry.name for entry in folder.iterdir())
