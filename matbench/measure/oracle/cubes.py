"""The sum of the cubes of N digits: whole numbers, so that it is exact."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matbench.cache import Cache
from matbench.measure.oracle import Trial, Trials, generator
from matbench.model import Problem, Reading


def trials(problem: Problem, reading: Reading, cache: Cache) -> Trials:
    """Seeded digits, others, and zeros with one digit at the end, so that the last one counts."""
    A = digits(problem)
    last = np.zeros((1, problem.N), np.int32)
    last[0, -1] = 7
    others = {"selection": [trial("selection", last)], "fresh": [trial("fresh", 9 - A)]}
    return Trials(trial("reference", A), None, others)


def digits(problem: Problem) -> npt.NDArray[np.int32]:
    """Whole numbers from 0 to 9, 1×N."""
    return generator(problem, "A").integers(0, 10, (1, problem.N), dtype=np.int32)


def trial(name: str, A: npt.NDArray[np.int32]) -> Trial:
    cubes = np.arange(10, dtype=np.int64) ** 3
    total = int(np.bincount(A[0], minlength=10) @ cubes)
    return Trial(name, (A,), exact=np.full((1, 1), total, np.int32))
