"""Where C is wrong and by how much, reduced to the resolution of a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from matbench.records import outcome
from matbench.records.outcome import ErrorCells

#: The most cells per side of an error map.
MOST_CELLS = 400

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

Floats = npt.NDArray[np.floating]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ErrorMap:
    """The largest error in each cell of `step` × `step` elements of C, and whether any is wrong.

    `worst` and `wrong` have at most `MOST_CELLS` rows and columns. Errors are shares of the error
    bound, or absolute if C must be exact; those that are not finite are infinite. `shape` is C's
    (M, N), and `wrong_elements` counts its wrong elements.
    """

    worst: npt.NDArray[np.float64]
    wrong: Bools
    step: int
    shape: tuple[int, int]
    wrong_elements: int
    exact: bool
    title: str


def of(
    C: npt.NDArray[np.float32],
    expected: Floats,
    wrong: Bools,
    *,
    bound: Floats | None = None,
    title: str = "",
) -> ErrorMap:
    """Reduce an M×N result to its map; `wrong` marks its wrong elements.

    `bound` is the error bound of each element; without it, C must equal `expected`.
    """
    step = max(1, -(-max(C.shape) // MOST_CELLS))
    M, N = C.shape
    worst, cells = reduced(C, expected, wrong, bound, step)
    return ErrorMap(worst, cells, step, (M, N), int(wrong.sum()), bound is None, title)


def reduced(
    C: npt.NDArray[np.float32], expected: Floats, wrong: Bools, bound: Floats | None, step: int
) -> tuple[npt.NDArray[np.float64], Bools]:
    """The largest error of each cell of `step` × `step` elements, and whether any is wrong."""
    rows, columns = (-(-side // step) for side in C.shape)
    worst, bad = np.zeros((rows, columns)), np.zeros((rows, columns), bool)
    starts = np.arange(0, C.shape[1], step)
    for row in range(rows):  # band by band: C may fill most of the memory
        band = slice(row * step, (row + 1) * step)
        with np.errstate(all="ignore"):
            error = np.abs(C[band].astype(np.float64) - expected[band])
            if bound is not None:
                error = np.where(error == 0, 0.0, error / bound[band])
        error[~np.isfinite(error)] = np.inf
        worst[row] = np.maximum.reduceat(error.max(axis=0), starts)
        bad[row] = np.logical_or.reduceat(wrong[band].any(axis=0), starts)
    return worst, bad


def cells(found: ErrorMap) -> ErrorCells:
    """The map as a record keeps it: fewer cells, and of errors the power of ten."""
    more = -(-max(found.wrong.shape) // outcome.MOST_CELLS)
    rows, columns = (range(0, side, more) for side in found.wrong.shape)
    worst = np.maximum.reduceat(np.maximum.reduceat(found.worst, rows), columns, axis=1)
    wrong = np.logical_or.reduceat(np.logical_or.reduceat(found.wrong, rows), columns, axis=1)
    finite = wrong & np.isfinite(worst) & (worst > 0)
    powers = np.floor(np.log10(worst, where=finite, out=np.zeros_like(worst))).astype(int)
    most = int(powers[finite].max(initial=-400))
    least = max(int(powers[finite].min(initial=most)), most + 1 - len(_DIGITS))

    def character(power: int, is_wrong: bool, is_finite: bool) -> str:
        if not is_wrong:
            return "."
        return _DIGITS[max(0, power - least)] if is_finite else "!"

    return ErrorCells(
        shape=found.shape,
        step=found.step * more,
        wrong_elements=found.wrong_elements,
        exact=found.exact,
        least_power=least if finite.any() else 0,
        rows=tuple(
            "".join(map(character, *row))
            for row in zip(powers.tolist(), wrong.tolist(), finite.tolist(), strict=True)
        ),
    )
