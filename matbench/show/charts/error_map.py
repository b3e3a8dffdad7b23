"""An error map as the data and parameters of its chart: an image, rings, and a scale."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matbench.analysis.error_map import ErrorMap
from matbench.records.outcome import ErrorCells
from matbench.show.charts.style import BLUES, ORANGES
from matbench.show.charts.timeline import Filling

#: Of right cells that are not shaded, and of errors that are not finite.
RIGHT, MISSING = "#c6daee", "#000000"
#: Up to this many wrong cells get a ring, because single cells are easily overlooked.
_MOST_RINGS = 6
#: The smallest error with its own colour, in powers of ten below the smallest wrong one.
_FLOOR = -4.0
#: Height over width, at most and at least.
_TALLEST, _FLATTEST = 2.0, 0.15

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
#: Powers of ten and their colours, in order; between them colours are mixed.
Stops = Sequence[tuple[float, str]]


def of_record(found: ErrorCells, width: float) -> Filling:
    """A record's map, so wide: what is right has one colour."""
    digits = np.array([[_digit(cell) for cell in row] for row in found.rows])
    wrong, missing = digits >= 0, np.isinf(digits)
    powers = np.where(missing, 0.0, digits) + found.least_power
    least, most = found.least_power, max(powers.max(where=wrong, initial=found.least_power), 0)
    stops = [(float(least), ORANGES[0]), (float(max(most, least) + 1), ORANGES[1])]
    pixels = _mixed(powers + 0.5, stops)
    pixels[~wrong] = _rgb(RIGHT)
    pixels[missing] = _rgb(MISSING)
    return _filling(pixels, wrong, stops, found.step, width)


def _digit(cell: str) -> float:
    return -1.0 if cell == "." else math.inf if cell == "!" else float(int(cell, 36))


def of_map(found: ErrorMap, width: float) -> Filling:
    """A whole map, so wide: right cells are shaded, too, unless they must be exact."""
    missing = found.wrong & ~np.isfinite(found.worst)
    powers, edge = _powers(found, found.wrong & ~missing)
    top = float(np.max(powers[~missing], initial=edge + 1))
    stops = [(edge, ORANGES[0]), (top, ORANGES[1])]
    if not found.exact:
        stops = [(edge + _FLOOR, BLUES[0]), (edge, BLUES[1]), *stops]
    pixels = _mixed(powers, stops)
    if found.exact:
        pixels[~found.wrong] = _rgb(RIGHT)
    pixels[missing] = _rgb(MISSING)
    return _filling(pixels, found.wrong, stops, found.step, width)


def _powers(found: ErrorMap, wrong: Bools) -> tuple[Floats, float]:
    """Errors as powers of ten, and the power that separates right cells from wrong ones."""
    with np.errstate(divide="ignore"):
        powers = np.log10(found.worst)
    edge = float(np.floor(np.min(powers[wrong], initial=0.0))) - 1 if found.exact else 0.0
    above = np.maximum(powers, edge + 1e-6)
    return np.where(wrong, above, np.clip(powers, edge + _FLOOR, edge - 1e-6)), edge


def notes(found: ErrorMap | ErrorCells) -> list[str]:
    """How many elements are wrong, and what a cell is."""
    M, N = found.shape
    lines = [f"{found.wrong_elements:,} of {M * N:,} elements wrong"]
    if found.step > 1:
        lines.append(f"each cell is the worst of {found.step} × {found.step} elements")
    if isinstance(found, ErrorCells):
        missing = any("!" in row for row in found.rows)
    else:
        missing = bool((found.wrong & ~np.isfinite(found.worst)).any())
    return [*lines, "black: NaN or infinite"] if missing else lines


def scale_title(found: ErrorMap | ErrorCells) -> str:
    if found.exact:
        return "|C − expected|, which must be 0"
    return "|C − expected| / error bound: above 1 is wrong"


def _filling(
    pixels: npt.NDArray[np.uint8], wrong: Bools, stops: Stops, step: int, width: float
) -> Filling:
    rows, columns = wrong.shape
    M = rows * step if rows > 1 else 1  # a vector has one row
    cells = np.argwhere(wrong)
    rings = cells if len(cells) <= _MOST_RINGS else cells[:0]
    every = max(1, round((stops[-1][0] - stops[0][0]) / 6))
    powers = range(math.ceil(stops[0][0]), math.floor(stops[-1][0]) + 1, every)
    ringed = [{"row": (i + 0.5) * M / rows, "column": (j + 0.5) * step} for i, j in rings.tolist()]
    encoded = base64.b64encode(_png(pixels)).decode("ascii")
    return Filling(
        {
            "map": [{"url": f"data:image/png;base64,{encoded}"}],
            "rings": ringed,
            "scale": [{"power": stops[0][0]}],
        },
        {
            "across": [0, columns * step],
            "up": [0, M],
            "powers": [power for power, _ in stops],
            "ticks_scale": list(powers),
        },
        width * min(max(rows / columns, _FLATTEST), _TALLEST),
    )


def _mixed(powers: Floats, stops: Stops) -> npt.NDArray[np.uint8]:
    places = [power for power, _ in stops]
    parts = zip(*(_rgb(colour) for _, colour in stops), strict=True)
    return np.stack([np.interp(powers, places, part) for part in parts], axis=-1).astype(np.uint8)


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """An RGB image as a file."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    lines = b"".join(b"\0" + row.tobytes() for row in pixels)  # no filter
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines, 9)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
