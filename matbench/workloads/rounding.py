"""The types that matrices are stored in: their precision and range, and rounding to them."""

from __future__ import annotations

from functools import cache
from typing import Any

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
    "e4m3": (4, -6, 8),
    "e5m2": (3, -14, 15),
}
#: The largest number that an 8-bit type holds. int8 has no -128 here, because that has no negative.
LARGEST: dict[Storage, float] = {"e4m3": 448.0, "e5m2": 57344.0, "int8": 127.0}
#: NumPy's types for elements; of those that it does not have, the bits.
DTYPES: dict[Storage, str] = {
    "float32": "f4", "float64": "f8", "float16": "f2", "bfloat16": "u2", "int32": "i4",
    "e4m3": "u1", "e5m2": "u1", "int8": "i1",
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
    if storage == "int8":
        return np.clip(np.rint(values), -LARGEST[storage], LARGEST[storage])
    unit = spacing(values, storage)
    with np.errstate(invalid="ignore"):
        rounded = np.where(np.isfinite(values), np.rint(values / unit) * unit, values)
    most = 2.0 ** FORMATS[storage][2] * 2
    if storage == "e4m3":  # whose largest exponent also has NaN
        most = LARGEST[storage] + 1
    result: Float64 = np.where(np.abs(rounded) >= most, np.copysign(np.inf, rounded), rounded)
    return result


def encoded(values: Float64, storage: Storage) -> npt.NDArray[Any]:
    """Numbers as they are stored; those between two are rounded to nearest."""
    if storage == "bfloat16":
        return upper_halves(nearest(values, "bfloat16").astype(np.float32))
    if storage in ("e4m3", "e5m2"):
        rounded = nearest(values, storage)
        codes = np.searchsorted(numbers(storage)[:127], np.abs(rounded))  # 127 is NaN
        return (codes | (np.signbit(rounded).astype(np.int64) << 7)).astype(np.uint8)
    if storage == "int8":
        return nearest(values, storage).astype(np.int8)
    with np.errstate(over="ignore"):
        return values.astype(DTYPES[storage])


def stored(values: npt.NDArray[np.float32], storage: Storage) -> npt.NDArray[Any]:
    """Many numbers in an 8-bit type, quickly: those that it does not hold are rounded twice."""
    if storage == "int8":
        return encoded(values, storage)  # type: ignore[arg-type]
    return _by_half(storage)[values.astype(np.float16).view(np.uint16)]


def rounded(values: npt.NDArray[np.float32], storage: Storage) -> npt.NDArray[np.float32]:
    """Numbers of an 8-bit type in place of many others, quickly."""
    if storage == "int8":
        return nearest(values, storage).astype(np.float32)  # type: ignore[arg-type]
    every = decoded(np.arange(256, dtype=np.uint8), storage).astype(np.float32)
    result: npt.NDArray[np.float32] = every[stored(values, storage)]
    return result


@cache
def _by_half(storage: Storage) -> npt.NDArray[Any]:
    """The 8-bit number for each of float16, by its bits: float16 holds all of these."""
    return encoded(np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float64), storage)


def upper_halves(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The bits of bfloat16 numbers, given as float32."""
    return (np.ascontiguousarray(values).view(np.uint32) >> 16).astype(np.uint16)


def decoded(stored: npt.NDArray[Any], storage: Storage) -> Float64:
    """Stored numbers as float64."""
    if storage == "bfloat16":
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    if storage in ("e4m3", "e5m2"):
        negative, code = stored >= 128, stored & 127
        magnitudes: Float64 = np.where(negative, -1.0, 1.0) * numbers(storage)[code]
        return magnitudes
    values: Float64 = stored.astype(np.float64)
    return values


@cache
def numbers(storage: Storage) -> Float64:
    """The 128 numbers of an 8-bit type that are not negative, by their bits."""
    if storage == "int8":
        return np.arange(128.0)
    bits, least, _ = FORMATS[storage]
    codes = np.arange(128)
    exponents, fractions = codes >> (bits - 1), codes % 2 ** (bits - 1)
    is_normal = exponents > 0
    significands = fractions + np.where(is_normal, 2.0 ** (bits - 1), 0)
    values: Float64 = np.ldexp(significands, np.maximum(exponents, 1) - 1 + least - bits + 1)
    if storage == "e4m3":
        values[127] = np.nan
    else:
        values[124], values[125:] = np.inf, np.nan
    return values
