"""A picture is one plain file, harmless whatever its chart says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.pictures import SVG, needs_plots, picture, texts

from matbench.features.charts import drawing, style

pytestmark = needs_plots
HOSTILE = "<&>\"' $x$ \u202e\0\ufffe ]]> 😀 --><script>"


def chart(label: str = "a") -> dict[str, Any]:
    return {
        "data": {"values": [{"x": 1, "label": label}, {"x": 3, "label": "b"}]},
        "mark": "text",
        "encoding": {
            "x": {"field": "x", "type": "quantitative"}, "text": {"field": "label"},
        },
        "width": 200,
    }  # fmt: skip


def svg(folder: Path, spec: dict[str, Any], title: str = "t", *lines: str) -> str:
    drawing.draw(folder / "p.svg", spec, title, lines)
    return (folder / "p.svg").read_text(encoding="utf-8")


def test_a_picture_says_what_it_is(tmp_path: Path) -> None:
    drawn = svg(tmp_path, chart(), "tiled", "one", "two")
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert [root[0].tag, root[0].text] == [f"{SVG}title", "tiled"]
    assert [root[1].tag, root[1].text] == [f"{SVG}desc", "one. two"]
    assert {"tiled", "onetwo"} <= texts(drawn), "each line is a part of the text"


def test_text_is_text_and_never_anything_else(tmp_path: Path) -> None:
    drawn = svg(tmp_path, chart(HOSTILE), HOSTILE, HOSTILE)
    root = ElementTree.fromstring(drawn)
    assert not [node for node in root.iter() if node.tag == f"{SVG}script"]
    shown = "<&>\"' $x$ \ufffd\ufffd\ufffd ]]> 😀 --><script>"
    assert [found for found in texts(drawn) if found == shown]
    assert root[0].text == shown
    assert re.findall(r'(?:href|src)="([^"]*)"|url\(([^#])|@import', drawn) == []


def test_a_long_heading_has_several_lines(tmp_path: Path) -> None:
    title, line = "a title " * 30, "a line " * 40
    root = ElementTree.fromstring(svg(tmp_path, chart(), title, line))
    assert 500 < float(root.get("width", 0)) < 1200
    spans = [node.text or "" for node in root.iter(f"{SVG}tspan")]
    assert "".join("".join(spans).split()) == "".join(f"{title}{line}".split())


def test_a_png_has_a_page_and_dark_ink(tmp_path: Path) -> None:
    drawing.draw(tmp_path / "p.PNG", chart(), "title")
    image = picture(tmp_path / "p.PNG")
    assert (image[0, 0] == 1).all(), "white"
    assert image.min() < 0.3, "ink"
    drawn = svg(tmp_path, chart(), "title")
    width = float(ElementTree.fromstring(drawn).get("width", 0))
    assert image.shape[1] == pytest.approx(2 * width, abs=2)
    assert style.DARK_INK not in drawn


def test_nothing_is_fetched(tmp_path: Path) -> None:
    spec = {**chart(), "data": {"url": "http://127.0.0.1:9/points.json"}}
    for name in ("p.svg", "p.png"):
        with pytest.raises(ValueError, match="not allowed"):
            drawing.draw(tmp_path / name, spec, "t")
