"""A picture is one plain file, harmless whatever its chart says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from support import records
from support.pictures import SVG, TITLE, near, needs_plots, picture, texts, words

from matbench.analysis import error_map
from matbench.features.charts import outcomes, style
from matbench.features.charts import picture as pictures
from matbench.features.charts.definitions import Chart
from matbench.features.charts.error_map_chart import MISSING, RIGHT
from matbench.features.charts.style import ORANGES
from matbench.records.outcome import ErrorCells

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
    pictures.draw(folder / "p.svg", [Chart("", "", spec)], title, lines)
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
    pictures.draw(tmp_path / "p.PNG", [Chart("", "", chart())], "title")
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
            pictures.draw(tmp_path / name, [Chart("", "", spec)], "t")


# Error maps


def wrong_at(shape: tuple[int, int], *at: tuple[int, int], off: float = 1.0) -> ErrorCells:
    """The map of a C that is right but for some elements; without a bound, it must be exact."""
    R = np.zeros(shape)
    C = R.astype(np.float32)
    for place in at:
        C[place] += np.float32(off)
    return error_map.make_error_map(C, R, ~(C == R))


def draw(found: ErrorCells, path: Path) -> np.ndarray:
    [chart] = outcomes.error_maps([records.outcome(status="wrong", error_map=found)])
    pictures.draw(path, [chart], TITLE)
    return picture(path)


@pytest.mark.parametrize("at", [(700, 123), (0, 0), (1499, 1499)])
def test_a_single_wrong_element_is_seen_where_it_is(at: tuple[int, int], tmp_path: Path) -> None:
    image = draw(wrong_at((1500, 1500), at), tmp_path / "e.png")
    right, wrong = near(image, RIGHT), near(image, ORANGES[0])
    rows, columns = np.nonzero(right | wrong)
    (top, bottom), (left, width) = ((found.min(), np.ptp(found) + 1) for found in (rows, columns))
    row, column = (found.mean() for found in np.nonzero(wrong))
    assert (row - top) / bottom == pytest.approx(at[0] / 1500, abs=0.02)
    assert (column - left) / width == pytest.approx(at[1] / 1500, abs=0.02)


@pytest.mark.parametrize(
    ("off", "colour"),
    [(1e-6, ORANGES[0]), (1e30, ORANGES[0]), (np.inf, MISSING), (np.nan, MISSING)],
)
def test_colours_tell_how_far_an_element_is_off(off: float, colour: str, tmp_path: Path) -> None:
    image = draw(wrong_at((8, 8), (2, 3), off=off), tmp_path / "e.png")
    assert near(image, colour).sum() > 1000
    assert not near(draw(wrong_at((8, 8)), tmp_path / "right.png"), colour).any()


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (500, 3), (65, 129)])
def test_any_shape_of_c(shape: tuple[int, int], tmp_path: Path) -> None:
    found = wrong_at(shape, (shape[0] // 2, shape[1] // 2))
    assert near(draw(found, tmp_path / "e.png"), ORANGES[0]).any()


def test_an_error_map_says_how_many_are_wrong(tmp_path: Path) -> None:
    found = wrong_at((1000, 900), (5, 8), (6, 8), off=np.inf)
    wrong = records.outcome(status="wrong", reason="reference: 2 wrong\nmore", error_map=found)
    pictures.draw(tmp_path / "e.svg", outcomes.error_maps([wrong]), TITLE)
    said = words((tmp_path / "e.svg").read_text(encoding="utf-8"))
    for part in (
        TITLE, "reference: 2 wrong · 2 of 900,000 elements wrong",
        "the worst of 10 × 10 elements", "row of C", "column of C", "|C − expected|",
        "black: NaN or infinite",
    ):  # fmt: skip
        assert part.replace(" ", "") in said.replace(" ", ""), "in lines"


def test_a_label_that_is_cut_within_an_emoji_is_drawn(tmp_path: Path) -> None:
    """The library would fail on half of it."""
    spec = chart("a" + 99 * "😀")
    spec["encoding"]["y"] = {"field": "label"}
    for width in (60, 97):
        spec["encoding"]["y"]["axis"] = {"labelLimit": width}
        assert "\ufffd" in svg(tmp_path, spec)
