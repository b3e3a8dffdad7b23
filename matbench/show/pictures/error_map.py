"""The picture of an error map: blue where C is right, from orange to dark red where it is wrong."""

from __future__ import annotations

from pathlib import Path

from matbench.analysis.error_map import ErrorMap
from matbench.show.charts import error_map, kept
from matbench.show.charts.filling import Box, filled
from matbench.show.pictures import canvas, files
from matbench.show.pictures.canvas import Panel

SUFFIXES = (".png", ".svg")
_WIDTH = 520


def draw(found: ErrorMap, path: Path) -> None:
    """Draw the map, with PNG or SVG by the path's suffix; `UsageError` if it cannot be written."""
    files.require(path, SUFFIXES)
    data, parameters, height = error_map.of_map(found, _WIDTH)
    box = Box(_WIDTH, height, left=64, top=14, bottom=84)
    chart = filled(
        kept.specs()["error-map" if found.exact else "error-map-shaded"], data, box, **parameters
    )
    lines = [" · ".join(error_map.notes(found)), f"colour: {error_map.scale_title(found)}"]
    kind = files.suffix(path)
    files.write(path, canvas.encoded(kind, [Panel(chart)], found.title, lines))
