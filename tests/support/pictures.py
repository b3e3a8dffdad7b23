"""Reading pictures: marks, bars and texts of an SVG, tags of a page, colours of a PNG."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest

needs_plots = pytest.mark.skipif(
    importlib.util.find_spec("vl_convert") is None, reason="the extra `plots` is not installed"
)

#: How tall the scale at the bottom is, in pixels.
_SCALE = 100
SVG = "{http://www.w3.org/2000/svg}"
TITLE = "tiled TILE=16 <&> $x$ at 1000"


class Mark(NamedTuple):
    """Something drawn: its class in Vega, its text or shape, where, and how."""

    kind: str
    text: str
    x: float
    y: float
    fill: str
    stroke: str
    node: ElementTree.Element

    @property
    def is_hollow(self) -> bool:
        return self.node.get("fill-opacity") == "0"


def marks(svg: str, kind: str = "") -> list[Mark]:
    """Everything drawn whose class contains `kind`, such as `mark-symbol role-mark`."""
    return [mark for mark in _marks(ElementTree.fromstring(svg), 0, 0, "") if kind in mark.kind]


def _marks(node: ElementTree.Element, x: float, y: float, kind: str) -> Iterator[Mark]:
    shift = re.match(r"translate\(([-\d.]+),([-\d.]+)\)", node.get("transform", ""))
    if shift:
        x, y = x + float(shift[1]), y + float(shift[2])
    kind = node.get("class", kind)
    if node.tag in (f"{SVG}text", f"{SVG}path", f"{SVG}line"):
        text = "".join(node.itertext()) if node.tag == f"{SVG}text" else node.get("d", "")
        at = x + float(node.get("x", 0)), y + float(node.get("y", 0))
        yield Mark(kind, text, *at, node.get("fill", ""), node.get("stroke", ""), node)
    for child in node:
        yield from _marks(child, x, y, kind)


def texts(svg: str) -> set[str]:
    nodes = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return {"".join(node.itertext()).strip() for node in nodes}


def words(svg: str) -> str:
    return " ".join(
        "".join(node.itertext()) for node in ElementTree.fromstring(svg).iter(f"{SVG}text")
    )


def pixels(path: Path) -> np.ndarray:
    """The colours of a PNG between 0 and 1, a row of pixels after another."""
    from PIL import Image

    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")) / 255


def near(image: np.ndarray, colour: str) -> np.ndarray:
    """Where a picture shows a colour, above its scale."""
    wanted = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return np.asarray((np.abs(image[:-_SCALE] - wanted) < 0.04).all(axis=2))
