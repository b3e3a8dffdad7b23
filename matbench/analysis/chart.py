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


class Line(NamedTuple):
    """One kernel at its fastest parameters: sizes, and its speed and largest error at each.

    Speed is in 10⁹ of the workload's `rate`. `has_claims`: some of its claims weaken a check.
    """

    label: str
    is_baseline: bool
    has_claims: bool
    n: tuple[int, ...]
    giga_per_s: tuple[float, ...]
    error: tuple[float | None, ...]


class Chart(NamedTuple):
    """Lines, the fastest at its largest size first; `shared` are the conditions of all of them.

    `left_out` counts cases whose size is not a single n, such as 8192x64x8192.
    """

    workload: Workload
    lines: list[Line]
    shared: list[str]
    left_out: int

    @property
    def sizes(self) -> list[int]:
        return sorted({n for line in self.lines for n in line.n})

    @property
    def errors(self) -> list[float | None]:
        return [error for line in self.lines for error in line.error]


def of(outcomes: Iterable[Outcome]) -> Chart:
    """The chart of the measured cases; `UsageError` if there are none, or several workloads.

    Each device, kind of samples and kind of inputs has its own lines.
    """
    outcomes = list(outcomes)
    found = list(dict.fromkeys(o.case.problem.workload for o in outcomes))
    if len(found) > 1:
        raise UsageError(f"a chart shows one workload, not {' and '.join(found)}")
    timed = [o for o in outcomes if o.status == "measured" and o.median_ns]
    placed = [o for o in timed if _has_n(o.case.problem)]
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
    workload = workloads.get(found[0])
    lines = [_line(label, workload, at) for label, at in best.items()]
    lines.sort(key=lambda line: (-line.n[-1], -line.giga_per_s[-1], line.label))
    _, *others = circumstances
    shared = [min(values) for values in others if len(values) == 1]
    return Chart(workload, lines, shared, len(timed) - len(placed))


def _line(label: str, workload: Workload, at: dict[int, Outcome]) -> Line:
    ordered = [at[n] for n in sorted(at)]
    return Line(
        label=label,
        is_baseline=ordered[0].case.group == "baseline",
        has_claims=any(weakening(o.case.claims) for o in ordered),
        n=tuple(sorted(at)),
        giga_per_s=tuple(workload.work(o.case.problem) / (o.median_ns or 1) for o in ordered),
        error=tuple(o.max_rel_err for o in ordered),
    )


def _has_n(problem: Problem) -> bool:
    """Whether the size is a single number."""
    return problem.workload != workloads.DEFAULT or problem.M == problem.N == problem.K


def _circumstances(outcome: Outcome) -> tuple[str, str, str]:
    """The device, the kind of samples and the inputs."""
    case = outcome.case
    return case.device, f"{outcome.mode} samples", f"{case.problem.inputs} inputs"
