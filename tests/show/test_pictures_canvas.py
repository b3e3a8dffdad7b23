"""A picture is one plain file: the same for the same charts, and harmless whatever they say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pictures import SVG, marks, needs_plots, picture, texts

from matbench.show.charts import style, text
from matbench.show.pictures import canvas
from matbench.show.pictures.canvas import Panel

pytestmark = needs_plots
HOSTILE = "<&>\"' $x$ \u202e\0\ufffe ]]> 😀 --><script>"


def panel(label: str = "a", **more: Any) -> Panel:
    spec = {
        "data": {"values": [{"x": 1, "label": label}, {"x": 3, "label": "b"}]},
        "layer": [
            {"mark": {"type": "line", "clip": True}},
            {"mark": "text", "encoding": {"text": {"field": "label"}}},
        ],
        "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"value": 40}},
        "width": 200, "height": 80, "autosize": "none",
        "padding": {"left": 20, "right": 30, "top": 30, "bottom": 20},
    }  # fmt: skip
    return Panel(spec, **more)


def svg(
    panels: Sequence[Panel], title: str = "title", lines: Sequence[str] = (), **more: str
) -> str:
    return canvas.encoded("svg", panels, title, lines, **more).decode()


def test_the_same_charts_are_the_same_picture() -> None:
    for kind in ("svg", "png"):
        first, second = (canvas.encoded(kind, [panel(), panel(y=150)], "t") for _ in range(2))
        assert first == second
        assert canvas.encoded(kind, [panel("c"), panel(y=150)], "t") != first


def test_a_picture_says_what_it_is() -> None:
    drawn = svg([panel()], "tiled", ["one", "two"], description="three", metadata="abc")
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert [root[0].tag, root[0].text] == [f"{SVG}title", "tiled"]
    assert [root[1].tag, root[1].text] == [f"{SVG}desc", "three"]
    assert "<metadata>abc</metadata>" in drawn
    assert {"tiled", "one", "two"} <= texts(drawn)
    untold = ElementTree.fromstring(svg([panel()], "tiled", ["one", "two"]))
    assert untold[1].text == "one. two"


def test_text_is_text_and_never_anything_else() -> None:
    drawn = svg([panel(HOSTILE, title=HOSTILE, note=HOSTILE)], HOSTILE, [HOSTILE])
    root = ElementTree.fromstring(drawn)
    assert not [node for node in root.iter() if node.tag == f"{SVG}script"]
    shown = "<&>\"' $x$ \ufffd\ufffd\ufffd ]]> 😀 --><script>"
    assert [found for found in texts(drawn) if found == shown]
    assert root[0].text == shown
    assert re.findall(r'(?:href|src)="([^"]*)"|url\(([^#])|@import', drawn) == []


def test_panels_stand_where_they_are_put_below_the_heading() -> None:
    drawn = svg([panel("one"), panel("two", x=300, y=150, title="second")], "t", ["a line"])
    at = {mark.text: (mark.x, mark.y) for mark in marks(drawn)}
    assert at["two"][0] - at["one"][0] == 300
    assert at["two"][1] - at["one"][1] == 150
    assert at["a line"][1] < at["one"][1] - 70
    assert at["second"][1] < at["two"][1]
    root = ElementTree.fromstring(drawn)
    assert float(root.get("width", 0)) == 300 + 250
    ids = re.findall(r'\bid="([^"]+)"', drawn)
    assert len(ids) == len(set(ids)) == 2
    assert sorted(re.findall(r"url\(#([^)]+)\)", drawn)) == sorted(ids)


@settings(max_examples=20, deadline=None)
@given(st.text(max_size=120), st.lists(st.text(max_size=200), max_size=3))
def test_a_heading_stays_inside_its_picture(title: str, lines: list[str]) -> None:
    drawn = svg([panel()], title, lines)
    root = ElementTree.fromstring(drawn)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    heading = [mark for mark in marks(drawn) if mark.kind == "" and mark.text.strip()]
    rows = [mark.y for mark in heading]
    assert rows == sorted(set(rows))
    for mark in heading:
        size = float(mark.node.get("font-size", style.FONT_SIZE))
        assert mark.x + text.width(mark.text, size) <= width
        assert mark.y <= height


def test_numbers_are_short_and_text_is_kept_as_it_is() -> None:
    drawn = svg([panel("0.123456789")])
    assert "0.123456789" in texts(drawn)
    tags = "".join(re.findall(r"<[^>]*>", drawn))
    assert not re.search(r"\d\.\d{3,}", tags)


def test_a_png_has_a_page_and_dark_ink(tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    path.write_bytes(canvas.encoded("png", [panel()], "title"))
    image = picture(path)
    assert (image[0, 0] == 1).all(), "white"
    assert image.min() < 0.3, "ink"
    root = ElementTree.fromstring(svg([panel()], "title"))
    assert image.shape[1] == 2 * float(root.get("width", 0))
    assert style.DARK_INK not in svg([panel()])


def test_nothing_is_fetched() -> None:
    spec = {**panel().spec, "data": {"url": "http://127.0.0.1:9/points.json"}}
    with pytest.raises(ValueError, match="not allowed"):
        svg([Panel(spec)])
