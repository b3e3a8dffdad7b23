"""Results of measuring: outcomes, also of cases that were not measured, and comparisons.

Imports little, so that the main process can import it while a worker opens its device.
"""

from __future__ import annotations

from matbench.model import Case, DeviceInfo, Skip, SkipKind
from matbench.records.comparison import Comparison, ComparisonRecord
from matbench.records.outcome import CaseRecord, Outcome, Status

#: Of cases that are not skipped though they cannot run: their status, and what precedes the reason.
_ENDED: dict[SkipKind, tuple[Status, str]] = {
    "mistake": ("failed", "front matter: "), "refused": ("failed", ""), "breach": ("wrong", "")
}  # fmt: skip


def not_measured(case: Case, device: DeviceInfo, status: Status, reason: str) -> Outcome:
    """An outcome for a case that is wrong or failed."""
    record = CaseRecord.from_case(case, device)
    return Outcome(case=record, status=status, reason=reason, notes=case.notes)


def skipped(case: Case, device: DeviceInfo, skip: Skip) -> Outcome:
    """An outcome for a case that was not run; one whose file has a mistake failed, and one that
    does not do what was asked for is wrong."""
    if skip.kind in _ENDED:
        status, before = _ENDED[skip.kind]
        return not_measured(case, device, status, f"{before}{skip.needs}")
    record = CaseRecord.from_case(case, device)
    return Outcome(case=record, status="skipped", skip=skip, notes=case.notes)


def compared(
    baseline: Outcome, candidate: Outcome, *, comparison: Comparison | None = None
) -> ComparisonRecord:
    """Two outcomes side by side, under the names of their kernels, with the notes on both."""
    notes = [f"{o.case.kernel}: {note}" for o in (baseline, candidate) for note in o.notes]
    built = [o.build.resources for o in (baseline, candidate) if o.build and o.build.resources]
    if len(languages := {resources.language: None for resources in built}) > 1 and all(languages):
        first, second = languages
        notes.append(
            f"baseline built as {first}, candidate as {second}, which may be the difference"
        )
    return ComparisonRecord(
        baseline_name=baseline.case.kernel,
        candidate_name=candidate.case.kernel,
        baseline=baseline,
        candidate=candidate,
        comparison=comparison,
        notes=tuple(dict.fromkeys(notes)),
    )
