"""Finds kernels that skip work because their inputs are those of the launch before.

Only sustained launches have the same inputs again and again (`Launches.block`). Such a kernel keeps
C and something of its inputs, from which it sees whether they have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.backends import Work
from matbench.bench.checks import Checks
from matbench.bench.loop import SLOW_NS
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


def require_same_work(checks: Checks, start: Callable[[], None], repeated_ns: float) -> None:
    """`WrongError` if the kernel skips work in a block, where a launch takes `repeated_ns`.

    `start` starts one launch on the inputs of the last.
    """
    problem = checks.case.problem
    is_matrix = problem.workload == workloads.DEFAULT
    if "repeated" not in checks.options.checks or not is_matrix or problem.alpha == 0:
        return  # a sum's inputs take as long to recognise as to add up
    _require_change(checks, start)
    longer_ns = min(_longer_ns(checks, start, repeated_ns) for _ in range(_ATTEMPTS))
    start()
    checks.backend.synchronize()
    checks.compare_again()
    share, least_ns = _LONGER[checks.backend.info.kind]
    if longer_ns > share * repeated_ns + least_ns:
        raise checks.wrong(
            "repeated",
            f"skips work: on the inputs of the launch before it takes {repeated_ns / 1e3:,.1f} µs, "
            f"on others {longer_ns / 1e3:,.1f} µs more",
        )


def _changed(checks: Checks) -> Callable[[], None]:
    """Change a column of A, to NaN if the type has it; returns what puts it back."""
    return checks.samples.set_aside(checks.buffers, checks.case.kernel)


def _require_change(checks: Checks, start: Callable[[], None]) -> None:
    """`WrongError` if C stays what it was though a column of A has changed: to NaN, or −1."""
    problem, C = checks.case.problem, checks.result
    if checks.case.kernel.contract.storage == "int8" and problem.N < FEW_LINES:
        return  # B may be 0 wherever that column counts, because its samples select single terms

    def computed() -> npt.NDArray[Any]:
        start()
        checks.backend.synchronize()
        return C.contents()

    before = computed()
    put_back = _changed(checks)
    after = computed()
    put_back()
    elements = problem.M * problem.N * problem.batch
    if np.count_nonzero(before != after) < _CHANGED_PART * elements:
        raise checks.wrong("repeated", "skips work: A changed after a launch, C did not")


def _longer_ns(checks: Checks, start: Callable[[], None], repeated_ns: float) -> float:
    """How much longer a launch takes if A differs from the one before than if it changed back."""
    pairs, tries = (_PAIRS, _TRIES) if repeated_ns < SLOW_NS else (1, 1)

    def time_ns(*, changes: bool) -> float:
        return min(
            checks.backend.timed_ns(
                Work(
                    [_Pairs(checks, start, pairs, changes)],
                    hold=lambda: checks.kernels.hold(_HOLD_NS),
                )
            )
            for _ in range(tries)
        )

    return (time_ns(changes=True) - time_ns(changes=False)) / (2 * pairs)


class _Pairs(NamedTuple):
    """A call of pairs of launches. Before each pair A changes and changes back; with `changes`, it
    changes back between the two, so that neither has the inputs of the launch before."""

    checks: Checks
    start: Callable[[], None]
    pairs: int
    changes: bool

    @property
    def runs_on_host(self) -> bool:
        """As those of functions do; on a CPU, no launch's own clock sees them all."""
        return self.checks.case.kernel.kind.is_apart or self.checks.backend.info.kind == "cpu"

    def run(self) -> None:
        for _ in range(self.pairs):
            put_back = _changed(self.checks)
            if self.changes:
                self.start()
                put_back()
            else:
                put_back()
                self.start()
            self.start()
        if self.checks.backend.info.kind == "cpu":
            self.checks.backend.synchronize()

    def take(self) -> None:
        pass

    def give(self) -> None:
        pass
