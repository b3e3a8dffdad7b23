"""How long the cases of a sweep will take, from how long similar ones took."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matbench import workloads
from matbench.records.outcome import CaseRecord

#: The durations of finished cases, in seconds, by their amount of work.
_Durations = dict[int, list[float]]


class Kind(NamedTuple):
    """What the duration of a case depends on; `work` in FLOP or bytes."""

    workload: str
    device: str
    kernel: str
    work: int

    @classmethod
    def of(cls, case: CaseRecord) -> Kind:
        work = workloads.of(case.problem).work(case.problem)
        return cls(case.problem.workload, f"{case.backend} {case.device}", case.kernel, work)

    @property
    def circles(self) -> tuple[tuple[str, ...], ...]:
        """Sets of similar cases, the most similar first."""
        return self[:3], self[:2], self[:1]


class Estimate:
    """Durations of finished cases, and what they tell about others."""

    def __init__(self) -> None:
        self._taken: dict[tuple[str, ...], _Durations] = {}
        self._expected: dict[Kind, float | None] = {}

    def add(self, kind: Kind, taken_s: float) -> None:
        """A case has taken so long, in seconds."""
        for circle in kind.circles:
            self._taken.setdefault(circle, {}).setdefault(kind.work, []).append(taken_s)
        self._expected.clear()

    def case_s(self, kind: Kind) -> float | None:
        """The expected duration of a case, in seconds.

        It is that of the most similar cases that are as large, or smaller and larger. None without
        these: how much longer than a smaller case it will take is not known.
        """
        if kind not in self._expected:
            known = (_at(self._taken.get(circle, {}), kind.work) for circle in kind.circles)
            self._expected[kind] = next((s for s in known if s is not None), None)
        return self._expected[kind]

    def left_s(
        self, left: Mapping[Kind, int], now: Sequence[tuple[Kind, float]] = ()
    ) -> float | None:
        """How many seconds the cases left will take; None if one of them may take any time.

        `now`: the kinds of the current cases, some of those, which are measured at the same time,
        and the seconds that each has already taken.
        """
        total_s = None
        for kind, many in left.items():
            if not many:
                continue
            each_s = self.case_s(kind)
            if each_s is None:
                return None
            spent_s = sum(min(each_s, spent_s) for current, spent_s in now if current == kind)
            total_s = (total_s or 0.0) + many * each_s - spent_s
        return total_s / max(1, len(now)) if total_s is not None else None


def _at(taken: _Durations, work: int) -> float | None:
    """The duration at this much work, interpolated if need be; None beyond what is known.

    The lower median: the first case of a size is slower, because it prepares the inputs.
    """
    if work in taken:
        return statistics.median_low(taken[work])
    less = max((known for known in taken if known < work), default=None)
    more = min((known for known in taken if known > work), default=None)
    if less is None or more is None:
        return None
    low_s, high_s = (max(statistics.median_low(taken[known]), 1e-9) for known in (less, more))
    share = math.log(work / less) / math.log(more / less) if less > 0 else 1.0
    return float(low_s * (high_s / low_s) ** share)
