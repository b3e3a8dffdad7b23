"""Outcomes of cases that were not measured, and what every outcome says of its case."""

from __future__ import annotations

from matbench.model import Case, DeviceInfo
from matbench.records.outcome import CaseRecord, Claims, Outcome, Status


def case_record(case: Case, device: DeviceInfo) -> CaseRecord:
    """What an outcome says of its case, whatever became of it."""
    kernel = case.kernel
    return CaseRecord(
        kernel=kernel.name,
        sha256=kernel.sha256,
        group=kernel.group,
        summary=kernel.summary,
        claims=Claims.of(kernel),
        params=case.params,
        problem=case.problem,
        backend=device.backend,
        device=device.name,
        device_kind=device.kind,
        launch=case.launch if kernel.library is None else None,
    )


def not_measured(case: Case, device: DeviceInfo, status: Status, reason: str) -> Outcome:
    """An outcome for a case that was skipped or failed."""
    record = case_record(case, device)
    return Outcome(case=record, status=status, reason=reason, notes=case.notes)


def not_run(case: Case, device: DeviceInfo) -> Outcome:
    """An outcome for a case that says itself why it cannot run; its own mistake is a failure."""
    assert case.skip is not None
    return not_measured(case, device, "failed" if case.is_mistaken else "skipped", case.skip)
