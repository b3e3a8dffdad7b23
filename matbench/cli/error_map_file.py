"""The pictures of where C is wrong that commands draw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matbench.analysis.error_map import ErrorMap


def require_error_map(path: str) -> None:
    """`UsageError` if no error map can be drawn there; ask before anything is measured for it."""
    from matbench.show.pictures import error_map
    from matbench.show.pictures import files as pictures

    pictures.require(Path(path), error_map.SUFFIXES)


def draw_error_map(found: ErrorMap, path: str) -> str:
    """Draw where C is wrong, to a new file; returns a note that names it, or says why not."""
    from matbench.errors import MatbenchError
    from matbench.show.pictures import error_map
    from matbench.show.pictures import files as pictures

    unused = pictures.unused(Path(path))
    try:
        error_map.draw(found, unused)
    except (MatbenchError, MemoryError) as error:
        return f"no error map: {error}"
    return f"error map: {unused}"
