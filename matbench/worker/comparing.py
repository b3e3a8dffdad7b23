"""Looks at kernels or versions of one, each at its fastest parameters, and times two in turns.

Two take turns in one process, or functions, each in its own, which stands still while the other
side has its turn: what it leaves behind, such as a thread, slows down nothing but itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from matbench.analysis import ranking
from matbench.analysis.ranking import LEAST
from matbench.analysis.statistics import ComparisonPlan
from matbench.bench import sustained
from matbench.bench.launches import Times, own_times
from matbench.bench.loop import sample_in_turns, timing_of
from matbench.bench.options import Options
from matbench.bench.outcomes import compared, not_measured, skipped
from matbench.bench.session import Session
from matbench.errors import CaseError
from matbench.model import Case, DeviceInfo, Skip, settings_of
from matbench.records.comparison import Comparison, ComparisonRecord
from matbench.records.outcome import Outcome
from matbench.worker.worker import TIMES_SUSTAINED, Worker, WorkerPool
from matbench.workloads import oracle


@dataclass(eq=False)
class Contender:
    """A kernel, or a version of one, at its fastest parameters on one problem. The `note` says
    which others were tried; without an `outcome` there were none, and it was not looked at."""

    label: str
    case: Case
    outcome: Outcome | None = None
    note: str = ""

    @classmethod
    def of(cls, looks: Sequence[tuple[Case, Outcome]], label: str | None = None) -> Contender:
        """The fastest of these; if none has a time, the first that is wrong, or else failed."""
        best = ranking.fastest_of(*(outcome for _, outcome in looks))
        case = next(case for case, outcome in looks if outcome is best)
        values: dict[str, dict[int, None]] = {}
        for tried, _ in looks:
            for name, value in tried.params.items():
                values.setdefault(name, {})[value] = None
        varied = (f"{n} {', '.join(map(str, v))}" for n, v in values.items() if len(v) > 1)
        note = f"the fastest of {len(looks)} in a quick look at {' and '.join(varied)}"
        bad = [f"{settings_of(c.params)} {o.status}" for c, o in looks if o.median_ns is None]
        told = "; ".join([f"{case.kernel.name}: {note}", *([", ".join(bad)] if bad else [])])
        return cls(label or case.kernel.name, case, best, told if len(looks) > 1 else "")


@dataclass(eq=False)
class Bench:
    """Measures contenders on one device, and compares two of them in turns, whose order the `seed`
    decides."""

    pool: WorkerPool
    device: DeviceInfo
    plan: ComparisonPlan = field(default_factory=ComparisonPlan)
    seed: int = 0

    def measure(self, case: Case) -> Outcome:
        return self.pool.worker(self.device, case.kernel).measure(case)

    def fastest(self, cases: Sequence[Case], *, is_checked: bool = False) -> Contender:
        """The fastest case in a quick look at all that can run; a single one is looked at only if
        it `is_checked`, too."""
        runnable = [case for case in cases if case.skip is None] or cases[:1]
        if len(runnable) == 1 and not is_checked:
            return Contender(runnable[0].kernel.name, runnable[0])
        return Contender.of([(case, self.measure(case)) for case in runnable])

    def compare(self, baseline: Contender, candidate: Contender) -> ComparisonRecord:
        """Check both and time them in turns."""
        sides = baseline, candidate
        cases = [side.case for side in sides]
        workers = [self.pool.worker(self.device, case.kernel) for case in cases]
        record = compare(workers, cases, self.plan, self.seed)
        notes = *(side.note for side in sides if side.note), *record.notes
        return msgspec.structs.replace(
            record,
            baseline_name=baseline.label,
            candidate_name=candidate.label,
            notes=tuple(dict.fromkeys(notes)),
        )


class _EndedError(Exception):
    """A side has no more turns; its outcome says why."""


@dataclass(eq=False)
class _Side:
    """One of the two cases, its number in its process, and its outcome so far; `call` passes a task
    to the session there."""

    case: Case
    number: int
    call: Callable[..., Any]
    outcome: Outcome = field(init=False)
    launching_ns: int = 0

    def ask(self, task: Callable[..., Any], *given: Any) -> Any:
        """What the session says; `_EndedError` if it is that the case is not right."""
        answer = self.call(task, *given)
        if isinstance(answer, Outcome):
            self.outcome = answer
            if answer.status != "measured":
                raise _EndedError
        return answer

    def sample(self) -> float:
        taken_ns, self.launching_ns = self.ask(Session.turn, self.number)
        return float(taken_ns)


def compare(
    workers: Sequence[Worker], cases: Sequence[Case], plan: ComparisonPlan, seed: int
) -> ComparisonRecord:
    """Check both, each by its worker, which may be the same, and time them in turns; without a
    comparison if one cannot run."""
    (baseline, candidate), (worker, other) = cases, workers

    def neither(reason: str) -> ComparisonRecord:
        return compared(*(not_measured(case, worker.device, "failed", reason) for case in cases))

    if unlike := baseline.kernel.contract.unlike(candidate.kernel.contract):
        return neither(f"the kernels cannot be compared; {unlike}")
    for own, case in zip(workers, cases, strict=True):
        if (unfit := own.unfit(case)) is not None:
            pair = Skip("pair")
            sides = (unfit if one is case else skipped(one, own.device, pair) for one in cases)
            return compared(*sides)
    turns_s = 2 * plan.maximum_time_ns / 1e9  # half of it for verification
    if worker.options.sustained_s is not None:
        turns_s = TIMES_SUSTAINED * plan.looks[-1]  # blocks of a second
    try:
        if worker is other:
            record = worker.run(here, *cases, plan, seed, deadline_s=worker.run_s + turns_s)
        else:
            apart = zip(cases, workers, strict=True)
            both = [_Side(case, 0, partial(_told_by, own, case)) for case, own in apart]
            record = _in_turns(both, plan, seed, worker.options.on(worker.device.kind))
    except CaseError as error:
        return neither(f"comparing: {error.reason}")
    return msgspec.structs.replace(
        record,
        baseline=worker.explained(baseline, record.baseline),
        candidate=other.explained(candidate, record.candidate),
    )


def here(
    session: Session, baseline: Case, candidate: Case, plan: ComparisonPlan, seed: int
) -> ComparisonRecord:
    """Compare two cases of one session."""

    def call(task: Callable[..., Any], *given: Any) -> Any:
        return task(session, *given)

    sides = [_Side(case, number, call) for number, case in enumerate((baseline, candidate))]
    meter = None
    if session.options.sustained_s is not None:
        meter = sustained.Meter(session.backend, session.idle_w)
    return _in_turns(sides, plan, seed, session.options, meter)


def _told_by(worker: Worker, case: Case, task: Callable[..., Any], *given: Any) -> Any:
    """What a process of its own says of a case; a failure is its outcome."""
    try:
        return worker.run(task, *given)
    except CaseError as error:
        return worker.failed(case, error)


def _in_turns(
    sides: Sequence[_Side],
    plan: ComparisonPlan,
    seed: int,
    options: Options,
    meter: sustained.Meter | None = None,
) -> ComparisonRecord:
    """Check both, then time them in turns; with a `meter`, launches are sustained."""
    comparison = None
    for side in sides:
        with suppress(_EndedError):
            side.ask(Session.checked, side.case)
    if all(side.outcome.status == "measured" for side in sides):
        try:
            comparison = _timed(sides, plan, seed, options, meter)
        except _EndedError:
            pass  # the outcome of a side says why
        finally:
            for side in sides:
                if side.number == 0:  # the first of its process
                    side.call(Session.leave_turns)
    return compared(*(side.outcome for side in sides), comparison=comparison)


def _timed(
    sides: Sequence[_Side],
    plan: ComparisonPlan,
    seed: int,
    options: Options,
    meter: sustained.Meter | None,
) -> Comparison:
    """Time both; the two of a pair have the same inputs."""

    def place(number: int) -> None:
        for side in sides:
            if side.number == 0:
                side.ask(Session.place_turns, number)

    contract = oracle.common([side.ask(Session.contract, side.case) for side in sides])
    inputs_seed = secrets.randbits(64)
    plan = msgspec.structs.replace(plan, least=LEAST[sides[0].outcome.case.device_kind])
    for side in sides:
        side.ask(Session.begin_turns, side.case, contract, inputs_seed)
    if meter is not None:
        runs = [partial(side.ask, Session.block, side.number) for side in sides]
        blocks, comparison = sustained.in_turns(runs, plan, seed, meter)
        times = [Times(hot=timing_of(one.blocks_ns, inputs_seed), sustained=one) for one in blocks]
    else:
        samplers = [side.sample for side in sides]
        samples, comparison = sample_in_turns(
            samplers, plan, seed, lambda: sum(side.launching_ns for side in sides), place=place
        )
        times = [own_times(taken, options, inputs_seed) for taken in samples]
    for side, own in zip(sides, times, strict=True):
        side.ask(Session.end_turns, side.number, own.sustained and own.sustained.mean_ns)
    for side, own in zip(sides, times, strict=True):
        side.outcome = msgspec.structs.replace(
            side.outcome, cold=own.cold, hot=own.hot, sustained=own.sustained
        )
    return comparison
