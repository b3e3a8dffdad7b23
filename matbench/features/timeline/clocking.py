"""Times the blocks of a case by the stamps of an instrumented build."""

from __future__ import annotations

from matbench.analysis.block_times import BlockSample
from matbench.bench.launches import Launches, Times
from matbench.bench.loop import SLOW_NS
from matbench.bench.runnable import Runnable
from matbench.bench.session import Session
from matbench.errors import CaseError
from matbench.model import Case
from matbench.records.outcome import Outcome
from matbench.worker.worker import Worker


def clocked(worker: Worker, case: Case) -> tuple[Outcome, BlockSample | None]:
    """The outcome of one case, and the stamps of its blocks; None if it was not right."""
    unfit = worker.unfit(case)
    if unfit is not None:
        return unfit, None
    try:
        return worker.run(clocked_here, case)
    except CaseError as error:
        return worker.failed(case, error), None


def clocked_here(session: Session, case: Case) -> tuple[Outcome, BlockSample | None]:
    """Check a case, then time its blocks; without stamps if the kernel is not right."""
    stamps = None

    def clock_all(runnable: Runnable) -> Times:
        nonlocal stamps
        times = session.untimed(runnable)
        if runnable.built.clocked is not None:
            launches = Launches(runnable)
            pairs = 9 if launches.once_ns() < SLOW_NS else 1
            stamps = launches.stamps(runnable.built.clocked, pairs)
            launches.verify()
        return times

    outcome = session.measure(case, times_of=clock_all)
    return outcome, stamps if outcome.status == "measured" else None
