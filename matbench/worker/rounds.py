"""The kernels of a size take turns, in rounds: what drifts meanwhile affects all of them alike.

In the first round each is checked and timed; later ones are shorter. All but the first and the last
are in random order: the last decides the order of a record. Sustained launches come after all
rounds, because they heat the device.
Kernels whose inputs differ are visited one group after the other, because inputs take long to make.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from matbench.analysis import statistics
from matbench.bench.options import Options
from matbench.bench.sampling import has_all_rounds
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
    a round, but for sustained launches.
    """

    case: Case
    visits: int
    outcome: Outcome | None = None
    share: float = 0.0
    is_sustained: bool = False

    def visit(
        self, device: DeviceInfo, measure: Callable[[Outcome | None], Outcome]
    ) -> Visit | None:
        """Take one more round, by `measure`; None if there is nothing left to do."""
        if self.share == 1.0:
            return None
        timing = self.outcome.timing if self.outcome is not None else None
        if timing is not None and self.visits > 1 and has_all_rounds(timing, self._rounds(timing)):
            self.visits -= 1  # a slow case has fewer rounds
            return None
        before = self.share
        if self.outcome is not None and self.outcome.case.device_id != device.identity:
            self.outcome = interrupted(self.outcome)  # its own device is lost
            self.share = 1.0
        else:
            self.outcome = measure(self.outcome)
            self.visits -= 1
            self.share = self._share(self.outcome)
        return Visit(device.where, self.outcome, self.share, self.share - before)

    def _share(self, outcome: Outcome) -> float:
        """How many of its rounds it has; all if it can have no more."""
        timing = outcome.timing if outcome.status == "measured" else None
        if timing is None or timing.median_ns is None or self.visits <= 0:
            return 1.0
        taken = rounds = len(timing.rounds) or 1
        if not has_all_rounds(timing, self._rounds(timing)):
            rounds = statistics.rounds_of(timing.median_ns, self._rounds(timing))
        return taken / (rounds + self.is_sustained)

    def _rounds(self, timing: Timing) -> int:
        """How many rounds there are, unless launches are slow."""
        return len(timing.rounds) + self.visits - self.is_sustained


def interrupted(outcome: Outcome) -> Outcome:
    """An outcome with rounds left, which will not come."""

    def ended(timing: Timing | None) -> Timing | None:
        if timing is None:
            return None
        return msgspec.structs.replace(timing, settled=False, stopped="interrupted")

    return msgspec.structs.replace(
        outcome, interrupted=True, cold=ended(outcome.cold), hot=ended(outcome.hot)
    )


def in_rounds(groups: Iterable[TaskGroup[Case]], options: Options) -> list[TaskGroup[Rounds]]:
    """The visits of each group: its cases in order, in random orders, and in order again."""

    def visits(group: TaskGroup[Case]) -> Iterator[Rounds]:
        rounds = options.on(group.devices[0].kind).rounds or 1
        return _visits(group.tasks, rounds, is_sustained=options.sustained_s is not None)

    return [TaskGroup(group.devices, list(visits(group)), group.cost) for group in groups]


def _visits(cases: Sequence[Case], rounds: int, *, is_sustained: bool) -> Iterator[Rounds]:
    alike: dict[object, list[Rounds]] = {}
    for case in cases:
        follows = is_sustained and case.can_be_sustained
        own = Rounds(case, rounds + follows, is_sustained=follows)
        alike.setdefault((case.problem, case.kernel.contract), []).append(own)
    for together in alike.values():
        yield from together
        for _ in range(rounds - 2):
            yield from random.SystemRandom().sample(together, len(together))
        if rounds > 1:
            yield from together
        if is_sustained:
            yield from together
