"""A section omits columns without information, but never those that rank."""

from __future__ import annotations

from dataclasses import replace

from matbench.show.footnotes import Footnotes, kind, merged
from matbench.show.table import Column, Group, Row, Section, section
from matbench.show.units import UNKNOWN

COLUMNS = (
    Column("kernel", shared=True),
    Column("parameters", shared=True),
    Column("time", right=True),
    Column("error", right=True, shared=True),
)


def made(*rows: Row) -> Section:
    return section(["device"], COLUMNS, "status", [Group("size 1", rows, "1")])


def titles(found: Section) -> list[str]:
    return [column.title for column in found.columns]


def test_what_is_the_same_in_every_row_stands_above_them() -> None:
    found = made(Row(("a", "TILE=16", "1 s", "0")), Row(("b", "TILE=16", "1 s", UNKNOWN)))
    assert found.heading == ("device", "parameters: TILE=16")
    assert titles(found) == ["kernel", "time", "error"]
    again = made(Row(("a", "T=1", "1 s", "0")), Row(("a", "T=2", "1 s", "0")))
    assert again.heading == ("device", "kernel: a · error: 0")
    assert titles(again) == ["parameters", "time"]


def test_words_differ_from_none() -> None:
    found = made(Row(("a", "TILE=16", "1 s", "0")), Row(("b", UNKNOWN, "2 s", "1")))
    assert titles(found) == ["kernel", "parameters", "time", "error"]


def test_one_row_keeps_all_that_is_known_of_it() -> None:
    found = made(Row(("a", "TILE=16", "1 s", UNKNOWN)))
    assert titles(found) == ["kernel", "parameters", "time"]
    assert found.heading == ("device",)


def test_numbers_keep_a_word_beside_them() -> None:
    found = made(Row(("a", "TILE=16", "1 s", "0")), Row(("a", "TILE=16", "2 s", "1")))
    assert titles(found) == ["kernel", "time", "error"]


def test_a_mark_stands_beside_the_first_cell_that_is_left() -> None:
    found = made(Row(("a", "T=1", "1 s", "0"), mark="★"), Row(("a", "T=2", "2 s", "1")))
    assert [row.cells[0] for row in found.rows] == ["T=1 ★", "T=2"]


def test_the_last_column_says_what_it_has() -> None:
    plain, noted = Row(("a", "x", "1 s", "0")), Row(("b", "y", "2 s", "1"), notes=("busy",))
    failed = Row(("c", "z", UNKNOWN, UNKNOWN), status="failed", reason="no")
    assert made(plain).last_title == ""
    assert made(plain, noted).last_title == "notes"
    assert made(plain, noted, failed).last_title == "status"


def test_columns_can_be_chosen() -> None:
    found = made(Row(("a", "x", "1 s", "0")), Row(("b", "y", "2 s", "1")))
    narrow = found.with_columns(["time", "kernel", "nothing"])
    assert titles(narrow) == ["kernel", "time"]
    assert [row.cells for row in narrow.rows] == [("a", "1 s"), ("b", "2 s")]


def test_marks_are_explained_where_they_are_shown() -> None:
    found = replace(made(Row(("a", "x", "≈ 1 s", "0"))), legend=(("≈", "about"),))
    assert found.with_columns(["kernel", "time"]).legend == (("≈", "about"),)
    assert found.with_columns(["kernel"]).legend == ()


# Notes below a table


def test_each_text_has_one_number_in_the_order_of_first_mention() -> None:
    notes = Footnotes()
    assert notes.marks([], ["drift"]) == "¹"
    assert notes.marks(["a reason"], ["drift", "busy"]) == "¹ ² ³"
    assert notes.marks([], []) == ""
    assert notes.lines() == [("¹", "drift"), ("²", "a reason"), ("³", "busy")]


def test_notes_that_differ_only_in_numbers_are_one() -> None:
    notes = Footnotes()
    texts = ["4 of 1,110 samples (up to 3.5)", "10 of 40 samples (up to 1.25)", "drift: -4.4%"]
    assert [notes.marks([], [text]) for text in texts] == ["¹", "¹", "²"]
    assert notes.marks([], ["drift: -0.5%", "v1.2.3", "C#"]) == "² ³ ⁴"
    assert notes.lines()[:2] == [
        ("¹", "4…10 of 40…1,110 samples (up to 1.25…3.5)"),
        ("²", "drift: -4.4…-0.5%"),
    ]


def test_reasons_are_never_merged() -> None:
    notes = Footnotes()
    assert [notes.marks([f"line {n}\nmore"], []) for n in (1, 2)] == ["¹", "²"]
    assert [text for _, text in notes.lines()] == ["line 1\nmore", "line 2\nmore"]


def test_one_text_is_merged_into_itself() -> None:
    assert merged(["needs N <= 64 (N = 7)"]) == "needs N <= 64 (N = 7)"
    assert kind("a 1") == kind("a 2.5") != kind("b 1")
