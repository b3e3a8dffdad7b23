"""The chart of an error map: C as cells, the darker the further they are from the reference."""

from __future__ import annotations

from matbench.features.charts import definitions
from matbench.features.charts.definitions import Chart
from matbench.features.charts.style import ORANGES
from matbench.records.outcome import DIGITS, ErrorCells

#: Of right cells, and of errors that are not finite.
RIGHT, MISSING = "#c6daee", "#000000"
#: The least width and height, in pixels.
_LEAST = 30
#: Powers of ten beyond these are drawn as these: the scale must stay within floating point.
_MOST_POWER = 260


def chart(errors: ErrorCells, title: str, side: int, note: str = "") -> Chart:
    """The map with its data; its longer side is at most so many pixels."""
    rows, columns = len(errors.rows), len(errors.rows[0])
    pixels = max(1, side // max(rows, columns))
    most = max((DIGITS.find(cell) for row in errors.rows for cell in row), default=0)
    scale = "|C − expected|" + (", which must be 0" if errors.exact else " / error bound")
    least = 10.0 ** min(max(errors.least_power, -_MOST_POWER), _MOST_POWER)
    M, N = errors.shape
    notes = [note] if note else []
    notes.append(f"{errors.wrong_elements:,} of {M * N:,} elements wrong")
    if errors.step > 1:
        notes.append(f"each cell is the worst of {errors.step} × {errors.step} elements")
    notes.append("light blue: right")
    if any("!" in row for row in errors.rows):
        notes.append("black: NaN or infinite")
    powers = max(most, 0) + 1
    step = errors.step
    spec = definitions.of(
        "error map",
        width=max(_LEAST, pixels * columns),
        height=max(_LEAST, pixels * rows),
        rows=[{"row": i, "cells": cells} for i, cells in enumerate(errors.rows)],
        left=f"(datum.column - 1) * {step}",
        right_edge=f"datum.column * {step}",
        top=f"datum.row * {step}",
        bottom=f"(datum.row + 1) * {step}",
        error=f"{least} * pow(10, indexof('{DIGITS}', datum.cell))",
        across=[0, columns * step],
        down=[0, rows * step],
        domain=[least, least * 10.0**powers],
        marks=[least * 10.0**i for i in range(powers + 1)],
        scale=scale, right=RIGHT, missing=MISSING, oranges=list(ORANGES),
    )  # fmt: skip
    return Chart(title, " · ".join(notes), spec, full=False)
