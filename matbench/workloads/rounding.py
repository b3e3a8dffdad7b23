"""The types that matrices are stored in: their precision and range, and rounding to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from matbench.model import FOREIGN, INTEGERS, Storage

Float64 = npt.NDArray[np.float64]

#: Significant bits and exponents of the smallest and largest normal numbers.
FORMATS: dict[Storage, tuple[int, int, int]] = {
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
    "float32": (24, -126, 127),
    "float64": (53, -1022, 1023),
    "e4m3": (4, -6, 8),
    "e5m2": (3, -14, 15),
}
#: The largest number of a type. The smallest of whole numbers are left out: they have no negative.
LARGEST: dict[Storage, float] = {
    "e4m3": 448.0, "e5m2": 57344.0, "int8": 127.0, "int32": 2.0**31 - 1
}  # fmt: skip


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
    if storage in INTEGERS:
        return np.clip(np.rint(values), -LARGEST[storage], LARGEST[storage])
    unit = spacing(values, storage)
    with np.errstate(invalid="ignore"):
        rounded = np.where(np.isfinite(values), np.rint(values / unit) * unit, values)
    most = 2.0 ** FORMATS[storage][2] * 2
    if storage == "e4m3":  # whose largest exponent also has NaN
        most = LARGEST[storage] + 1
    return np.where(np.abs(rounded) >= most, np.copysign(np.inf, rounded), rounded)


def encoded(values: Float64, storage: Storage) -> npt.NDArray[Any]:
    """Numbers as they are stored; those between two are rounded to nearest."""
    # Conversion alone would round twice, to float32 first.
    return stored(nearest(values, storage) if storage in (*FOREIGN, *INTEGERS) else values, storage)


def stored(values: npt.NDArray[np.floating], storage: Storage) -> npt.NDArray[Any]:
    """Numbers in a type to which float32 or smaller ones are rounded once."""
    with np.errstate(over="ignore"):
        made = values.astype(_dtype(storage))
    return made.view(f"u{made.itemsize}") if storage in FOREIGN else made


def rounded(values: npt.NDArray[np.float32], storage: Storage) -> npt.NDArray[np.float32]:
    """Numbers of an 8-bit type, or whole ones, in place of many others, quickly."""
    if storage in INTEGERS:
        return nearest(values, storage).astype(np.float32)  # type: ignore[arg-type]
    return values.astype(_dtype(storage)).astype(np.float32)


def decoded(stored: npt.NDArray[Any], storage: Storage) -> Float64:
    """Stored numbers as float64."""
    return stored.view(_dtype(storage)).astype(np.float64)


def numbers(storage: Storage) -> Float64:
    """The 128 numbers of an 8-bit type that are not negative, by their bits."""
    return decoded(np.arange(128, dtype=np.uint8), storage)


def _dtype(storage: Storage) -> np.dtype[Any]:
    import ml_dtypes

    foreign = FOREIGN.get(storage)
    return np.dtype(getattr(ml_dtypes, foreign) if foreign else storage)
