"""The passes of a loop, and when so many were alike that further ones can be skipped.

A round is one pass, or as many as it takes until they repeat, as with the stages of a ring. Rounds
are alike if their passes take the same path and add the same to every register on which branches
depend.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from matbench.features.explain.sass.integers import MASK, Value

#: A loop goes on like its last two rounds, it is assumed and tried. A round has so many passes at
#: most.
LONGEST_ROUND = 32
#: Rounds to look ahead at first. If no more than `_FEW` are alike and the loop goes on, rounds are
#: longer: all stages of a ring but the last may be alike.
_FIRST_JUMP, _FEW = 4, 2 * LONGEST_ROUND
#: The round after some that were skipped: like those before or not, or the loop was left.
Ahead = Literal["alike", "unlike", "left"]


class Moment(NamedTuple):
    """All registers when a loop's header is visited, and the visits of its blocks so far."""

    values: dict[str, Value]
    visits: dict[int, int]


#: The path of a pass, and what is added to each register on which branches depend.
Pass = tuple[object, ...]


class Passes:
    """How a loop went from one visit of its header to the next, to tell when nothing else changes.

    `round` is the number of passes in a round; 0 if none is known. `path` and `changes` are what a
    round adds to visits and registers. `is_linear`: whether the changes decide the branches in
    between. `is_over`: no more rounds like these follow.
    """

    def __init__(self, live: frozenset[str]) -> None:
        self.live = live
        self.moments: deque[Moment] = deque(maxlen=2 * LONGEST_ROUND + 1)
        self.passes: deque[Pass] = deque(maxlen=2 * LONGEST_ROUND)
        self.round = 0
        self.shortest_round = 1
        self.without_round = 0  # passes since a round was lengthened or found
        self.is_over = False
        self.expected = 0  # rounds that were skipped the last time
        self.is_linear: bool | None = None
        self.arrivals = 0  # at the header, since the loop was entered
        self.path: dict[int, int] = {}
        self.changes: dict[str, Value] = {}

    @property
    def varying(self) -> frozenset[str]:
        """The registers on which branches depend that a round changes."""
        changes = {name: self.changes.get(name) for name in self.live}
        return frozenset(
            name for name, change in changes.items() if change is not None and change.any()
        )

    def arrive(self, now: Moment) -> None:
        """Note a visit of the header, and the pass that it ends."""
        self.arrivals += 1
        if self.moments:
            self.passes.append(self.pass_of(self.moments[-1], now))
        self.moments.append(now)

    def pass_of(self, before: Moment, now: Moment) -> Pass:
        return (
            tuple((start, count - before.visits[start]) for start, count in now.visits.items()),
            tuple(_noted(before.values.get(name), now.values.get(name)) for name in self.live),
        )

    def begin(self, now: Moment) -> None:
        """After a jump: what follows is compared with the passes so far, not with the moments."""
        self.moments.clear()
        self.moments.append(now)

    def find_round(self) -> None:
        """See whether the last passes repeat; then what a round of them changes is known."""
        passes = list(self.passes)
        for length in range(self.shortest_round, len(passes) // 2 + 1):
            last = passes[-2 * length :]
            if last[length:] == last[:length]:
                if len(self.moments) > 2 * length:  # none was skipped
                    self._measure(length)
                if self.round == length:
                    self.without_round = 0
                    return
        self._forget()
        self.without_round += 1
        if self.without_round > 2 * LONGEST_ROUND:
            self.shortest_round = 1  # what seemed to need longer rounds has passed

    def _measure(self, length: int) -> None:
        """What a round of that many passes changes."""
        self.round = length
        before, now = self.moments[-1 - length], self.moments[-1]
        self.path = {start: count - before.visits[start] for start, count in now.visits.items()}
        self.changes = _changes(before, now)

    def _forget(self) -> None:
        self.round, self.is_over, self.is_linear = 0, False, None

    def lengthen(self) -> None:
        """Look for longer rounds only."""
        self.shortest_round = min(self.round + 1, LONGEST_ROUND)
        self.without_round = 0

    def confirm(self, before: Moment, now: Moment) -> None:
        """Changes that a later round does not make are not known; branches do not need them."""
        changes = _changes(before, now)
        for name in self.changes.keys() - self.live:
            if not _equal(self.changes[name], changes.get(name)):
                self.changes[name] = None

    def rounds_ahead(self, look: Callable[[int], Ahead]) -> int:
        """How many rounds like the last follow: as many as before, or found by bisection."""
        if self.expected and look(self.expected) == "alike" != look(self.expected + 1):
            self.is_over = True
            return self.expected
        rounds, jump = 0, _FIRST_JUMP
        while (ahead := look(rounds + jump)) == "alike":
            rounds, jump = rounds + jump, 2 * jump
        if ahead == "unlike" and rounds + jump <= _FEW:  # perhaps the stages of a ring differ
            self.lengthen()
            self._forget()
            return rounds
        while jump := jump // 2:
            if look(rounds + jump) == "alike":
                rounds += jump
        self.is_over, self.expected = True, rounds
        return rounds


def _changes(before: Moment, now: Moment) -> dict[str, Value]:
    return {name: _change(before.values.get(name), value) for name, value in now.values.items()}


def _noted(before: Value, now: Value) -> bytes | None:
    change = _change(before, now)
    return None if change is None else change.tobytes()


def _change(before: Value, now: Value) -> Value:
    """What is added to a register; for a predicate, whether it changes."""
    if before is None or now is None:
        return None
    return before ^ now if now.dtype == bool else now - before & MASK


def _equal(change: Value, other: Value) -> bool:
    if change is None or other is None:
        return change is other
    return np.array_equal(change, other)
