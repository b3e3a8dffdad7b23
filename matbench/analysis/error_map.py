"""Where C is wrong and by how much, reduced to as many cells as a record keeps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matbench.records.outcome import DIGITS, MOST_CELLS, ErrorCells

Floats = npt.NDArray[np.floating]
Bools = npt.NDArray[np.bool_]


def make_error_map(
    C: npt.NDArray[np.float32], expected: Floats, wrong: Bools, *, bound: Floats | None = None
) -> ErrorCells:
    """Reduce an M×N result to its map; `wrong` marks its wrong elements.

    `bound` is the error bound of each element; without it, C must equal `expected`.
    """
    step = max(1, -(-max(C.shape) // MOST_CELLS))
    M, N = C.shape
    worst, bad = reduced(C, expected, wrong, bound, step)
    finite = bad & np.isfinite(worst) & (worst > 0)
    powers = np.floor(np.log10(worst, where=finite, out=np.zeros_like(worst))).astype(int)
    most = int(powers[finite].max(initial=-400))
    least = max(int(powers[finite].min(initial=most)), most + 1 - len(DIGITS))

    digits = np.array([*DIGITS])[np.clip(powers - least, 0, len(DIGITS) - 1)]
    cells = np.where(bad, np.where(finite, digits, "!"), ".")
    return ErrorCells(
        shape=(M, N),
        step=step,
        wrong_elements=int(wrong.sum()),
        exact=bound is None,
        least_power=least if finite.any() else 0,
        rows=tuple(map("".join, cells.tolist())),
    )


def reduced(
    C: npt.NDArray[np.float32], expected: Floats, wrong: Bools, bound: Floats | None, step: int
) -> tuple[npt.NDArray[np.float64], Bools]:
    """The largest error of each cell of `step` × `step` elements, and whether any is wrong.

    Errors are shares of the bound, or absolute without one; those that are not finite are infinite.
    """
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
