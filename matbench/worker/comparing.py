"""Comparisons of two cases: by one worker, or of functions, each by its own.

The process of a function stands still while the other side has its turn, so what it leaves behind,
such as a thread, slows down nothing but itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from matbench.analysis.leaders import LEAST
from matbench.analysis.statistics import ComparisonPlan
from matbench.bench.launches import own_times
from matbench.bench.outcomes import compared, not_measured
from matbench.bench.sampling import clock, sample_in_turns
from matbench.bench.session import Session
from matbench.errors import CaseError
from matbench.model import Case, DeviceInfo, NumericContract
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Outcome
from matbench.worker.worker import Worker, WorkerPool
from matbench.workloads import oracle


class _EndedError(Exception):
    """A side has no more turns; its outcome says why."""


class _Apart:
    """A case in a process of its own, and its outcome so far."""

    outcome: Outcome

    def __init__(self, worker: Worker, case: Case) -> None:
        self.worker, self.case = worker, case
        self.verifying_ns = 0

    def begin(self, contract: NumericContract, inputs_seed: int) -> Outcome:
        """Check the case, which then is ready for its turns if it is right."""
        unfit = self.worker.unfit(self.case)
        if unfit is not None:
            self.outcome = unfit
        else:
            with suppress(_EndedError):
                self.ask(Session.begin_turns, self.case, contract, inputs_seed)
        return self.outcome

    def ask(self, task: Callable[..., Any], *args: Any) -> Any:
        """What the session says; `_EndedError` if it is that the case is not right."""
        try:
            answer = self.worker.with_session(task, *args)
        except CaseError as error:
            answer = self.worker.failed(self.case, error)
        if isinstance(answer, Outcome):
            self.outcome = self.worker.explained(self.case, answer)
            if answer.status != "measured":
                raise _EndedError
        return answer

    def sample(self) -> float:
        taken_ns, self.verifying_ns = self.ask(Session.turn)
        return float(taken_ns)


def compare(
    pool: WorkerPool, device: DeviceInfo, cases: Sequence[Case], plan: ComparisonPlan, seed: int
) -> ComparisonRecord:
    """Check both and time them in turns on a device; without a comparison if one cannot run."""
    baseline, candidate = cases
    if unlike := baseline.kernel.contract.unlike(candidate.kernel.contract):
        reason = f"the kernels cannot be compared; {unlike}"
        sides = (not_measured(case, device, "failed", reason) for case in cases)
        return compared(*sides)
    workers = [pool.worker(device, case.kernel) for case in cases]
    if workers[0] is workers[1]:
        return workers[0].compare(baseline, candidate, plan, seed)
    both = [_Apart(worker, case) for worker, case in zip(workers, cases, strict=True)]
    contract = oracle.common([case.kernel.contract for case in cases])
    inputs_seed, comparison = secrets.randbits(64), None
    outcomes = [one.begin(contract, inputs_seed) for one in both]
    if all(outcome.status == "measured" for outcome in outcomes):

        def place(number: int) -> None:
            for one in both:
                one.ask(Session.place_turns, number)

        plan = msgspec.structs.replace(plan, least=LEAST[device.kind])
        options = pool.options.on(device.kind)
        spent = clock(lambda: sum(one.verifying_ns for one in both))
        samplers = [one.sample for one in both]
        try:
            samples, decided = sample_in_turns(samplers, plan, seed, spent, place=place)
            for one, taken in zip(both, samples, strict=True):
                one.ask(Session.end_turns)
                times = own_times(taken, options, inputs_seed)
                one.outcome = msgspec.structs.replace(one.outcome, cold=times.cold, hot=times.hot)
            comparison = decided
        except _EndedError:
            pass  # the outcome of a side says why
    for one in both:
        with suppress(CaseError):
            one.worker.with_session(Session.leave_turns)
    return compared(both[0].outcome, both[1].outcome, comparison=comparison)
