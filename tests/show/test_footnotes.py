"""Notes below a table: each once, with ranges where only numbers differ."""

from __future__ import annotations

from matbench.show.footnotes import Footnotes, kind, merged


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
