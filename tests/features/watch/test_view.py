"""A watched file: the last version in detail, earlier ones on one line each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
from support.tables import compared, line_of, outcome, printed

from matbench.features.watch import view as watch
from matbench.features.watch.versions import SavedVersion
from matbench.model import Problem
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Claims
from matbench.worker.comparing import Contender

AT = Problem(1000, 1000, 1000)


def version(number: int, wrong: str = "", record: ComparisonRecord | None = None) -> SavedVersion:
    made = SavedVersion(number, "12:00:0" + str(number), wrong)
    if not wrong:
        case: Any = SimpleNamespace(params={"TILE": 16})
        made.contenders[AT] = Contender(made.label, case, outcome("mine", 0.25))
        made.comparisons[AT] = record or compared(0.5, baseline_name="version 1",
                                                  candidate_name=made.label)  # fmt: skip
    return made


def test_the_last_version_is_the_table_of_its_comparisons() -> None:
    page = printed(watch.screen("mine.cu", [version(1), version(2)]))
    assert page.startswith("mine.cu · version 2 · 12:00:02\n")
    assert "candidate version 2 against baseline version 1" in page
    assert "2.00 × faster" in line_of(page, "1000", "FASTER")
    narrow = printed(watch.screen("mine.cu", [version(1), version(2)], 80), 80)
    assert max(map(len, narrow.splitlines())) <= 80
    assert line_of(narrow, "1000", "FASTER")


def test_claims_of_a_version_stand_below() -> None:
    record = compared(1.004, verdict="SAME", baseline_name="version 1")
    case = msgspec.structs.replace(record.baseline.case, claims=Claims(precision="tf32"))
    side = msgspec.structs.replace(record.baseline, case=case)
    found = version(2, record=msgspec.structs.replace(record, baseline=side))
    page = printed(watch.screen("mine.cu", [found]))
    assert "claims of version 1: inputs rounded to tf32" in page


def test_a_version_that_is_not_compared_yet_has_its_time() -> None:
    first = version(1)
    first.comparisons.clear()
    page = printed(watch.screen("mine.cu", [first]))
    assert line_of(page, "mine", "250.0 µs")
    assert "against" not in page


def test_a_version_on_one_line() -> None:
    assert watch.line(version(2)) == (
        "version 2, 12:00:02: right; 250.0 µs at 1000 (TILE=16); 2.00 × faster than version 1"
    )
    assert watch.line(version(1, "no such\nthing")) == (
        "version 1, 12:00:01: not timed: no such thing"
    )
    assert watch.line(SavedVersion(3, "12:00:03")) == (
        "version 3, 12:00:03: superseded before it was timed"
    )


def test_what_could_not_be_compared_says_why() -> None:
    found = version(2, record=compared(None, baseline_name="version 1"))
    assert "not compared with version 1: shared-row: skipped: needs K" in watch.line(found)
    assert "needs K * 4" in printed(watch.screen("mine.cu", [found]))


def test_a_wrong_version_shows_the_start_of_a_long_message() -> None:
    message = "\n".join(f"line {n}" for n in range(20))
    page = printed(watch.screen("mine.cu", [version(1), version(2, message)]))
    assert "line 12\n" in page
    assert "line 13" not in page
    assert "… and 7 more lines" in page
    assert "Not timed. Fix the file and save again." in page
    assert line_of(page, "version 1, 12:00:01: right")


def test_only_some_versions_before_are_shown() -> None:
    page = printed(watch.screen("mine.cu", [version(n % 10) for n in range(12)]), 60)
    assert page.count("right;") == 8
