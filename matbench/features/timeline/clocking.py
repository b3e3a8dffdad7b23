"""Times the blocks of a case by the stamps of an instrumented build."""

from __future__ import annotations

from typing import NamedTuple

from matbench.analysis.block_times import BlockSample
from matbench.errors import CaseError
from matbench.measure.checks import Checks
from matbench.measure.launches import SLOW_NS, Launches, Times
from matbench.measure.outcomes import not_measured
from matbench.measure.session import Session
from matbench.measure.worker import Worker
from matbench.model import Case
from matbench.records.outcome import Outcome


class Clocked(NamedTuple):
    """The outcome of a case, and the stamps of its blocks; None if it was not right."""

    outcome: Outcome
    stamps: BlockSample | None = None


def clocked(worker: Worker, case: Case) -> Clocked:
    """Build and check one case, and time its blocks."""
    unfit = worker.unfit(case)
    if unfit is not None:
        return Clocked(unfit)
    try:
        return worker.ask(case, None, clocked_here, case)
    except CaseError as error:
        return Clocked(not_measured(case, worker.device, "failed", error.reason))


def clocked_here(session: Session, case: Case) -> Clocked:
    """Check a case, then time its blocks; without stamps if the kernel is not right."""
    stamps = None

    def clock_all(checks: Checks) -> Times:
        nonlocal stamps
        times = session.untimed(checks)
        if checks.built.clocked is not None:
            launches = Launches(checks)
            pairs = 9 if launches.once_ns() < SLOW_NS else 1
            stamps = launches.stamps(checks.built.clocked, pairs)
            launches.verify()
        return times

    outcome = session.outcome_after(case, clock_all)
    return Clocked(outcome, stamps if outcome.status == "measured" else None)
