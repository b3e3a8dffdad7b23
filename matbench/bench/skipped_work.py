"""Finds kernels that skip work because their inputs are those of the launch before.

Only sustained launches have the same inputs again and again (`Launches.block`). Such a kernel keeps
C and something of its inputs, from which it sees whether they have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.backends import Call, Work
from matbench.bench.loop import SLOW_NS
from matbench.bench.runnable import Runnable
from matbench.bench.samples import FEW_LINES

#: Pairs of launches, how often they are timed, how often the whole is repeated, and for how long a
#: device is held meanwhile.
_PAIRS = 4
_TRIES = 3
_ATTEMPTS = 3
_HOLD_NS = 2_000_000
#: How much longer a launch may take on changed inputs: a share of its time, and nanoseconds.
_LONGER = {"gpu": (0.25, 5e3), "cpu": (1.0, 50e3)}
#: Which part of C surely changes with a column of A, whatever the type.
_CHANGED_PART = 0.1


def require_same_work(runnable: Runnable, start: Callable[[], None], repeated_ns: float) -> None:
    """`WrongError` if the kernel skips work in a block, where a launch takes `repeated_ns`.

    `start` starts one launch on the inputs of the last.
    """
    problem = runnable.case.problem
    is_matrix = problem.workload == workloads.DEFAULT
    if "repeated" not in runnable.options.checks or not is_matrix or problem.alpha == 0:
        return  # a sum's inputs take as long to recognise as to add up
    _require_change(runnable, start)
    longer_ns = min(_longer_ns(runnable, start, repeated_ns) for _ in range(_ATTEMPTS))
    start()
    runnable.backend.synchronize()
    runnable.compare_again()
    share, least_ns = _LONGER[runnable.backend.info.kind]
    if longer_ns > share * repeated_ns + least_ns:
        raise runnable.wrong(
            "repeated",
            f"skips work: on the inputs of the launch before it takes {repeated_ns / 1e3:,.1f} µs, "
            f"on others {longer_ns / 1e3:,.1f} µs more",
        )


def _changed(runnable: Runnable) -> Callable[[], None]:
    """Change a column of A, to NaN if the type has it; returns what puts it back."""
    return runnable.samples.set_aside(runnable.buffers, runnable.case.kernel)


def _require_change(runnable: Runnable, start: Callable[[], None]) -> None:
    """`WrongError` if C stays what it was though a column of A has changed: to NaN, or −1."""
    problem, C = runnable.case.problem, runnable.result
    if runnable.case.kernel.contract.storage == "int8" and problem.N < FEW_LINES:
        return  # B may be 0 wherever that column counts, because its samples select single terms

    def computed() -> npt.NDArray[Any]:
        start()
        runnable.backend.synchronize()
        return C.contents()

    before = computed()
    put_back = _changed(runnable)
    after = computed()
    put_back()
    elements = problem.M * problem.N * problem.batch
    if np.count_nonzero(before != after) < _CHANGED_PART * elements:
        raise runnable.wrong("repeated", "skips work: A changed after a launch, C did not")


def _longer_ns(runnable: Runnable, start: Callable[[], None], repeated_ns: float) -> float:
    """How much longer a launch takes if A differs from the one before than if it changed back."""
    pairs, tries = (_PAIRS, _TRIES) if repeated_ns < SLOW_NS else (1, 1)

    def time_ns(*, changes: bool) -> float:
        return min(
            runnable.backend.timed_ns(
                Work(
                    [_pairs(runnable, start, pairs, changes=changes)],
                    hold=lambda: runnable.kernels.hold(_HOLD_NS),
                )
            )
            for _ in range(tries)
        )

    return (time_ns(changes=True) - time_ns(changes=False)) / (2 * pairs)


def _pairs(runnable: Runnable, start: Callable[[], None], pairs: int, *, changes: bool) -> Call:
    """A call of pairs of launches. Before each pair A changes and changes back; with `changes`, it
    changes back between the two, so that neither has the inputs of the launch before.

    It runs on the host as those of functions do; on a CPU, no launch's own clock sees them all.
    """
    is_cpu = runnable.backend.info.kind == "cpu"

    def run() -> None:
        for _ in range(pairs):
            put_back = _changed(runnable)
            if changes:
                start()
                put_back()
            else:
                put_back()
                start()
            start()
        if is_cpu:
            runnable.backend.synchronize()

    return Call(run, runs_on_host=is_cpu or runnable.case.kernel.kind.is_apart)
