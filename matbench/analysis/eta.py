"""How long the cases of a sweep will take, from how long similar ones took."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matbench import workloads
from matbench.records.outcome import CaseRecord


class Kind(NamedTuple):
    """What the duration of a case depends on; `work` in FLOP or bytes."""

    workload: str
    work: int
    device: str
    kernel: str

    @classmethod
    def from_case(cls, case: CaseRecord) -> Kind:
        work = workloads.workload_of(case.problem).work(case.problem)
        return cls(case.problem.workload, work, f"{case.backend} {case.device}", case.kernel)

    @property
    def circles(self) -> tuple[tuple[object, ...], ...]:
        """Sets of similar cases, the most similar first: how much longer more work takes is not
        known."""
        return self, self[:3], self[:2]


class Estimate:
    """Durations of finished cases, and what they tell about others."""

    def __init__(self) -> None:
        self._taken_s: dict[tuple[object, ...], list[float]] = {}

    def add(self, kind: Kind, taken_s: float) -> None:
        """A case has taken so long, in seconds."""
        for circle in kind.circles:
            self._taken_s.setdefault(circle, []).append(taken_s)

    def case_s(self, kind: Kind) -> float | None:
        """The expected duration of a case, in seconds: that of the most similar ones, if any.

        The lower median: the first case of a size is slower, because it prepares the inputs.
        """
        known = (self._taken_s[circle] for circle in kind.circles if circle in self._taken_s)
        return next(map(statistics.median_low, known), None)

    def left_s(
        self, left: Mapping[Kind, int], now: Sequence[tuple[Kind, float]] = (), devices: int = 1
    ) -> float | None:
        """How many seconds the cases left will take; None if one of them may take any time.

        `now`: the kinds of the cases that were begun, some of those, and the seconds that each has
        already taken. So many `devices` work at the same time.
        """
        total_s = None
        for kind, many in left.items():
            if not many:
                continue
            case_s = self.case_s(kind)
            if case_s is None:
                return None
            spent_s = sum(min(case_s, spent_s) for current, spent_s in now if current == kind)
            total_s = (total_s or 0.0) + many * case_s - spent_s
        return total_s / max(1, devices) if total_s is not None else None
