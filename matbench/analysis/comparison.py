"""Compares two record files case by case, and decides whether a CI gate fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from matbench import workloads
from matbench.analysis import statistics
from matbench.model import Problem
from matbench.records.comparison import ComparisonRecord
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome

#: With ten samples, the fewest of a settled case, this interval excludes one at each end.
CONFIDENCE = 0.975
#: How far the SM clocks of two runs may differ, as a share.
CLOCK_TOLERANCE = 0.02

Records = tuple[Sequence[Environment], Sequence[Outcome]]
_Key = tuple[str, tuple[tuple[str, int], ...], Problem]


class Joined(NamedTuple):
    """The cases in both files, those in only one, and what else changed between the runs.

    `differences` are all changes, `incomparable` those that make times incomparable. `broken` are
    cases that were measured before and are now wrong or failed.
    """

    records: list[ComparisonRecord]
    only_old: list[str]
    only_new: list[str]
    differences: list[str]
    incomparable: list[str]
    broken: list[str]


def compare_records(old: Records, new: Records, names: tuple[str, str], threshold: float) -> Joined:
    """Join two files by kernel, parameters and problem; the first is the baseline."""
    before, after = _by_case(old[1]), _by_case(new[1])
    pairs = [(before[key], after[key]) for key in before if key in after]
    incomparable = [*_environment_differences(old[0], new[0]), *_case_differences(pairs)]
    sources = [
        f"the source of {first.case.kernel} differs"
        for first, second in pairs
        if first.case.sha256 != second.case.sha256
    ]
    return Joined(
        records=[
            ComparisonRecord(
                baseline_name=names[0],
                candidate_name=names[1],
                baseline=first,
                candidate=second,
                comparison=statistics.compare_samples(then, now, threshold, CONFIDENCE)
                if (then := first.samples_ns) and (now := second.samples_ns)
                else None,
            )
            for first, second in pairs
        ],
        only_old=[_label(before[key]) for key in before if key not in after],
        only_new=[_label(after[key]) for key in after if key not in before],
        differences=list(dict.fromkeys([*incomparable, *sources])),
        incomparable=list(dict.fromkeys(incomparable)),
        broken=[
            f"{_label(second)} is now {second.status}: {second.reason}"
            for first, second in pairs
            if first.status == "measured" and second.status in ("wrong", "failed")
        ],
    )


def comparable(joined: Joined) -> bool:
    """Whether times may be compared: the runs differ at most in the kernels' sources."""
    return not joined.incomparable


def is_too_slow(record: ComparisonRecord, allowed: float | None) -> bool:
    """Whether the verdict is SLOWER, by more than the allowed share."""
    if allowed is None or record.verdict != "SLOWER" or record.ratio is None:
        return False
    return not record.ratio <= 1 + allowed


def _by_case(outcomes: Iterable[Outcome]) -> dict[_Key, Outcome]:
    return {
        (o.case.kernel, tuple(sorted(o.case.params.items())), o.case.problem): o for o in outcomes
    }


def _label(outcome: Outcome) -> str:
    problem = outcome.case.problem
    usual = problem.inputs == workloads.of(problem).inputs[0]
    return outcome.case.label + ("" if usual else f", {problem.inputs} inputs")


def _environment_differences(old: Sequence[Environment], new: Sequence[Environment]) -> list[str]:
    def values(environments: Sequence[Environment], field: str) -> str:
        found = {str(getattr(d, field)) for e in environments for d in e.devices}
        return ", ".join(sorted(found)) or "unknown"

    return [
        f"{field} differs: was {values(old, field)}, now {values(new, field)}"
        for field in ("name", "driver", "toolkit")
        if values(old, field) != values(new, field)
    ]


def _case_differences(pairs: Sequence[tuple[Outcome, Outcome]]) -> list[str]:
    found = []
    for first, second in pairs:
        if first.mode != second.mode and first.median_ns and second.median_ns:
            found.append(f"timing differs: was {first.mode}, now {second.mode}")
        if first.timing and second.timing and first.timing.verified != second.timing.verified:
            which = "old" if second.timing.verified else "new"
            found.append(f"verification differs: the {which} launches were not verified")
        if first.case.device != second.case.device:
            found.append(f"device differs: was {first.case.device}, now {second.case.device}")
        then, now = (o.blocks.sm_mhz if o.blocks is not None else None for o in (first, second))
        if then and now and not abs(now / then - 1) <= CLOCK_TOLERANCE:
            found.append(
                f"the SM clock of {_label(first)} differs: was {then:,.0f} MHz, now {now:,.0f} MHz"
            )
    return found
