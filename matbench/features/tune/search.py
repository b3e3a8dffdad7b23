"""Finds the fastest values of a kernel's constants on a device.

Each candidate is checked, then timed with a few samples, and dropped as soon as two are slow. The
fastest quarter goes on to the next round with three times as many samples (successive halving:
Jamieson and Talwalkar, AISTATS 2016), until a few are left. These are measured like any case of a
run and compared in turns, because the best of many quick looks is often best by chance.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import msgspec

from matbench import workloads
from matbench.analysis.statistics import ComparisonPlan
from matbench.bench.options import Deadlines, Options
from matbench.cli.console import progress, say_printed
from matbench.errors import UsageError
from matbench.features.tune import looking
from matbench.features.tune.record import TuningRecord
from matbench.features.tune.search_space import Space
from matbench.model import Case, DeviceInfo
from matbench.records.comparison import Comparison
from matbench.records.outcome import Outcome
from matbench.worker import comparing
from matbench.worker.builders import Builders
from matbench.worker.rounds import in_rounds
from matbench.worker.scheduler import TaskGroup
from matbench.worker.worker import Worker, WorkerPool

#: Each round keeps a quarter, with three times the samples of the previous round.
_KEPT = 4
_MORE_SAMPLES = 3
_FIRST_SAMPLES = 3
_FINALISTS = 4
#: A first look ends if samples take this many times as long as the best median so far.
_HOPELESS = 2.0
#: With a budget of time, a look that takes this many times as long as the slowest so far, and at
#: least so many seconds, is stopped.
_HANGING = 10.0
_LEAST_LOOK_S = 3.0
#: What a budget of time keeps for all after the first looks: half of it, and at most so many
#: seconds, of which a comparison samples a quarter of what is left, and at least a second.
_MOST_FINALS_S = 60.0
_LEAST_TURNS_S = 1.0
_MOST_BUDGET = 999_999
#: Is told what comes next.
Advance = Callable[[str], None]


class Budget(NamedTuple):
    """For each size: of the first looks in candidates, of all in seconds; None: unlimited."""

    candidates: int | None = None
    seconds: float | None = None


def parse_budget(text: str | None) -> Budget:
    """`200` candidates, or `90s`, `10m`, `1h` of time."""
    if text is None:
        return Budget()
    match = re.fullmatch(r"0*([0-9]{1,30})([smh]?)", text.strip())
    if match is None or int(match[1]) == 0:
        raise UsageError(
            f"--budget {text!r:.60}: give a count such as 200, or a duration such as 90s, 10m or 1h"
        )
    number = int(match[1])
    if number > _MOST_BUDGET:
        raise UsageError(f"--budget {text!r}: the maximum is {_MOST_BUDGET:,}{match[2]}")
    if not match[2]:
        return Budget(candidates=number)
    return Budget(seconds=number * {"s": 1.0, "m": 60.0, "h": 3600.0}[match[2]])


def rounds(candidates: int) -> list[tuple[int, int]]:
    """The number of candidates in each round, first looks included, and of samples for each."""
    schedule = [(candidates, _FIRST_SAMPLES)]
    while schedule[-1][0] > _FINALISTS:
        count, samples = schedule[-1]
        schedule.append((max(_FINALISTS, -(-count // _KEPT)), _MORE_SAMPLES * samples))
    return schedule


@dataclass(eq=False)
class Candidate:
    """A candidate, its latest outcome, the last round that it reached, and its comparison with the
    fastest default."""

    case: Case
    outcome: Outcome
    is_default: bool
    round: int = 0
    comparison: Comparison | None = None

    @property
    def median_ns(self) -> float:
        assert self.outcome.median_ns is not None
        return self.outcome.median_ns

    def goes_on(self, outcome: Outcome, number: int) -> None:
        """Take the outcome of a later round, which may not have checked the candidate again."""
        accuracy = outcome.accuracy or self.outcome.accuracy
        self.outcome = msgspec.structs.replace(outcome, accuracy=accuracy)
        self.round = number


class TuningSearch:
    """The search for one kernel on one problem; results so far survive an interruption."""

    def __init__(self, space: Space, budget: Budget) -> None:
        self.space = space
        self.budget = budget
        self.candidates = space.cases[: budget.candidates]
        planned = rounds(len(self.candidates))
        #: The most looks and measurements that it can take.
        self.steps = sum(count for count, _ in planned) + planned[-1][0] + 1
        self.standings: list[Candidate] = []
        self.winner: Candidate | None = None
        self.complete = False
        self._until = math.inf

    def ranking(self) -> list[Candidate]:
        """All that were right and timed: those of the last round first, the fastest first."""
        timed = [standing for standing in self.standings if standing.outcome.median_ns is not None]
        return sorted(timed, key=lambda standing: (-standing.round, standing.median_ns))

    def leader(self) -> Candidate | None:
        """The winner; before there is one, the best so far."""
        return self.winner or next(iter(self.ranking()), None)

    def default(self) -> Candidate | None:
        """The fastest of the defaults."""
        return next((standing for standing in self.ranking() if standing.is_default), None)

    def run(self, worker: Worker, builders: Builders, advance: Advance) -> None:
        """Look at all candidates, continue with fewer and fewer, and compare the last in turns."""
        self._until = time.monotonic() + (self.budget.seconds or math.inf)
        builders.start(worker.device, self.candidates, ("plain",))
        self._look_at_all(worker, advance)
        planned = rounds(len(self.ranking()))
        for number, (count, samples) in enumerate(planned[1:], start=1):
            ranked = self.ranking()
            for standing in ranked[:count]:
                advance(_label(standing.case, ranked[0]))
                outcome = looking.look(worker, standing.case, samples, math.inf, check=False)
                standing.goes_on(outcome, number)
        self._finals(worker, builders, advance, len(planned))
        self.complete = True

    def _look_at_all(self, worker: Worker, advance: Advance) -> None:
        """Check and time every candidate that the budget allows, and all defaults.

        With a budget of time, none of the others takes what is left of it by hanging.
        """
        until = self._until - min((self.budget.seconds or math.inf) / 2, _MOST_FINALS_S)
        best: Candidate | None = None
        longest_s = 0.0
        for number, case in enumerate(self.candidates):
            # Defaults are what all are compared with, so they are not cut short.
            is_default, begun = number < len(self.space.defaults), time.monotonic()
            limit_s, hopeless_ns = None, math.inf
            if not is_default:
                if begun > until:
                    break
                if self.budget.seconds is not None:
                    limit_s = max(_LEAST_LOOK_S, min(_HANGING * longest_s, until - begun))
                hopeless_ns = _HOPELESS * best.median_ns if best is not None else math.inf
            advance(_label(case, best))
            outcome = looking.look(
                worker, case, _FIRST_SAMPLES, hopeless_ns, check=True, limit_s=limit_s
            )
            standing = Candidate(case, outcome, is_default)
            self.standings.append(standing)
            if outcome.median_ns is not None:
                longest_s = max(longest_s, time.monotonic() - begun)
                if best is None or outcome.median_ns < best.median_ns:
                    best = standing

    def _finals(self, worker: Worker, builders: Builders, advance: Advance, last: int) -> None:
        """Measure the finalists and the default as in a run, then compare the best in turns."""
        best = filter(None, [*self.ranking()[:_FINALISTS], self.default()])
        finalists = {id(standing.case): standing for standing in best}
        cases = [standing.case for standing in finalists.values()]
        builders.start(worker.device, cases, worker.options.builds)
        for rounds in in_rounds([TaskGroup((worker.device,), cases)], worker.options)[0].tasks:
            if rounds.outcome is None:
                advance(f"{rounds.case.label}: measuring and checking in full")
            if (which := rounds.next()) is not None:
                visit = rounds.taken(worker.device, worker.measure(rounds.case, which))
                if visit.share == 1.0:
                    finalists[id(rounds.case)].goes_on(visit.outcome, last)
        while self.winner is None and (ranked := [s for s in self.ranking() if s.round == last]):
            self._decide(worker, ranked)

    def _decide(self, worker: Worker, ranked: list[Candidate]) -> None:
        """Compare the best with its runner-up, and then with the default, which it must beat.

        A candidate that turns out to be wrong is dropped, and there is no winner yet.
        """
        best, default = ranked[0], self.default()
        for rival in ranked[1:2]:
            if rival is not default:
                comparison = self._turns(worker, rival, best)
                if comparison is None:
                    return
                best = rival if comparison.verdict == "SLOWER" else best
        if default is not None and default is not best:
            best.comparison = self._turns(worker, default, best)
            if best.comparison is None:
                return
            best = best if best.comparison.verdict == "FASTER" else default
        self.winner = best

    def _turns(self, worker: Worker, first: Candidate, second: Candidate) -> Comparison | None:
        cases, plan = (first.case, second.case), ComparisonPlan()
        left_ns = max(_LEAST_TURNS_S, (self._until - time.monotonic()) / 4) * 1e9
        plan = msgspec.structs.replace(plan, maximum_time_ns=min(left_ns, plan.maximum_time_ns))
        record = comparing.compare((worker, worker), cases, plan, 0)
        if record.comparison is None:
            for standing, outcome in ((first, record.baseline), (second, record.candidate)):
                if outcome.status != "measured":
                    standing.goes_on(outcome, standing.round)
        return record.comparison

    def records(self) -> list[TuningRecord]:
        """The candidates that were right, the winner first, compared with the default."""
        leader, default = self.leader(), self.default()
        return [
            TuningRecord(
                outcome=standing.outcome,
                round=standing.round,
                is_best=standing is leader,
                is_default=standing.is_default,
                complete=self.complete,
                median_ratio=standing.median_ns / default.median_ns if default else None,
                comparison=standing.comparison,
                tried=len(self.standings),
                space=self.space.record,
            )
            for standing in sorted(self.ranking(), key=lambda standing: standing is not leader)
        ]


def _label(case: Case, best: Candidate | None) -> str:
    return case.label + (f"; best so far {best.case.label}" if best else "")


def run(
    searches: list[TuningSearch], devices: tuple[DeviceInfo, ...], deadlines: Deadlines
) -> None:
    """Run the searches, each on any of the devices; they keep their results."""
    with (
        WorkerPool(Options(blocks=False, rounds=None), deadlines, say_printed) as pool,
        progress(sum(search.steps for search in searches)) as display,
    ):

        def run_one(worker: Worker, search: TuningSearch) -> None:
            place = worker.device.place
            search.run(worker, pool.builders, partial(display.begin, place=place))
            display.end(place)

        groups = []
        for search in filter(lambda search: search.candidates, searches):
            problems = [case.problem for case in search.candidates]
            work = sum(map(workloads.work_of, problems))
            groups.append(TaskGroup(devices, [search], work))
        list(pool.distribute(groups, run_one))
