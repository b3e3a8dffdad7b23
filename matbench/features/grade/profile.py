"""The profile of one kernel: each step of its grade in the worker, and one record of all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from matbench.errors import BuildError, CaseError
from matbench.features.grade import accuracy, steps
from matbench.features.grade.steps import STEPS
from matbench.measure.worker import Worker, is_on_host
from matbench.model import UNIT_ROUNDOFF, Case, DeviceInfo
from matbench.records.grade import Batches, Grade, Order
from matbench.records.outcome import CaseRecord

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


def grade(worker: Worker, case: Case, seed: int, told: Callable[[str], None]) -> Grade:
    """Grade one case's kernel with its parameters; `told` is called with each step, in words."""
    if case.skip is not None:
        return not_graded(case, worker.device, seed, case.skip)
    started = time.monotonic()
    made: dict[str, Any] = {}
    for name, each in STEPS.items():
        told(each.doing)
        try:
            found = _asked(worker, case, name, seed)
        except BuildError as error:
            return not_graded(case, worker.device, seed, error.reason)
        except CaseError as error:
            if worker.deadlines_passed(case) >= _MOST_LATE:
                return not_graded(case, worker.device, seed, error.reason)
            found = each.failed(reason=error.reason) if each.failed is not None else ()
        if name == "order" and isinstance(found, tuple):
            made["order"], made["sums"] = found
        else:
            made[name] = found
    if made["runs"].verdict == "differ":
        reason = "runs differ"
        made["batches"] = Batches(reason=reason, probes=made["batches"].probes)
        made["order"] = Order(verdict="varies", reason=reason, probes=made["order"].probes)
    return msgspec.structs.replace(
        not_graded(case, worker.device, seed, ""),
        reason=None,
        letter=accuracy.letter(made["bounds"], made["growth"], made["algorithm"]),
        duration_s=time.monotonic() - started,
        **made,
    )


def _asked(worker: Worker, case: Case, name: str, seed: int) -> steps.Made:
    kernel = case.kernel
    if is_on_host(kernel):
        return worker.call(steps.graded_on_host, worker.device, kernel, name, seed)
    return worker.ask(case, None, steps.graded, kernel, case.params, name, seed)
