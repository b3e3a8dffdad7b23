"""The kernels of a size take turns, in rounds: what drifts meanwhile affects all of them alike.

In the first round each is checked and timed; later ones are shorter. All but the first and the last
are in random order: the last decides the order of a record. Sustained launches come after all
rounds, because they heat the device.
Kernels whose inputs differ are visited one group after the other, because inputs take long to make.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from matbench.analysis import statistics
from matbench.analysis.ranking import round_medians_ns
from matbench.bench.loop import LEAST_SAMPLES, unrest
from matbench.bench.options import FIRST, Options, Round
from matbench.model import Case, DeviceInfo
from matbench.records.outcome import Outcome, Timing
from matbench.worker.scheduler import TaskGroup


class Visit(NamedTuple):
    """The outcome of a case so far, where, the share of its rounds that are done, and that of this
    visit."""

    place: str
    outcome: Outcome
    share: float
    own_share: float


@dataclass(eq=False)
class Rounds:
    """The rounds of one case: its outcome so far, the share that is done, and the visits left.

    The share is 1 if no more will come, whatever the reason. `is_sustained`: the last visit is not
    a round, but for sustained launches. `options` are those for the device's kind.
    """

    case: Case
    options: Options
    is_sustained: bool = False
    outcome: Outcome | None = None
    share: float = 0.0

    def __post_init__(self) -> None:
        self.rounds = self.options.rounds or 1
        self.visits = self.rounds + self.is_sustained

    def next(self) -> Round | None:
        """The round to take; None if there is nothing left to do, or not yet."""
        if self.share == 1.0:
            return None
        has_all = self.outcome is not None and self._has_all(self.outcome.timing)
        if has_all and self.visits > 1:
            self.visits -= 1  # a slow case has fewer rounds
            return None
        if self.outcome is None:
            return FIRST
        number = len(self.outcome.timing.rounds if self.outcome.timing else ()) + 1 + has_all
        both = self.outcome.cold, self.outcome.hot
        cold_ns, hot_ns = (timing.samples_ns if timing is not None else () for timing in both)
        return Round(number, cold_ns, hot_ns, has_all)

    def taken(self, device: DeviceInfo, found: Outcome) -> Visit:
        """The visit that found this in the next round."""
        share_before, before, self.outcome = self.share, self.outcome, found
        if found.status == "measured" and before is not None and found.sustained is not None:
            self.outcome = msgspec.structs.replace(before, sustained=found.sustained)
        elif found.status == "measured" and found.timing is not None and found.timing.rounds:
            assert self.options.uncertainty is not None
            cold = joined(before.cold if before else None, found.cold, self.options.uncertainty)
            hot = joined(before.hot if before else None, found.hot, self.options.uncertainty)
            self.outcome = msgspec.structs.replace(found, cold=cold, hot=hot)
            if before is not None:
                self.outcome = msgspec.structs.replace(
                    self.outcome,
                    accuracy=found.accuracy or before.accuracy,
                    build=before.build,
                    blocks=before.blocks,
                )
        self.visits -= 1
        timing = self.outcome.timing if self.outcome.status == "measured" else None
        self.share = 1.0  # unless it has rounds left
        if timing is not None and timing.median_ns is not None and self.visits > 0:
            taken = rounds = len(timing.rounds) or 1
            if not self._has_all(timing):
                rounds = statistics.rounds_of(timing.median_ns, self.rounds)
            self.share = taken / (rounds + self.is_sustained)
        return Visit(device.where, self.outcome, self.share, self.share - share_before)

    def ended(self, device: DeviceInfo) -> Visit | None:
        """The last visit if the case was begun on another device, which is lost; else None."""
        last, before = self.outcome, self.share
        if last is None or before == 1.0 or last.case.device_id == device.identity:
            return None
        self.share, self.outcome = 1.0, interrupted(last)
        return Visit(device.where, self.outcome, 1.0, 1.0 - before)

    def _has_all(self, timing: Timing | None) -> bool:
        """Whether it gets no more rounds; a single one is not recorded as a round."""
        if timing is None or timing.median_ns is None:
            return False
        taken = len(timing.rounds) or self.rounds
        return taken >= statistics.rounds_of(timing.median_ns, self.rounds)


def joined(so_far: Timing | None, last: Timing | None, uncertainty: float) -> Timing | None:
    """The samples of all rounds so far and of the last one. The interval covers that of all, and
    the medians of rounds that have several: samples of one do not show how much rounds differ."""
    if last is None:
        return None
    if so_far is not None:
        conditions = (*so_far.conditions, *last.conditions)
        last = msgspec.structs.replace(
            last,
            samples_ns=(*so_far.samples_ns, *last.samples_ns),
            rounds=(*so_far.rounds, *last.rounds),
            median_ns=float(np.median((*so_far.samples_ns, *last.samples_ns))),
            warmups=(so_far.warmups or 0) + (last.warmups or 0),
            conditions=conditions,
            attempts=max(so_far.attempts or 1, last.attempts or 1),
            notes=unrest(conditions[1:]),
        )
    pairs = zip(round_medians_ns(last), last.rounds, strict=True)
    medians_ns = [median for median, count in pairs if count >= LEAST_SAMPLES]
    low, high = statistics.median_interval(last.samples_ns)
    interval_ns = min([low, *medians_ns]), max([high, *medians_ns])
    assert last.median_ns is not None
    allowed_ns = uncertainty * last.median_ns
    stopped = last.stopped
    if (high - low) / 2 > allowed_ns:
        stopped = statistics.TIME_IS_UP
    elif stopped == statistics.SETTLED and interval_ns[1] - interval_ns[0] > 2 * allowed_ns:
        stopped = statistics.ROUNDS_DIFFER
    settled = stopped == statistics.SETTLED
    return msgspec.structs.replace(last, interval_ns=interval_ns, stopped=stopped, settled=settled)


def interrupted(outcome: Outcome) -> Outcome:
    """An outcome with rounds left, which will not come."""
    cold, hot = (
        timing and msgspec.structs.replace(timing, settled=False, stopped="interrupted")
        for timing in (outcome.cold, outcome.hot)
    )
    return msgspec.structs.replace(outcome, interrupted=True, cold=cold, hot=hot)


def in_rounds(groups: Iterable[TaskGroup[Case]], options: Options) -> list[TaskGroup[Rounds]]:
    """The visits of each group: its cases in order, in random orders, and in order again."""
    made = []
    for group in groups:
        own = options.on(group.devices[0].kind)
        lasting, rounds = own.sustained_s is not None, own.rounds or 1
        alike: dict[object, list[Rounds]] = {}
        for case in group.tasks:
            one = Rounds(case, own, is_sustained=lasting and case.can_be_sustained)
            alike.setdefault((case.problem, case.kernel.contract), []).append(one)
        visits: list[Rounds] = []
        for together in alike.values():
            visits += together
            for _ in range(rounds - 2):
                visits += random.SystemRandom().sample(together, len(together))
            visits += together * ((rounds > 1) + lasting)
        made.append(TaskGroup(group.devices, visits, group.cost))
    return made
