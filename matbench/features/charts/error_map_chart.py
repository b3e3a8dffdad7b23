"""The chart of an error map: C as cells, the darker the further they are from the reference."""

from __future__ import annotations

from matbench.features.charts.definitions import Chart, Spec
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

    def edge(name: str, cells: int, title: str) -> Spec:
        """From one edge of a cell to the other, in elements of C."""
        domain = [0, cells * errors.step]
        scale = {"domain": domain, "nice": False, "reverse": name == "top"}
        axis = {"grid": False, "format": ",d", "labelOverlap": True, "tickMinStep": 1}
        place = {"field": name, "type": "quantitative", "title": title}
        return {**place, "scale": scale, "axis": axis}

    M, N = errors.shape
    notes = [note] if note else []
    notes.append(f"{errors.wrong_elements:,} of {M * N:,} elements wrong")
    if errors.step > 1:
        notes.append(f"each cell is the worst of {errors.step} × {errors.step} elements")
    notes.append("light blue: right")
    if any("!" in row for row in errors.rows):
        notes.append("black: NaN or infinite")
    powers = max(most, 0) + 1
    color = {
        "condition": {"test": "datum.cell == '!'", "value": MISSING},
        "field": "error",
        "type": "quantitative",
        "scale": {
            "type": "log", "domain": [least, least * 10.0**powers], "range": list(ORANGES),
        },
        "legend": {
            "orient": "bottom", "title": scale, "format": "~e",
            "values": [least * 10.0**i for i in range(powers + 1)],
        },
    }  # fmt: skip
    spec = {
        "width": max(_LEAST, pixels * columns),
        "height": max(_LEAST, pixels * rows),
        "view": {"fill": RIGHT},
        "data": {"values": [{"row": i, "cells": cells} for i, cells in enumerate(errors.rows)]},
        "transform": [
            {"calculate": "split(datum.cells, '')", "as": "cell"},
            {"flatten": ["cell"]},
            {"window": [{"op": "row_number", "as": "column"}], "groupby": ["row"]},
            {"filter": "datum.cell != '.'"},
            {"calculate": f"(datum.column - 1) * {errors.step}", "as": "left"},
            {"calculate": f"datum.column * {errors.step}", "as": "right"},
            {"calculate": f"datum.row * {errors.step}", "as": "top"},
            {"calculate": f"(datum.row + 1) * {errors.step}", "as": "bottom"},
            {"calculate": f"{least} * pow(10, indexof('{DIGITS}', datum.cell))", "as": "error"},
        ],
        "mark": "rect",
        "encoding": {
            "x": edge("left", columns, "column of C"),
            "x2": {"field": "right"},
            "y": edge("top", rows, "row of C"),
            "y2": {"field": "bottom"},
            "color": color,
        },
    }
    return Chart(title, " · ".join(notes), spec, full=False)
