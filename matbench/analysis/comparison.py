"""Comparisons as rows: two cases timed in turns, or the same cases of two record files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from matbench import workloads
from matbench.analysis import statistics
from matbench.measure.bench import Duel
from matbench.model import Environment, Outcome, Problem, settings_of
from matbench.show.report import ComparisonRow

#: With the ten samples that a settled case may have, this interval leaves out one at each end.
CONFIDENCE = 0.975
#: How far the SM clocks of two runs may lie apart, as a share.
CLOCK_TOLERANCE = 0.02

_Key = tuple[str, tuple[tuple[str, int], ...], Problem]


class Joined(NamedTuple):
    """Rows for the cases of both files, what is in one alone, and why they may not compare."""

    rows: list[ComparisonRow]
    only_old: list[str]
    only_new: list[str]
    differences: list[str]
    broken: list[str]


def compare_records(
    old: tuple[Sequence[Environment], Sequence[Outcome]],
    new: tuple[Sequence[Environment], Sequence[Outcome]],
    names: tuple[str, str],
    threshold: float,
) -> Joined:
    """Join two files by kernel, parameters and problem; the first is the baseline.

    `differences` tell what else changed between the runs: device, driver, toolkit, clocks, kernel
    source. `broken` are cases that were measured before and now are wrong or failed.
    """
    before, after = _by_case(old[1]), _by_case(new[1])
    both = [key for key in before if key in after]
    pairs = [(before[key], after[key]) for key in both]
    differences = [*_environment_differences(old[0], new[0]), *_case_differences(pairs)]
    return Joined(
        rows=[
            _row(first, second, names, _compare(first, second, threshold), second.kernel)
            for first, second in pairs
        ],
        only_old=[_label(before[key]) for key in before if key not in after],
        only_new=[_label(after[key]) for key in after if key not in before],
        differences=list(dict.fromkeys(differences)),
        broken=[
            f"{_label(second)} is {second.status} now: {second.reason}"
            for first, second in pairs
            if first.status == "measured" and second.status in ("wrong", "failed")
        ],
    )


def _compare(first: Outcome, second: Outcome, threshold: float) -> statistics.Comparison | None:
    if not (first.samples_ns and second.samples_ns):
        return None
    return statistics.compare_samples(first.samples_ns, second.samples_ns, threshold, CONFIDENCE)


def _by_case(outcomes: Iterable[Outcome]) -> dict[_Key, Outcome]:
    return {(o.kernel, tuple(sorted(o.params.items())), o.problem): o for o in outcomes}


def _label(outcome: Outcome) -> str:
    problem = outcome.problem
    usual = problem.inputs == workloads.of(problem).inputs[0]
    inputs = "" if usual else f", {problem.inputs} inputs"
    return f"{outcome.kernel} {settings_of(outcome.params)}".strip() + f" at {problem.size}{inputs}"


def _environment_differences(old: Sequence[Environment], new: Sequence[Environment]) -> list[str]:
    def told(environments: Sequence[Environment], field: str) -> str:
        values = {getattr(d, field) for e in environments for d in e.devices}
        return ", ".join(sorted(map(str, values))) or "unknown"

    return [
        f"{field} differs: {told(old, field)} then, {told(new, field)} now"
        for field in ("name", "driver", "toolkit")
        if told(old, field) != told(new, field)
    ]


def _case_differences(pairs: Sequence[tuple[Outcome, Outcome]]) -> list[str]:
    found = []
    for first, second in pairs:
        if first.sha256 != second.sha256:
            found.append(f"the source of {first.kernel} differs")
        if first.timing_mode != second.timing_mode and first.median_ns and second.median_ns:
            found.append(f"timing differs: {first.timing_mode} then, {second.timing_mode} now")
        if first.device != second.device:
            found.append(f"device differs: {first.device} then, {second.device} now")
        if first.sm_mhz and second.sm_mhz:
            moved = abs(second.sm_mhz / first.sm_mhz - 1)
            if not moved <= CLOCK_TOLERANCE:
                found.append(
                    f"the SM clock of {_label(first)} differs: "
                    f"{first.sm_mhz:,.0f} MHz then, {second.sm_mhz:,.0f} MHz now"
                )
    return found


def comparable(joined: Joined) -> bool:
    """Whether times may be held against each other: a new kernel source is what one compares."""
    return all(text.startswith("the source of") for text in joined.differences)


def _row(
    first: Outcome,
    second: Outcome,
    names: tuple[str, str],
    found: statistics.Comparison | None,
    kernel: str = "",
) -> ComparisonRow:
    untimed = [
        f"{o.kernel}: {o.status}: {o.reason or 'not timed'}"
        for o in (first, second)
        if not o.samples_ns
    ]
    return ComparisonRow(
        size=second.problem.size,
        kernel=kernel,
        baseline=names[0],
        candidate=names[1],
        baseline_params=first.params,
        candidate_params=second.params,
        backend=second.backend,
        device=second.device,
        device_kind=second.device_kind,
        timing_mode=second.timing_mode,
        baseline_median_ns=first.median_ns,
        baseline_max_rel_err=first.max_rel_err,
        candidate_median_ns=second.median_ns,
        candidate_max_rel_err=second.max_rel_err,
        ratio=found.ratio if found else None,
        ratio_interval=found.interval if found else None,
        p_value=found.p_value if found else None,
        samples=found.samples if found else (0, 0),
        verdict=found.verdict if found else None,
        reason=found.reason if found else "; ".join(untimed),
    )


def row_of(duel: Duel, notes: tuple[str, ...] = ()) -> ComparisonRow:
    """A row for two cases that were timed in turns."""
    first, second = duel.baseline, duel.candidate
    names = (first.kernel, second.kernel)
    row = _row(first, second, names, duel.comparison)
    return msgspec.structs.replace(row, notes=notes)


def is_too_slow(row: ComparisonRow, allowed: float | None) -> bool:
    """Slower by more than is allowed, and surely so: the verdict says SLOWER."""
    return (
        allowed is not None
        and row.verdict == "SLOWER"
        and row.ratio is not None
        and not row.ratio <= 1 + allowed
    )
