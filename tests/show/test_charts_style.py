"""The palette can be told apart by all readers, on light pages and dark ones."""

from __future__ import annotations

import numpy as np
import pytest

from matbench.show.charts import style

#: Machado, Oliveira and Fernandes, 2009: what readers without one kind of cones see.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": np.array(
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]
    ),
    "deuteranopia": np.array(
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
    ),
    "tritanopia": np.array(
        [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
DARK_PAGE = 0.0056  # the luminance of #0d1117


def linear(colours: tuple[str, ...]) -> np.ndarray:
    rgb = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in colours])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def least_difference(colours: tuple[str, ...], blindness: str) -> float:
    """The smallest ΔE*ab of two of the colours."""
    seen = np.clip(linear(colours) @ BLINDNESS[blindness].T, 0, 1)
    ratio = seen @ TO_XYZ.T / (0.9505, 1, 1.089)
    root = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    lab = np.stack(
        [116 * root[:, 1], 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])], -1
    )
    apart = np.linalg.norm(lab[:, None] - lab[None], axis=-1)
    return float(apart[np.triu_indices(len(colours), 1)].min())


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_colours_of_a_panel_can_be_told_apart(blindness: str) -> None:
    assert least_difference(style.PALETTE, blindness) > 20


def test_the_test_tells_palettes_apart() -> None:
    red_and_green = ("#2c9650", "#8f6a4e")
    assert least_difference(red_and_green, "none") > 20
    assert least_difference(red_and_green, "deuteranopia") < 10


@pytest.mark.parametrize("colours", [style.PALETTE, (style.INK, style.NEUTRAL)])
def test_colours_stand_out_from_light_and_dark_pages(colours: tuple[str, ...]) -> None:
    luminance = linear(colours) @ TO_XYZ[1]
    least = 2.3 if colours is style.PALETTE else 3.5
    assert (1.05 / (luminance + 0.05)).min() > least
    assert ((luminance + 0.05) / (DARK_PAGE + 0.05)).min() > least


def test_32_lines_differ_in_colour_or_shape() -> None:
    lines = [(f"k{i}", False) for i in range(32)]
    found = style.looks([("base", True), *lines])
    assert len(set(found.values())) == 33
    assert [found[name].colour for name, _ in lines[:8]] == list(style.PALETTE)
    assert found["base"].colour == style.NEUTRAL
