"""The picture of an error map: where C is right, and how wrong it is elsewhere."""

from __future__ import annotations

from pathlib import Path

from matbench.records.outcome import ErrorCells
from matbench.show.charts import error_map
from matbench.show.pictures import drawing

_SIDE = 520


def draw(errors: ErrorCells, path: Path, title: str, reason: str) -> None:
    """Draw the map; `UsageError` if it cannot be written."""
    lines = [reason, " · ".join(error_map.notes(errors))]
    drawing.draw(path, error_map.spec(errors, _SIDE), title, lines)
