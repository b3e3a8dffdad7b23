"""Text that is measured, shortened and wrapped without a browser."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pictures import needs_plots

from matbench.show.charts import style, text

lines = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=80)
rooms = st.floats(30, 400)


@needs_plots
@pytest.mark.parametrize(
    "line", ["tiled", "thread-tile-2d + 8 alike", "NVIDIA GeForce RTX 4090", "WwMmil|.,()[]{}%@"]
)
def test_text_is_as_wide_as_it_is_drawn(line: str) -> None:
    import vl_convert

    drawn = vl_convert.vegalite_to_svg({
        "data": {"values": [{"text": line}]}, "padding": 0, "config": {"view": {"stroke": None}},
        "width": 1, "height": 1,
        "mark": {"type": "text", "font": style.FONT, "fontSize": 100, "align": "left"},
        "encoding": {"text": {"field": "text"}, "x": {"value": 0}, "y": {"value": 0}},
    })  # fmt: skip
    [width] = re.findall(r'<svg[^>]* width="(\d+)"', drawn)
    assert text.width(line, 100) == pytest.approx(int(width), rel=0.03)


@given(lines, rooms)
def test_shortened_text_fits(line: str, room: float) -> None:
    short = text.shortened(line, room)
    assert text.width(short) <= room
    if text.width(line) <= room:
        assert short == line
    else:
        head, _, tail = short.partition("…")
        assert line.startswith(head) and line.endswith(tail)


def test_shortened_text_keeps_both_ends() -> None:
    short = text.shortened("a-kernel-with-a-long-name-7", 120)
    assert short.startswith("a-kernel") and short.endswith("-7") and "…" in short


@given(st.lists(lines, max_size=12, unique=True), rooms)
def test_different_texts_stay_different(many: list[str], room: float) -> None:
    found = text.distinct(many, room)
    assert len(set(found)) == len(many)


def test_texts_that_would_be_alike_are_numbered() -> None:
    names = [f"kernel-{'x' * 50}{middle}{'y' * 50}" for middle in "ab"]
    first, second = text.distinct(names, 100)
    assert "…" in first and second.endswith(" (2)")


@given(lines, rooms)
def test_wrapped_text_is_whole_and_fits(line: str, room: float) -> None:
    found = text.wrapped(line, room)
    assert "".join("".join(found).split()) == "".join(line.split())
    assert all(text.width(part) <= room for part in found)


def test_text_is_wrapped_at_spaces() -> None:
    room = text.width("one two thr")
    assert text.wrapped("one two three four", room) == ["one two", "three four"]
