"""The same report in every format: complete, escaped and harmless."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support import any_record
from support.optional import present
from support.tables import CPU, MIXED, compared, made, outcome, rows, shown, timing

from matbench.analysis import gathering
from matbench.analysis.ranking import Ranked
from matbench.model import DeviceInfo
from matbench.records.outcome import BlockTimes, Outcome
from matbench.show import comparisons, formats, outcomes, safe
from matbench.show.formats import text
from matbench.show.table import Column, Footnotes, Group, Row, Section, section


def test_csv_holds_the_numbers_as_they_are() -> None:
    precise = outcome(
        "x", 1, median_ns=1234567.891, notes=("one", "two"), settled=False, stopped="time is up"
    )
    (row,) = rows(made(precise))
    assert float(row["median_ns"]) == 1234567.891
    assert float(row["gflops"]) == 2e9 / 1234567.891
    assert (row["interval_low_ns"], row["interval_high_ns"]) == ("990000.0", "1010000.0")
    assert (row["size"], row["M"], row["N"], row["K"]) == ("1000", "1000", "1000", "1000")
    assert (row["backend"], row["device"], row["device_kind"]) == ("opencl", "A Processor", "cpu")
    assert (row["params"], row["samples"], row["settled"]) == ("TILE=16", "3", "false")
    assert (row["notes"], row["stopped"]) == ("one; two", "time is up")
    broken = next(row for row in rows(made(*MIXED)) if row["kernel"] == "broken")
    assert broken["reason"] == MIXED[4].reason
    assert broken["median_ns"] == broken["interval_low_ns"] == broken["hot_samples"] == ""
    assert rows(made()) == []


def test_markup_of_a_record_stays_text() -> None:
    evil = outcome("<script>", 1, reason="x", params={}, status="failed", device=CPU)
    page = text(made(evil), "html")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    named = outcome("[red]x[/red]", 1)
    assert "[red]x[/red]" in shown(made(named))
    hostile = DeviceInfo("cuda", 0, "<img src=x>", "gpu", "1", "1", {})
    assert "<img" not in text(made(outcome("x", 1, hostile)), "html")


def test_a_table_may_have_no_rows() -> None:
    assert formats.csv_table(["a", "b"], []) == "a,b"
    assert (
        formats.csv_table(["a"], [[True], [None], [0.5], [("x", "y")]]) == 'a\ntrue\n""\n0.5\nx; y'
    )


# Comparisons


COMPARED = [compared(), compared(0.068, 256), compared(None, 9000)]


def test_a_comparison_in_other_formats() -> None:
    table = comparisons.report(COMPARED)
    found = rows(table)
    assert [row["verdict"] for row in found] == ["SLOWER", "FASTER", ""]
    assert (float(found[1]["ratio"]), float(found[0]["ratio_low"])) == (0.068, 1.4 * 0.99)
    assert (found[0]["baseline_params"], found[0]["baseline_samples"]) == ("TILE=16", "24")
    assert found[2]["ratio_low"] == ""
    objects = json.loads(text(table, "json"))
    assert [one["type"] for one in objects] == ["comparison"] * 3
    assert objects[1]["comparison"]["ratio"] == 0.068
    assert objects[2]["comparison"] is None
    assert "| 256 " in text(table, "github")
    assert text(comparisons.report([]), "plain") == "nothing to compare"


# Outcomes


@given(
    found=st.lists(any_record.outcomes(), max_size=4), width=st.sampled_from((None, 120, 40, 10))
)
def test_the_best_was_measured_on_that_device(found: list[Outcome], width: int | None) -> None:
    table = outcomes.report(found, [])
    for ranked in table.rows():
        assert isinstance(ranked, Ranked)
        if ranked.best or ranked.times_slowest is not None:
            assert ranked.outcome.status == "measured"
            assert present(ranked.outcome.median_ns) > 0
    kept = gathering.gathered(found, [])[0]
    measured = sum(one.status == "measured" for one in kept)
    assert table.footer.startswith("no" if not found else str(measured))
    shown(table, width)
    shown(outcomes.report(found, [], fastest=True), 40)


def test_json_has_the_records_as_they_are() -> None:
    """No note that follows from samples, and attempts that failed."""
    drifting = timing(1, samples_ns=tuple(1e6 * (1 + n / 500) for n in range(30)))
    table = made(outcome("x", status="failed", reason="killed"), outcome("x", 2, cold=drifting))
    assert "drifting" in text(table, "csv")
    assert "drifting" not in text(table, "json")
    assert len(json.loads(text(table, "json"))) == 3


# Text on its way to a terminal


COMMANDS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@given(st.text())
def test_no_text_commands_a_terminal(text: str) -> None:
    [(key, [value])] = safe.data({text: [text]}).items()
    assert key == value == safe.text(text)
    for safe_text in (safe.lines(text), safe.line(text), safe.flat(text), value.replace("\t", "")):
        assert not COMMANDS.search(safe_text)
    assert "\n" not in safe.line(text) + safe.flat(text)


def test_lines_stay_or_become_one_of_bounded_length() -> None:
    assert safe.lines(" a\r\n\tb \n") == "a\n    b"
    assert safe.line(" a\r\n\tb \n") == "a b"
    assert safe.flat(" a\r\n\tb \n") == " a\ufffd     b  "
    assert safe.line("x" * 1000) == "x" * 299 + "…"


# Tables


COLUMNS = (
    Column("kernel", shared=True),
    Column("parameters", shared=True),
    Column("time", right=True),
    Column("error", right=True, shared=True),
)


def tabled(*rows: Row) -> Section:
    return section(["device"], COLUMNS, "status", [Group("size 1", rows, "1")])


def test_marks_are_explained_where_they_are_shown() -> None:
    found = replace(tabled(Row(("a", "x", "≈ 1 s", "0"))), legend=(("≈", "about"),))
    assert found.with_columns(["kernel", "time"]).legend == (("≈", "about"),)
    assert found.with_columns(["kernel"]).legend == ()


def test_an_unknown_time_is_not_marked() -> None:
    assert BlockTimes(median_ns=1.0, perturbation=0.06).is_perturbed
    assert not BlockTimes(median_ns=None, perturbation=0.06).is_perturbed


# Notes below a table


def test_notes_that_differ_only_in_numbers_are_one() -> None:
    notes = Footnotes()
    texts = ["4 of 1,110 samples (up to 3.5)", "10 of 40 samples (up to 1.25)", "drift: -4.4%"]
    assert [notes.marks([], [text]) for text in texts] == ["¹", "¹", "²"]
    assert notes.marks([], ["drift: -0.5%", "v1.2.3", "C#"]) == "² ³ ⁴"
    assert notes.lines()[:2] == [
        ("¹", "4…10 of 40…1,110 samples (up to 1.25…3.5)"),
        ("²", "drift: -4.4…-0.5%"),
    ]
