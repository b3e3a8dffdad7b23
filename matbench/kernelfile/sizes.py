"""Sizes as `--sizes` takes them, the problems they stand for, and the factors of products."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from matbench import workloads
from matbench.errors import UsageError
from matbench.model import MOST_PRODUCTS, Inputs, Problem
from matbench.workloads import Size, Workload

#: Sizes are passed to kernels as 32-bit integers, with room to add a tile.
MAX_SIZE = 2**30
_NUMBER = re.compile(r"2\^(?P<exponent>[0-9]{1,2})|(?P<digits>-?[0-9]{1,30})(?P<suffix>[km]?)")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})(e[+-]?[0-9]{1,2})?")
#: Beyond this power of two, products with alpha and beta could leave float32's range.
_EXPONENT = 60
FACTORS = f"must be 0, or 2^-{_EXPONENT} to 2^{_EXPONENT} in magnitude"
_SUFFIX = {"": 1, "k": 1024, "m": 1024**2}


def parse_sizes(text: str, workload: Workload = workloads.MATMUL) -> list[Size]:
    """`256,1k,512x1024x768,256..8192` as (M, N, K) triples; one number stands for all three."""
    sizes: list[Size] = []
    for piece in map(str.strip, text.split(",")):
        first, dots, last = piece.lower().partition("..")
        if not dots:
            sizes.append(_size(piece, list(map(_number, first.split("x"))), workload))
            continue
        low, high = _number(first), _number(last)
        if low is None or high is None:
            raise UsageError(f"size {piece!r}: a range has two numbers, as in 256..8192")
        start, end = (_size(piece, [number], workload) for number in (low, high))
        if low > high:
            raise UsageError(f"size {piece!r}: a range starts with the smaller number")
        sizes.append(start)
        while (low := 2 * low) < high:
            sizes.append(_size(piece, [low], workload))
        sizes.append(end)
    return list(dict.fromkeys(sizes))


def _number(text: str) -> int | None:
    """A whole number, one with a suffix (`4k`), or a power of two written as `2^28`."""
    if (match := _NUMBER.fullmatch(text)) is None:
        return None
    if match["exponent"]:
        return 1 << int(match["exponent"])
    return int(match["digits"]) * _SUFFIX[match["suffix"]]


def _size(piece: str, numbers: list[int | None], workload: Workload) -> Size:
    given = tuple(number for number in numbers if number is not None)
    size = workload.size(given)
    if len(given) < len(numbers) or size is None:
        raise UsageError(f"size {piece!r}: write {workload.size_help}")
    for value in size:
        if not 1 <= value <= MAX_SIZE:
            raise UsageError(f"size {piece!r}: must be from 1 to {MAX_SIZE:,}")
    return size


def parse_problems(
    text: str, workload: Workload, inputs: Inputs | Sequence[Inputs] = (), seed: int = 0
) -> list[Problem]:
    """The problems of `--sizes`, with each of the inputs; by default with the workload's usual."""
    kinds = (inputs,) if isinstance(inputs, str) else inputs
    for kind in kinds:
        if kind not in workload.inputs:
            known = ", ".join(workload.inputs)
            raise UsageError(f"--inputs {kind!r}: not for {workload.name}, which takes {known}")
    return [
        Problem(m, n, k, inputs=kind, seed=seed, workload=workload.name)
        for m, n, k in parse_sizes(text, workload)
        for kind in kinds or workload.inputs[:1]
    ]


def is_factor(number: float) -> bool:
    """Whether alpha or beta may have this value."""
    return number == 0 or 2.0**-_EXPONENT <= abs(number) <= 2.0**_EXPONENT


def numbers(value: float | tuple[float, ...]) -> tuple[float, ...]:
    """The numbers of a key, as a tuple even if there is only one."""
    return value if isinstance(value, tuple) else (value,)


def parse_scaling(name: str, text: str) -> tuple[float, ...]:
    """`1,-0.5` as the numbers of `--alpha` or `--beta`; whole numbers above 0 for `--batch`."""
    factors: list[float] = []
    for piece in (piece.strip() for piece in text.split(",")):
        value = float(piece) if _DECIMAL.fullmatch(piece) else math.nan
        is_allowed, limits = is_factor(value), f"{FACTORS}, as in 1,-0.5"
        if name == "batch":
            is_allowed = piece.isdecimal() and 1 <= value <= MOST_PRODUCTS
            limits = f"must be a whole number from 1 to {MOST_PRODUCTS:,}, as in 1,64"
        if not is_allowed:
            raise UsageError(f"--{name} {piece!r:.40}: {limits}")
        factors.append(int(piece) if name == "batch" else value)
    return tuple(dict.fromkeys(factors))
