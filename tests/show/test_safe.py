"""Text of records on its way to a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matbench.show import safe

COMMANDS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@given(st.text())
def test_no_text_commands_a_terminal(text: str) -> None:
    [(key, [value])] = safe.data({text: [text]}).items()
    assert key == value == safe.text(text)
    for made in (safe.lines(text), safe.line(text), safe.flat(text), value.replace("\t", "")):
        assert not COMMANDS.search(made)
    assert "\n" not in safe.line(text) + safe.flat(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x1b[31mb", "a\ufffd[31mb"),
        ("a\u202eb", "a\ufffdb"),
        ("\ud800", "\ufffd"),
        ("é µ", "é µ"),
    ],
)
def test_what_commands_is_replaced_and_the_rest_stays(text: str, expected: str) -> None:
    assert safe.lines(text) == expected


def test_lines_stay_or_become_one_of_bounded_length() -> None:
    assert safe.lines(" a\r\n\tb \n") == "a\n    b"
    assert safe.line(" a\r\n\tb \n") == "a b"
    assert safe.flat(" a\r\n\tb \n") == " a\ufffd     b  "
    assert safe.line("x" * 1000) == "x" * 299 + "…"
