"""The pictures of where C is wrong that commands draw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matbench.records.outcome import Outcome


def require_error_map(path: str) -> None:
    """`UsageError` if no error map can be drawn there; ask before anything is measured for it."""
    from matbench.show.pictures import files

    files.require(Path(path))


def draw_error_map(outcome: Outcome, path: str) -> str:
    """Draw where C is wrong, to a new file; returns a note that names it, or says why not.

    The note is empty if the outcome has no error map.
    """
    from matbench.errors import MatbenchError
    from matbench.records.outcome import ErrorCells
    from matbench.show.pictures import error_map, files

    found = outcome.error_map
    if not isinstance(found, ErrorCells):
        return ""
    title = f"{outcome.case.label} on {outcome.case.device}"
    unused = files.unused(Path(path))
    try:
        error_map.draw(found, unused, title, outcome.reason or "")
    except (MatbenchError, MemoryError) as error:
        return f"no error map: {error}"
    return f"error map: {unused}"
