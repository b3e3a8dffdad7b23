"""Resuming: finished cases are not run again, and a later try notes the earlier failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.record_files import write
from support.records import device, environment, outcome

from matbench.model import Case, Kernel, LaunchRules, Problem
from matbench.records.outcome import CaseRecord
from matbench.records.resuming import CaseKey, finished, outcome_key, without_retried
from matbench.records.writing import RecordWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.jsonl"


KERNEL = Kernel(
    name="tiled", summary="s", launch=LaunchRules(block=(1,), grid=(1,)), sha256="0" * 64
)


def test_the_key_of_a_case_is_the_key_of_its_outcome() -> None:
    case = Case(KERNEL, Problem(17, 33, 65), {"TILE": 16}, None)
    assert CaseKey.from_case(CaseRecord.from_case(case, device())) == outcome_key(outcome())
    assert CaseKey.from_case(CaseRecord.from_case(case, device(index=1)), 2) == outcome_key(
        outcome(device_id="opencl:1", repetition=2)
    )
    two = {"A": 1, "B": 2}
    assert outcome_key(outcome(params=two)) == outcome_key(
        outcome(params=dict(reversed(two.items())))
    )


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": "other"},
        {"sha256": "1" * 64},
        {"params": {"TILE": 8}},
        {"params": {}},
        {"problem": Problem(17, 33, 66)},
        {"problem": Problem(17, 33, 65, "signed")},
        {"problem": Problem(17, 33, 65, "uniform", 1)},
        {"problem": Problem(17, 33, 65, alpha=2)},
        {"problem": Problem(17, 33, 65, beta=2)},
        {"problem": Problem(17, 33, 65, batch=2)},
        {"backend": "cuda"},
        {"device": "Another Processor"},
        {"device_id": "opencl:1"},
        {"repetition": 2},
    ],
)
def test_another_case_is_measured_anew(change: dict[str, Any], path: Path) -> None:
    write(path, outcome())
    with RecordWriter(path, environment(), "resume") as writer:
        done = finished(writer.outcomes)
    assert outcome_key(outcome()) in done
    assert outcome_key(outcome(**change)) not in done


def test_only_a_failed_case_is_tried_anew() -> None:
    records = [
        outcome(kernel=status, status=status)
        for status in ("measured", "wrong", "skipped", "failed")
    ]
    found = finished(records)
    assert [one.status for one in found.values()] == ["measured", "wrong", "skipped"]
    assert finished([outcome(status="failed"), outcome()]) == {outcome_key(outcome()): outcome()}


def test_a_retried_failure_is_told_by_the_later_try() -> None:
    failed = outcome(status="failed", reason="killed")
    other = outcome(kernel="other", status="failed", reason="trap")
    kept = without_retried([failed, other, failed, outcome(), outcome()])
    assert [one.case.kernel for one in kept] == ["other", "tiled", "tiled"]
    assert kept[1].notes == ("an earlier attempt failed: killed",) * 2
    assert kept[2].notes == ()
