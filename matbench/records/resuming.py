"""Which cases of an interrupted run are done, and which outcomes were replaced by a retry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from matbench.model import Problem
from matbench.records.outcome import CaseRecord, Outcome


class CaseKey(NamedTuple):
    """Identifies a case: its source, parameters, problem (with inputs and seed) and device.

    `repetition` tells apart the processes that measured it.
    """

    kernel: str
    sha256: str
    params: frozenset[tuple[str, int]]
    problem: Problem
    backend: str
    device: str
    device_id: str
    repetition: int = 1

    @classmethod
    def from_case(cls, case: CaseRecord, repetition: int = 1) -> CaseKey:
        params = frozenset(case.params.items())
        where = case.backend, case.device, case.device_id
        return cls(case.kernel, case.sha256, params, case.problem, *where, repetition)


def outcome_key(outcome: Outcome) -> CaseKey:
    return CaseKey.from_case(outcome.case, outcome.repetition)


def finished(outcomes: Iterable[Outcome]) -> dict[CaseKey, Outcome]:
    """The cases that a resumed run need not run again.

    Failed cases are run again, because the cause (a deadline, a lost device, memory used by another
    program, a killed worker) may be gone. Those that were interrupted lack rounds.
    """
    return {
        outcome_key(outcome): outcome
        for outcome in outcomes
        if outcome.status != "failed" and not outcome.interrupted
    }


def without_retried(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Outcomes without those that were measured again; a retry after a failure has a note."""
    kept: list[Outcome] = []
    later: dict[CaseKey, int] = {}
    for outcome in reversed(outcomes):
        key = outcome_key(outcome)
        if key in later and outcome.status == "failed":
            retry = kept[later[key]]
            note = f"an earlier attempt failed: {outcome.reason}"
            kept[later[key]] = msgspec.structs.replace(retry, notes=(*retry.notes, note))
        if key in later and (outcome.status == "failed" or outcome.interrupted):
            continue
        later[key] = len(kept)
        kept.append(outcome)
    return kept[::-1]
