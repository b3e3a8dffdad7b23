"""The factors of 8-bit operands: of a matrix, of a row or column, or of a block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matbench import workloads
from matbench.model import SCALE_OF, SCALED_BLOCK, NumericContract, Problem, Scales
from matbench.workloads.oracle import Float32, generator

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


def shape(scales: Scales | None, buffer: str, problem: Problem) -> tuple[int, int]:
    """The rows and columns of the factors of A (M×K) or B (K×N)."""
    (rows, of_rows), (columns, of_columns) = _sides(scales, buffer, problem)
    return -(-rows // of_rows), -(-columns // of_columns)


def spread(factors: Float32, scales: Scales | None, buffer: str, problem: Problem) -> Float32:
    """The factor of each element of A (M×K) or B (K×N)."""
    rows, columns = (np.arange(side) // of for side, of in _sides(scales, buffer, problem))
    return factors[rows][:, columns]


def _sides(scales: Scales | None, buffer: str, problem: Problem) -> list[tuple[int, int]]:
    """The rows of A or B, and how many have a factor in common; then the columns."""
    groups = GROUPS[scales]
    of = (groups.rows, groups.terms) if buffer == "A" else (groups.terms, groups.columns)
    return [*zip(workloads.MATMUL.shape(buffer, problem), of, strict=True)]


def drawn(contract: NumericContract, buffer: str, problem: Problem) -> Float32:
    """Factors between 1/8 and 8, so that whole numbers are near 1; their logarithms are uniform."""
    count = shape(contract.scales, buffer, problem)
    size = 127 if contract.storage == "int8" else 1
    random = generator(problem, SCALE_OF[buffer])
    return (np.exp2(random.uniform(-3, _highest(contract), count)) / size).astype(np.float32)


def _highest(contract: NumericContract) -> int:
    """The exponent of the largest factor; less if results have a small range."""
    return 0 if contract.result == "float16" else 3


def powers(
    random: np.random.Generator, contract: NumericContract, buffer: str, problem: Problem
) -> Float32:
    """Powers of two that are the same for all terms, so that sums of integers stay exact."""
    rows, columns = shape(contract.scales, buffer, problem)
    count = (rows, 1) if buffer == "A" else (1, columns)
    one = np.exp2(random.integers(-3, _highest(contract) + 1, count)).astype(np.float32)
    return np.ascontiguousarray(np.broadcast_to(one, (rows, columns)))
