"""Reading pictures: bars and texts of an SVG, tags of a page, colours of a PNG."""

from __future__ import annotations

import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="the extra `plots` is not installed"
)

needs_plots = pytest.mark.skipif(
    any(importlib.util.find_spec(module) is None for module in ("altair", "vl_convert")),
    reason="the extra `plots` is not installed",
)

#: How tall the scale at the bottom is, in pixels.
_SCALE = 100
SVG = "{http://www.w3.org/2000/svg}"
TITLE = "tiled TILE=16 <&> $x$ at 1000"


def bars(svg: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(svg)
    [group] = [node for node in root.iter(f"{SVG}g") if node.get("id") == "blocks"]
    return [node for node in group.iter() if node.find(f"{SVG}title") is not None]


def tooltip(bar: ElementTree.Element) -> str:
    title = bar.find(f"{SVG}title")
    assert title is not None and title.text is not None
    return title.text


def texts(svg: str) -> set[str]:
    nodes = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return {"".join(node.itertext()).strip() for node in nodes}


def words(svg: str) -> str:
    return " ".join(
        "".join(node.itertext()) for node in ElementTree.fromstring(svg).iter(f"{SVG}text")
    )


class Page(HTMLParser):
    """The tags of a page, and what they refer to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if re.search("src|href", name)]

    def handle_data(self, data: str) -> None:
        self.text += data


def picture(path: Path) -> np.ndarray:
    from matplotlib.image import imread

    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    return np.asarray(imread(path))[:, :, :3]


def near(image: np.ndarray, colour: str) -> np.ndarray:
    """Where a picture shows a colour, above its scale."""
    wanted = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return (np.abs(image[:-_SCALE] - wanted) < 0.04).all(axis=2)
