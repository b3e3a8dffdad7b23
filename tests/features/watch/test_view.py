"""A watched file: the last version in detail, earlier ones on one line each."""

from __future__ import annotations

import msgspec
from support.tables import CPU, GPU, compared, line_of, printed

from matbench.features.watch import view as watch
from matbench.features.watch.version import SavedVersion, TimedVersion
from matbench.model import Problem
from matbench.records.outcome import Claims

AT = Problem(1000, 1000, 1000)


def version(number: int, wrong: str = "", **standing: object) -> SavedVersion:
    made = SavedVersion(number, "12:00:0" + str(number), wrong)
    if not wrong:
        against = [
            compared(0.5, baseline_name="version 1"),
            compared(1.004, verdict="SAME", baseline_name="naive"),
        ]
        made.standings[AT] = TimedVersion({"TILE": 16}, 250_000.0, against)
    return made


def test_the_last_version_is_a_table() -> None:
    page = printed(watch.screen("mine.cu", GPU, [version(1), version(2)]))
    assert page.splitlines()[:2] == ["mine.cu · version 2 · 12:00:02", "cuda:0 A GPU"]
    assert "CPU timings" not in page
    row = line_of(page, "version 1 TILE=16", "FASTER")
    assert "250.0 µs" in row
    assert "2.00 × faster" in row
    assert "1.98 to 2.02 × faster" in row
    assert "1.004 × slower" in line_of(page, "naive TILE=16", "SAME")
    assert "timed in turns with the previous version" in page


def test_claims_of_a_version_stand_below() -> None:
    found = version(2)
    [standing] = found.standings.values()
    record = standing.comparisons[1]
    case = msgspec.structs.replace(record.baseline.case, claims=Claims(precision="tf32"))
    rung = msgspec.structs.replace(record.baseline, case=case)
    standing.comparisons[1] = msgspec.structs.replace(record, baseline=rung)
    page = printed(watch.screen("mine.cu", GPU, [found]))
    assert line_of(page, "naive TILE=16", "SAME¹")
    assert "¹ claims of naive: inputs rounded to tf32" in page


def test_a_narrow_terminal_has_no_interval_but_whole_words() -> None:
    page = printed(watch.screen("mine.cu", GPU, [version(1), version(2)], 80), 80)
    row = line_of(page, "1000", "250.0 µs", "TILE=16", "version 1 TILE=16", "FASTER")
    assert "interval" not in page
    assert max(map(len, page.splitlines())) <= 80
    assert row.index("FASTER") == line_of(page, "naive TILE=16", "SAME").index("SAME")


def test_a_version_that_is_not_compared_yet_has_its_time() -> None:
    first = version(1)
    first.standings[AT].comparisons = []
    page = printed(watch.screen("mine.cu", GPU, [first]))
    assert line_of(page, "250.0 µs", "TILE=16")
    assert "against" not in page.splitlines()[3]


def test_a_version_on_one_line() -> None:
    assert watch.line(version(2)) == (
        "version 2, 12:00:02: right; 250.0 µs at 1000 (TILE=16); 2.00 × faster than version 1; "
        "SAME: 1.004 × slower than naive"
    )
    assert watch.line(version(1, "no such\nthing")) == (
        "version 1, 12:00:01: not timed: no such thing"
    )
    assert watch.line(SavedVersion(3, "12:00:03")) == (
        "version 3, 12:00:03: superseded before it was timed"
    )


def test_what_could_not_be_compared_says_why() -> None:
    found = version(2)
    found.standings[AT].comparisons = [compared(None, baseline_name="version 1")]
    assert "not compared with version 1: shared-row: skipped: needs K" in watch.line(found)
    page = printed(watch.screen("mine.cu", GPU, [found]))
    assert "needs K * 4" in line_of(page, "version 1")


def test_a_wrong_version_shows_the_start_of_a_long_message() -> None:
    message = "\n".join(f"line {n}" for n in range(20))
    page = printed(watch.screen("mine.cu", CPU, [version(1), version(2, message)]))
    assert "CPU timings" in page
    assert "line 12\n" in page
    assert "line 13" not in page
    assert "… and 7 more lines" in page
    assert "Not timed. Fix the file and save again." in page
    assert line_of(page, "version 1, 12:00:01: right")


def test_only_some_versions_before_are_shown() -> None:
    page = printed(watch.screen("mine.cu", GPU, [version(n % 10) for n in range(12)]), 60)
    assert page.count("right;") == 8
