"""The contents of a chart of speed and error over n, and the cases that do not fit in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from matbench import workloads
from matbench.analysis.claims import weakening
from matbench.errors import UsageError
from matbench.model import Problem
from matbench.records.outcome import Outcome
from matbench.workloads import Workload

#: A size this close to one with more factors of 2 is awkward: 1000 beside 1024.
_NEAR = 0.1


class At(NamedTuple):
    """A kernel at one size: work per second with its interval, and the largest error.

    An awkward size lies `beside` one that the kernel was measured at too.
    """

    n: int
    work_per_s: float
    low: float
    high: float
    error: float | None
    beside: int | None = None


class Line(NamedTuple):
    """One kernel at its fastest parameters for each size, the smallest first.

    `has_claims`: some of its claims weaken a check.
    """

    label: str
    precision: str
    is_baseline: bool
    has_claims: bool
    points: tuple[At, ...]

    @property
    def regular(self) -> list[At]:
        """What a line through the sizes shows: without awkward sizes, which would make cliffs."""
        return [point for point in self.points if point.beside is None]


class SpeedAndError(NamedTuple):
    """Lines, the fastest at its largest size first; `shared` are the conditions of all of them.

    `left_out` counts cases whose size is not a single n, such as 8192x64x8192.
    """

    workload: Workload
    lines: list[Line]
    shared: list[str]
    left_out: int

    @property
    def sizes(self) -> list[int]:
        return sorted({point.n for line in self.lines for point in line.points})

    @property
    def errors(self) -> list[float | None]:
        return [point.error for line in self.lines for point in line.points]


def make_chart(outcomes: Iterable[Outcome]) -> SpeedAndError:
    """The chart of the measured cases; `UsageError` if there are none, or several workloads.

    Each device, kind of samples and kind of inputs has its own lines.
    """
    outcomes = list(outcomes)
    names = list(dict.fromkeys(o.case.problem.workload for o in outcomes))
    if len(names) > 1:
        raise UsageError(f"a chart shows one workload, not {' and '.join(names)}")
    timed = [o for o in outcomes if o.status == "measured" and o.median_ns]
    placed = [o for o in timed if single_size(o.case.problem) is not None]
    if not placed:
        raise UsageError("nothing to draw: no measured case has a single size n")
    circumstances = [set(values) for values in zip(*map(_circumstances, placed), strict=True)]
    best: dict[str, dict[int, Outcome]] = {}
    for outcome in placed:
        pairs = zip(_circumstances(outcome), circumstances, strict=True)
        apart = (word for word, values in pairs if len(values) > 1)
        at = best.setdefault(" · ".join([outcome.case.kernel, *apart]), {})
        known = at.get(outcome.case.problem.N)
        if known is None or (outcome.median_ns or 0) < (known.median_ns or 0):
            at[outcome.case.problem.N] = outcome
    workload = workloads.get(names[0])
    lines = [_line(label, workload, at, awkward=True) for label, at in best.items()]
    if len({point.n for line in lines for point in line.regular}) < 2:  # nothing to be beside
        lines = [_line(label, workload, at, awkward=False) for label, at in best.items()]
    lines.sort(key=lambda line: (-line.points[-1].n, -line.points[-1].work_per_s, line.label))
    _, *others = circumstances
    shared = [min(values) for values in others if len(values) == 1]
    return SpeedAndError(workload, lines, shared, len(timed) - len(placed))


def single_size(problem: Problem) -> int | None:
    """The size, where it is a single number."""
    is_one = problem.workload != workloads.DEFAULT or problem.M == problem.N == problem.K
    return problem.N if is_one else None


def beside(n: int, others: Iterable[int]) -> int | None:
    """The nearest size that has more factors of 2, if one is near."""
    near = [m for m in others if m & -m > n & -n and abs(m - n) <= _NEAR * m]
    return min(near, key=lambda m: abs(m - n), default=None)


def _line(label: str, workload: Workload, at: dict[int, Outcome], *, awkward: bool) -> Line:
    first = next(iter(at.values())).case
    return Line(
        label=label,
        precision=first.claims.precision,
        is_baseline=first.group == "baseline",
        has_claims=any(weakening(o.case.claims) for o in at.values()),
        points=tuple(
            _at(n, at[n], workload, beside(n, at) if awkward else None) for n in sorted(at)
        ),
    )


def _at(n: int, outcome: Outcome, workload: Workload, neighbour: int | None) -> At:
    work, median = workload.work(outcome.case.problem), outcome.median_ns or 1
    interval = outcome.timing.interval_ns if outcome.timing is not None else None
    shortest, longest = interval or (median, median)
    return At(
        n=n,
        work_per_s=1e9 * work / median,
        low=1e9 * work / (longest or median),
        high=1e9 * work / (shortest or median),
        error=outcome.max_rel_err,
        beside=neighbour,
    )


def _circumstances(outcome: Outcome) -> tuple[str, str, str]:
    """The device, the kind of samples and the inputs."""
    case = outcome.case
    return case.device, f"{outcome.mode} samples", f"{case.problem.inputs} inputs"
