"""The sum of the cubes of N digits: an integer, so it is exact."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matbench.cache import Cache
from matbench.model import NumericContract, Problem
from matbench.workloads.oracle import Trial, Trials, generator


def trials(problem: Problem, contract: NumericContract, cache: Cache) -> Trials:
    """Seeded digits; and zeros with one digit at the end, to check that the last one is read."""
    A = digits(problem)
    last = np.zeros((1, problem.N), np.int32)
    last[0, -1] = 7
    return Trials(trial("reference", A), None, [lambda: trial("selection", last)])


def digits(problem: Problem) -> npt.NDArray[np.int32]:
    """Integers from 0 to 9, 1×N."""
    return generator(problem, "A").integers(0, 10, (1, problem.N), dtype=np.int32)


def trial(name: str, A: npt.NDArray[np.int32]) -> Trial:
    cubes = np.arange(10, dtype=np.int64) ** 3
    total = int(np.bincount(A[0], minlength=10) @ cubes)
    return Trial(name, (A,), exact=np.full((1, 1), total, np.int32))
