"""The passes of a loop, and when so many were alike that further ones can be skipped.

A round is one pass, or as many as it takes until they repeat, as with the stages of a ring. Rounds
are alike if their passes take the same path and add the same to every register on which branches
depend.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from matbench.analysis.sass.integers import MASK, Value

#: A loop goes on like its last two rounds, it is assumed and tried. A round has so many passes at
#: most.
LONGEST_ROUND = 32
#: Rounds skipped at a time at first. If no more than `_SHORT_JUMP` are like the first, rounds are
#: longer.
_FIRST_JUMP, _SHORT_JUMP = 4, 32


class Moment(NamedTuple):
    """All registers when a loop's header is visited, and the visits of its blocks so far."""

    values: dict[str, Value]
    visits: dict[int, int]


#: The path of a pass, and what is added to each register on which branches depend.
Pass = tuple[object, ...]


class Passes:
    """How a loop went from one visit of its header to the next, to tell when nothing else changes.

    `round` is the number of passes in a round; 0 if none is known. `path` and `changes` are what a
    round adds to visits and registers. `jump` rounds are skipped at a time, which `grows` until one
    turns out to be too far. `is_linear`: whether the changes decide the branches in between.
    """

    def __init__(self, live: frozenset[str]) -> None:
        self.live = live
        self.moments: deque[Moment] = deque(maxlen=2 * LONGEST_ROUND + 1)
        self.passes: deque[Pass] = deque(maxlen=2 * LONGEST_ROUND)
        self.round = 0
        self.shortest_round = 1
        self.jump = _FIRST_JUMP
        self.grows = True
        self.skipped = 0  # rounds, since they were found to be alike
        self.expected = 0  # of which so many could be skipped the last time
        self.is_linear: bool | None = None
        self.arrivals = 0  # at the header, since the loop was entered
        self.path: dict[int, int] = {}
        self.changes: dict[str, Value] = {}

    def arrive(self, now: Moment) -> None:
        """Note a visit of the header, and the pass that it ends."""
        self.arrivals += 1
        if self.moments:
            before = self.moments[-1]
            self.passes.append((
                tuple((start, count - before.visits[start]) for start, count in now.visits.items()),
                tuple(_noted(before.values.get(name), now.values.get(name)) for name in self.live),
            ))  # fmt: skip
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
                    return
        self._forget()

    def lengthen(self) -> None:
        """Look for longer rounds only."""
        self.shortest_round = min(self.round + 1, LONGEST_ROUND)

    def _forget(self) -> None:
        self.round = self.skipped = 0
        self.jump, self.grows, self.is_linear = max(_FIRST_JUMP, self.expected), True, None

    def jumped(self) -> None:
        """The last jump was right: the round since then was like the others."""
        now = _changes(self.moments[0], self.moments[-1])
        for name in self.changes.keys() - self.live:
            if not _equal(self.changes[name], now.get(name)):
                self.changes[name] = None  # of no use to any branch
        self.skipped += self.jump
        if self.jump == self.skipped == self.expected:
            self.jump = 1  # see whether there are any more
        else:
            self.jump = self.jump * 2 if self.grows else self.jump // 2

    def went_too_far(self, *, within: bool) -> bool:
        """The last jump was not right; false if a longer round is to be looked for.

        `within`: although the loop goes on, perhaps because the stages of a ring differ.
        """
        if within and self.grows and self.skipped + self.jump <= _SHORT_JUMP:
            self.lengthen()
            self._forget()
            return False
        self.jump, self.grows = self.jump // 2, False
        if not self.jump:
            self.expected = self.skipped
        return True

    def _measure(self, length: int) -> None:
        """What a round of that many passes changes."""
        self.round = length
        before, now = self.moments[-1 - length], self.moments[-1]
        self.path = {start: count - before.visits[start] for start, count in now.visits.items()}
        self.changes = _changes(before, now)

    def is_as_before(self) -> bool:
        """Whether the last pass is like that of a round ago."""
        return self.passes[-1] == self.passes[-1 - self.round]


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


def _equal(one: Value, other: Value) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
