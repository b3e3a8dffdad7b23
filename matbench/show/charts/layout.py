"""What a page's script computes from its width, for pictures: domains, marks on axes, places."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

Domain = tuple[float, float]

#: From one name to the next, in pixels.
NAME_HEIGHT = 14


def extent(values: Iterable[float], least: float = 1.25) -> Domain:
    """The range of the values above 0 for a logarithmic axis, with room around it.

    Its ends are at least the factor `least` apart.
    """
    known = [value for value in values if value > 0] or [1.0]
    low, high = min(known), max(known)
    margin = max((high / low) ** 0.04, math.sqrt(least * low / high), 1.005)
    return low / margin, high * margin


def position(value: float, domain: Domain, length: float) -> float:
    """Where a value lies on a logarithmic axis of that length, from its low end."""
    low, high = domain
    return math.log(value / low) / math.log(high / low) * length


def value_at(place: float, domain: Domain, length: float) -> float:
    """The value at a place: the inverse of `position`."""
    low, high = domain
    return low * math.exp(place / length * math.log(high / low))


def ticks(domain: Domain, most: int = 12) -> list[float]:
    """Round values in the range, as many as fit: powers of ten, and 2 and 5 times them.

    Where these are fewer than three, evenly spaced ones.
    """
    low, high = domain
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for every in range(1, len(powers) + 1):
        for digits in ((1, 2, 5), (1, 3), (1,)) if every == 1 else ((1,),):
            found = [float(f"{digit}e{power}") for power in powers[::every] for digit in digits]
            found = [value for value in found if low <= value <= high]
            if len(found) < 3:
                return _even_ticks(low, high)
            if len(found) <= most:
                return found
    return _even_ticks(low, high)


def _even_ticks(low: float, high: float) -> list[float]:
    found: list[float] = []
    parts = 5
    while len(found) < 3:
        rough = (high - low) / parts
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * 0.99)
        first = math.ceil(low / step)
        found = [float(f"{i * step:.12g}") for i in range(first, math.floor(high / step) + 1)]
        parts += 2
    return found


def size_ticks(sizes: Sequence[int], length: float, apart: float = 40) -> list[int]:
    """Sizes to be marked on an axis of that length, in pixels: all, if their names fit.

    Otherwise powers of two, evenly spaced.
    """
    if len(sizes) < 2:
        return list(sizes)
    pixels = length / math.log2(sizes[-1] / sizes[0])
    if all(math.log2(after / before) * pixels >= apart for before, after in pairwise(sizes)):
        return list(sizes)
    first, last = (sizes[0] - 1).bit_length(), sizes[-1].bit_length() - 1
    every = max(1, math.ceil(apart / pixels))
    powers = [2**power for power in range(first, last + 1) if not power % every]
    return powers if len(powers) > 1 else [sizes[0], sizes[-1]]


def separated(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places at least `gap` apart within `low` and `high`, in the order of those that are wanted.

    They move as little as possible (by the sum of squares). Without room for all, they go beyond
    `high`.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[tuple[float, int]] = []  # the sum of where its members would like the first, count
    for rank, index in enumerate(order):
        block = (wanted[index] - rank * gap, 1)
        while blocks and blocks[-1][0] / blocks[-1][1] >= block[0] / block[1]:
            total, count = blocks.pop()
            block = (total + block[0], count + block[1])
        blocks.append(block)
    starts = [total / count for total, count in blocks for _ in range(count)]
    most = high - (len(order) - 1) * gap
    places = dict(
        zip(order, (max(low, min(s, most)) + r * gap for r, s in enumerate(starts)), strict=True)
    )
    return [places[index] for index in range(len(wanted))]


def labelled(values: Sequence[float], domain: Domain, height: float) -> list[float]:
    """Where the names of values stand beside a logarithmic axis: near them, none over another."""
    wanted = [height - position(value, domain, height) for value in values]
    places = separated(wanted, NAME_HEIGHT, 0, height)
    return [value_at(height - place, domain, height) for place in places]
