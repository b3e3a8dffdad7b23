"""Results of measuring: outcomes, also of cases that were not measured, and comparisons.

Imports little, so that the main process can import it while a worker opens its device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from matbench.model import Case, DeviceInfo
from matbench.records.comparison import Comparison, ComparisonRecord
from matbench.records.outcome import CaseRecord, Outcome, Status

if TYPE_CHECKING:
    from matbench.analysis.blocks import BlockSample


class Clocked(NamedTuple):
    """The outcome of a case, and the stamps of its blocks; None if it was not right."""

    outcome: Outcome
    stamps: BlockSample | None = None


def not_measured(case: Case, device: DeviceInfo, status: Status, reason: str) -> Outcome:
    """An outcome for a case that was skipped or failed."""
    record = CaseRecord.from_case(case, device)
    return Outcome(case=record, status=status, reason=reason, notes=case.notes)


def not_run(case: Case, device: DeviceInfo) -> Outcome:
    """An outcome for a case with a reason not to run: skipped, or failed if it is mistaken."""
    assert case.skip is not None
    return not_measured(case, device, "failed" if case.is_mistaken else "skipped", case.skip)


def compared(
    baseline: Outcome, candidate: Outcome, *, comparison: Comparison | None = None
) -> ComparisonRecord:
    """Two outcomes side by side, under the names of their kernels."""
    return ComparisonRecord(
        baseline_name=baseline.case.kernel,
        candidate_name=candidate.case.kernel,
        baseline=baseline,
        candidate=candidate,
        comparison=comparison,
    )
