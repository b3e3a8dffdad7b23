"""A section omits columns without information, but never those that rank."""

from __future__ import annotations

from dataclasses import replace

from matbench.records.outcome import BlockTimes
from matbench.show.table import Column, Footnotes, Group, Row, Section, section

COLUMNS = (
    Column("kernel", shared=True),
    Column("parameters", shared=True),
    Column("time", right=True),
    Column("error", right=True, shared=True),
)


def made(*rows: Row) -> Section:
    return section(["device"], COLUMNS, "status", [Group("size 1", rows, "1")])


def test_marks_are_explained_where_they_are_shown() -> None:
    found = replace(made(Row(("a", "x", "≈ 1 s", "0"))), legend=(("≈", "about"),))
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
