"""Histories of kernels whose versions take given times, on simulated clocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from matbench.analysis.statistics import ComparisonPlan
from matbench.features.history.commits import CommittedVersion
from matbench.features.history.search import HistorySearch
from matbench.model import Kernel, LaunchRules
from matbench.records.comparison import ComparisonRecord
from matbench.worker.comparing import Contender
from support.records import in_turns, outcome

KERNEL = Kernel("mine", LaunchRules(block=(), grid=()))
MARGIN = 0.1


class Simulated:
    """A bench whose versions take these times; 0: one is wrong. A pair differs by a few percent
    whenever it is compared, and one sample in ten is late."""

    def __init__(self, times: Sequence[float], seed: int = 0, doubtful: Sequence[int] = ()) -> None:
        self.times, self.doubtful = times, {str(index) for index in doubtful}
        self.generator = np.random.default_rng(seed)
        self.pairs: list[tuple[str, str]] = []
        self.checked: list[str] = []

    def fastest(self, cases: Any, *, is_checked: bool) -> Contender:
        [number] = cases
        self.checked.append(number)
        right = self.times[int(number)] > 0
        known = outcome(status="measured") if right else outcome(status="wrong", reason="w")
        return Contender("", number, known)

    def compare(self, old: Any, new: Any, *, anew: bool = False) -> ComparisonRecord:
        self.pairs.append((old.case, new.case))
        assert anew or int(old.case) < int(new.case)  # to confirm
        if {old.case, new.case} & self.doubtful:
            bad = outcome(status="wrong", reason="in turns")
            sides = [bad if s.case in self.doubtful else outcome() for s in (old, new)]
            return in_turns(None, *sides)
        plan = ComparisonPlan(threshold=MARGIN)
        late = np.where(self.generator.random((2, plan.looks[-1])) < 0.1, 1.5, 1)
        old_ns, new_ns = self.generator.normal(1, 0.02, late.shape) * late
        old_ns *= self.times[int(old.case)]
        new_ns *= self.times[int(new.case)] * self.generator.normal(1, 0.01)
        decided = (plan.decide(old_ns[:many], new_ns[:many], 0.0) for many in plan.looks)
        return in_turns(next(filter(None, decided)))


def searched(bench: Simulated, *, bisect: bool) -> tuple[list[int], HistorySearch]:
    """The versions that are blamed, and the search."""
    many = len(bench.times)
    versions = [
        CommittedVersion(str(i), "2026-01-01", f"change {i}", replace(KERNEL, name=f"{i}"), f"{i}")
        for i in range(many)
    ]
    search = HistorySearch(versions, MARGIN)
    known: Any = bench
    search.run(known, lambda kernel: [kernel.name], lambda _: None, bisect=bisect)  # type: ignore[list-item]
    return [int(step.commit) for step in search.steps if search.is_blamed(step)], search
