"""The reversal of N integers: the result is known to the last bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matbench.cache import Cache
from matbench.model import NumericContract, Problem
from matbench.workloads.oracle import Trial, Trials, generator


def trials(problem: Problem, contract: NumericContract, cache: Cache) -> Trials:
    """The problem's own numbers."""
    return Trials(trial("reference", inputs(problem)), None)


def inputs(problem: Problem) -> npt.NDArray[np.int32]:
    """1×N: a `ramp` is 0, 1, 2, …; otherwise random 32-bit words."""
    if problem.inputs == "ramp":
        return np.arange(problem.N, dtype=np.int32).reshape(1, -1)
    bits = np.iinfo(np.int32)
    return generator(problem, "A").integers(
        bits.min, bits.max, (1, problem.N), dtype=np.int32, endpoint=True
    )


def trial(name: str, A: npt.NDArray[np.int32]) -> Trial:
    return Trial(name, (A,), exact=A[:, ::-1].copy())
