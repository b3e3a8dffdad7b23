"""The random numbers of `device_code/draws.cu` on the host: the same key gives the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

_ALL = 2**64 - 1


def mixed(x: int) -> int:
    """splitmix64's finalizer: a bijection of 64-bit words."""
    x = (x + 0x9E3779B97F4A7C15) & _ALL
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _ALL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _ALL
    return x ^ (x >> 31)


def drawn(key: int, index: int) -> int:
    """The random 64-bit word at an index, for a key."""
    return mixed(key ^ mixed(index))


def drawn_at(key: int, indices: npt.NDArray[Any]) -> Words:
    """The random words at many indices."""
    words: Words = _mixed(np.uint64(key & _ALL) ^ _mixed(indices.astype(np.uint64)))
    return words


def permutation(key: int, count: int) -> npt.NDArray[np.int64]:
    """The permutation of 0 … count − 1 for a key: the origin of each place.

    A Feistel network of four rounds over the next power of four, repeated until all are in range.
    """
    half = 1
    while 1 << 2 * half < count:
        half += 1
    low = np.uint64((1 << half) - 1)
    place = np.arange(count, dtype=np.uint64)
    outside = np.ones(count, bool)
    while outside.any():
        left, right = place[outside] >> np.uint64(half), place[outside] & low
        for turn in range(4):
            left, right = right, left ^ (drawn_at(key + turn, right) & low)
        place[outside] = (left << np.uint64(half)) | right
        outside = place >= count
    return place.astype(np.int64)


def permutation_of_groups(key: int, count: int, group: int) -> npt.NDArray[np.int64]:
    """The same for whole groups, and within each of them. A last, smaller one stays last."""
    if group == 1 or group >= count:
        return permutation(key, count)
    whole = count // group
    origins = np.arange(-(-count // group))
    origins[:whole] = permutation(key, whole)
    pieces = [
        origin * group + permutation(mixed(key + place), min(group, count - place * group))
        for place, origin in enumerate(origins.tolist())
    ]
    return np.concatenate(pieces)


def _mixed(x: Any) -> Any:
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
