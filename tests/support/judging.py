"""The verdict of the host on a result, with which the device's must agree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matbench.records.outcome import Accuracy
from matbench.workloads import oracle
from matbench.workloads.oracle import Array, Bound, Trial


class Verdict(NamedTuple):
    """The result of comparing C with a trial; all counts are of elements."""

    accuracy: Accuracy
    wrong: int
    first_wrong: int | None


def judge(C: Array, trial: Trial, bound: Bound) -> Verdict:
    """Compare C with a trial.

    All elements are wrong, but none is the first, if only all errors together are too large.
    """
    accuracy = oracle.UNKNOWN
    if trial.exact is not None:
        bad = ~(trial.exact == C)
    else:
        accuracy = oracle.accuracy(C, trial, bound)
        with np.errstate(all="ignore"):
            bad = ~(np.abs(C.astype(np.float64) - trial.sums[0]) <= bound.of(trial))
        if not bad.any() and not (bound.excess(C, trial) <= oracle.MOST_EXCESS):
            return Verdict(accuracy, bad.size, None)
    wrong = int(bad.sum())
    return Verdict(accuracy, wrong, int(bad.argmax()) if wrong else None)
