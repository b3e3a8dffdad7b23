"""Compares two record files case by case, and decides whether a CI gate fails."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from matbench import workloads
from matbench.analysis import gathering
from matbench.analysis.ranking import others_share, sm_mhz
from matbench.features.gate import runs
from matbench.model import Problem
from matbench.records.comparison import ComparisonRecord
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome

CONFIDENCE = 0.99
#: How far the clocks of two runs may differ, as a share, and the load of other programs, as a
#: difference of shares.
CLOCK_TOLERANCE = 0.02
LOAD_TOLERANCE = 0.15

Records = tuple[Sequence[Environment], Sequence[Outcome]]
#: Of a case on any device, with any source: its kernel, parameters and problem.
_Key = tuple[str, frozenset[tuple[str, int]], Problem]
#: The repetitions of one case.
_Set = Sequence[Outcome]


class JoinedRuns(NamedTuple):
    """The cases in both files, those in only one, and what else changed between the runs.

    `differences` are all changes of environments and sources; `incomparable` are those that make
    every case UNDECIDED. `broken` are cases that were measured before and are now wrong or failed.
    """

    records: list[ComparisonRecord]
    only_old: list[str]
    only_new: list[str]
    differences: list[str]
    incomparable: list[str]
    broken: list[str]


def compare_records(
    old: Records, new: Records, names: tuple[str, str], threshold: float
) -> JoinedRuns:
    """Join two files by kernel, parameters and problem; the first is the baseline.

    A case whose environment differs is UNDECIDED.
    """
    before, after = _by_case(old[1]), _by_case(new[1])
    everywhere = []
    for field in ("driver", "toolkit"):
        then, now = (
            ", ".join(sorted({getattr(device, field) for e in side[0] for device in e.devices}))
            for side in (old, new)
        )
        if then != now:
            everywhere.append(f"{field} differs: was {then or 'unknown'}, now {now or 'unknown'}")
    records, case_differences, sources = [], [], []
    for key in (key for key in before if key in after):
        pair = before[key], after[key]
        first, second = map(gathering.merge, pair)
        differences = _case_differences(first, second, *pair)
        doubts = list(dict.fromkeys([*everywhere, *differences]))
        record = ComparisonRecord(
            baseline_name=names[0],
            candidate_name=names[1],
            baseline=first,
            candidate=second,
            comparison=None,
        )
        records.append(_compared(record, pair, threshold, doubts))
        case_differences.append(differences)
        if first.case.sha256 != second.case.sha256:
            sources.append(f"the source of {first.case.kernel} differs")
    every = list(chain.from_iterable(case_differences))
    in_every_case = every if all(case_differences) else []
    return JoinedRuns(
        records=records,
        only_old=[_label(before[key][-1]) for key in before if key not in after],
        only_new=[_label(after[key][-1]) for key in after if key not in before],
        differences=list(dict.fromkeys([*everywhere, *every, *sources])),
        incomparable=list(dict.fromkeys([*everywhere, *in_every_case])),
        broken=[
            f"{_label(record.candidate)} is now {record.candidate.status}: "
            f"{record.candidate.reason}"
            for record in records
            if record.baseline.status == "measured" and record.candidate.is_broken
        ],
    )


def is_too_slow(record: ComparisonRecord, allowed: float | None) -> bool:
    """Whether the verdict is SLOWER, by more than the allowed share."""
    if allowed is None or record.verdict != "SLOWER" or record.ratio is None:
        return False
    return not record.ratio <= 1 + allowed


def is_judged(record: ComparisonRecord, allowed: float | None) -> bool:
    """Whether a verdict says if it is slower, or the interval that it is not by more than that."""
    comparison = record.comparison
    if comparison is None or comparison.verdict != "UNDECIDED":
        return comparison is not None
    if allowed is None or comparison.interval is None or not comparison.comparable:
        return False
    return comparison.interval[1] <= 1 + allowed


def _compared(
    record: ComparisonRecord, pair: tuple[_Set, _Set], threshold: float, doubts: Sequence[str]
) -> ComparisonRecord:
    """The record with the comparison of one case's repetitions, if both files have samples."""
    if not (record.baseline.samples_ns and record.candidate.samples_ns):
        return record
    then, now = ([o.samples_ns for o in side if o.samples_ns] for side in pair)
    variation = runs.VARIATIONS[record.candidate.case.device_kind]
    comparison = runs.compare_runs(then, now, variation, threshold, CONFIDENCE)
    notes: tuple[str, ...] = ()
    if comparison.interval is not None:
        enough = comparison.processes is not None and min(comparison.processes) >= runs.ENOUGH
        between = "recordings" if enough else "processes"
        hint = "" if enough else f"; record both sides with --repeat {runs.ENOUGH}"
        difference = f"a difference of {100 * comparison.allowance:.3g}% between {between}{hint}"
        notes = (f"the interval allows for {difference}",)
    if doubts:
        reason = f"not comparable: {'; '.join(doubts)}"
        comparison = msgspec.structs.replace(
            comparison, verdict="UNDECIDED", reason=reason, comparable=False
        )
    return msgspec.structs.replace(record, comparison=comparison, notes=notes)


def _by_case(outcomes: Sequence[Outcome]) -> dict[_Key, _Set]:
    """The latest repetitions of each case, without those that were measured again."""
    latest: dict[_Key, _Set] = {}
    for together in gathering.sets(gathering.without_retried(outcomes)):
        case = together[0].case
        latest[case.kernel, frozenset(case.params.items()), case.problem] = together
    return latest


def _label(outcome: Outcome) -> str:
    problem = outcome.case.problem
    usual = problem.inputs == workloads.workload_of(problem).inputs[0]
    return outcome.case.label + ("" if usual else f", {problem.inputs} inputs")


def _case_differences(first: Outcome, second: Outcome, old: _Set, new: _Set) -> list[str]:
    """Of the merged repetitions of a case, and of their loads."""
    if first.timing is None or second.timing is None:
        return []
    differences: list[str] = []
    if first.mode != second.mode:
        differences.append(f"timing differs: was {first.mode}, now {second.mode}")
    then, now = first.case, second.case
    if then.device != now.device:
        differences.append(f"device differs: was {then.device}, now {now.device}")
    elif then.device_id != now.device_id:
        differences.append(f"device differs: was {then.device_id}, now {now.device_id}")
    mhz = sm_mhz(first), sm_mhz(second)
    if mhz[0] and mhz[1] and not abs(mhz[1] / mhz[0] - 1) <= CLOCK_TOLERANCE:
        clocks = f"was {mhz[0]:,.0f} MHz, now {mhz[1]:,.0f} MHz"
        differences.append(f"the SM clock of {_label(first)} differs: {clocks}")
    was, is_now = others_share(old), others_share(new)
    if was is not None and is_now is not None and abs(is_now - was) > LOAD_TOLERANCE:
        shares = f"was {was:.0%}, now {is_now:.0%} of the processors"
        differences.append(f"the load of other programs at {_label(first)} differs: {shares}")
    return differences
