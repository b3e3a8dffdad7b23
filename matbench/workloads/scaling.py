"""The factors of 8-bit operands: of a matrix, of a row or column, or of a block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matbench.model import SCALED_BLOCK, NumericContract, Problem, Scales

Float32 = npt.NDArray[np.float32]
_ALL = 2**31 - 1


class Groups(NamedTuple):
    """How many rows of A, columns of B, and terms have a factor in common."""

    rows: int = 1
    columns: int = 1
    terms: int = 1


#: By what is scaled.
GROUPS: dict[Scales | None, Groups] = {
    None: Groups(),
    "matrix": Groups(_ALL, _ALL, _ALL),
    "rows": Groups(1, 1, _ALL),
    "blocks": Groups(1, SCALED_BLOCK, SCALED_BLOCK),
}


def block(scales: Scales, buffer: str) -> tuple[int, int]:
    """The rows and columns of A or B that have a factor in common."""
    of = GROUPS[scales]
    return (of.rows, of.terms) if buffer == "A" else (of.terms, of.columns)


def shape(scales: Scales, buffer: str, problem: Problem) -> tuple[int, int]:
    """The rows and columns of the factors of A (M×K) or B (K×N)."""
    of_rows, of_columns = block(scales, buffer)
    rows, columns = _sides(buffer, problem)
    return -(-rows // of_rows), -(-columns // of_columns)


def spread(factors: Float32, scales: Scales, buffer: str, problem: Problem) -> Float32:
    """The factor of each element of A (M×K) or B (K×N)."""
    of_rows, of_columns = block(scales, buffer)
    rows, columns = _sides(buffer, problem)
    each: Float32 = factors[np.arange(rows) // of_rows][:, np.arange(columns) // of_columns]
    return each


def _sides(buffer: str, problem: Problem) -> tuple[int, int]:
    return (problem.M, problem.K) if buffer == "A" else (problem.K, problem.N)


def drawn(
    random: np.random.Generator, contract: NumericContract, buffer: str, problem: Problem
) -> Float32:
    """Factors between 1/8 and 8, so that whole numbers are near 1; their logarithms are uniform."""
    assert contract.scales is not None
    count = shape(contract.scales, buffer, problem)
    size = 127 if contract.storage == "int8" else 1
    factors = np.exp2(random.uniform(-3, _highest(contract), count)) / size
    return factors.astype(np.float32)


def _highest(contract: NumericContract) -> int:
    """The exponent of the largest factor; less if results have a small range."""
    return 0 if contract.result == "float16" else 3


def powers(
    random: np.random.Generator, contract: NumericContract, buffer: str, problem: Problem
) -> Float32:
    """Powers of two that are the same for all terms, so that sums of integers stay exact."""
    assert contract.scales is not None
    rows, columns = shape(contract.scales, buffer, problem)
    count = (rows, 1) if buffer == "A" else (1, columns)
    one = np.exp2(random.integers(-3, _highest(contract) + 1, count)).astype(np.float32)
    return np.ascontiguousarray(np.broadcast_to(one, (rows, columns)))
