"""The profile of one kernel: each step of its grade in the worker, and one record of all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from matbench.errors import BuildError, CaseError
from matbench.features.grade import accuracy, steps
from matbench.features.grade.record import Batches, Grade, Order
from matbench.model import UNIT_ROUNDOFF, Case, DeviceInfo
from matbench.records.outcome import CaseRecord
from matbench.show.reasons import skip_reason
from matbench.worker.worker import LateError, Worker

#: After so many steps that miss their deadline, a kernel is given up.
_MOST_LATE = 2


def not_graded(case: Case, device: DeviceInfo, seed: int, reason: str) -> Grade:
    """The record of a kernel about which nothing can be said."""
    return Grade(
        case=CaseRecord.from_case(case, device),
        letter="unclear",
        u=UNIT_ROUNDOFF[case.kernel.contract.result],
        seed=seed,
        duration_s=0.0,
        reason=reason,
    )


def grade(
    worker: Worker, case: Case, seed: int, name: str, on_progress: Callable[[str], None]
) -> Grade:
    """Grade one case's kernel with its parameters; `on_progress` is told its name and each step."""
    if case.skip is not None:
        return not_graded(case, worker.device, seed, skip_reason(case.skip))
    started, late = time.monotonic(), 0
    statements: dict[str, Any] = {}
    for field, step in steps.STEPS.items():
        on_progress(f"{name}: {step.doing}")
        try:
            made = worker.run(steps.graded, case.kernel, case.params, field, seed, case=case)
            statements |= {key: one for key, one in msgspec.structs.asdict(made).items() if one}
        except BuildError as error:
            return not_graded(case, worker.device, seed, error.reason)
        except CaseError as error:
            late += isinstance(error, LateError)
            if late >= _MOST_LATE:
                return not_graded(case, worker.device, seed, error.reason)
            statements[field] = step.failed(reason=error.reason) if step.failed is not None else ()
    if statements["runs"].verdict == "differ":
        reason = "runs differ"
        statements["batches"] = Batches(reason=reason, probes=statements["batches"].probes)
        statements["order"] = Order(
            verdict="varies", reason=reason, probes=statements["order"].probes
        )
    return msgspec.structs.replace(
        not_graded(case, worker.device, seed, ""),
        reason=None,
        letter=accuracy.letter(statements["bounds"], statements["growth"], statements["algorithm"]),
        duration_s=time.monotonic() - started,
        **statements,
    )
