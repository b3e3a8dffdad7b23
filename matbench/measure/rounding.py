"""The types that matrices are stored in: their precision and range, and rounding to them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matbench.model import Storage

Float64 = npt.NDArray[np.float64]

#: Significant bits and exponents of the smallest and largest normal numbers.
FORMATS: dict[Storage, tuple[int, int, int]] = {
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
    "float32": (24, -126, 127),
    "float64": (53, -1022, 1023),
}


def spacing(values: Float64, storage: Storage) -> Float64:
    """The unit in the last place of numbers of that size."""
    bits, least, _ = FORMATS[storage]
    with np.errstate(divide="ignore"):
        exponents = np.frexp(np.abs(values))[1] - 1
    exponents = np.where(values == 0, least, exponents)
    units: Float64 = np.ldexp(1.0, np.maximum(exponents, least) - bits + 1)
    return units


def nearest(values: Float64, storage: Storage) -> Float64:
    """Numbers rounded to that type: to nearest, ties to even, too large ones to infinity."""
    if storage == "float64":
        return values
    unit = spacing(values, storage)
    with np.errstate(invalid="ignore"):
        rounded = np.where(np.isfinite(values), np.rint(values / unit) * unit, values)
    most = 2.0 ** FORMATS[storage][2] * 2
    result: Float64 = np.where(np.abs(rounded) >= most, np.copysign(np.inf, rounded), rounded)
    return result
