"""Error maps show where C is wrong, down to a single element."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.pictures import TITLE, near, needs_plots, picture, words

from matbench.analysis import error_map as reduction
from matbench.show.pictures import error_map


def product(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C, R and the bound; C is right everywhere, its error a third of the bound."""
    random = np.random.default_rng(1)
    R = 1 + random.random((rows, columns))
    bound = 1e-4 * R
    return (R + bound * random.uniform(-0.3, 0.3, R.shape)).astype(np.float32), R, bound


def draw(C: np.ndarray, R: np.ndarray, bound: np.ndarray | None, path: Path) -> np.ndarray:
    wrong = ~(np.abs(C - R) <= bound) if bound is not None else ~(C == R)
    error_map.draw(reduction.of(C, R, wrong, bound=bound, title=TITLE), path)
    return picture(path)


@needs_plots
@pytest.mark.parametrize(
    "at",
    [(700, 123), *(pytest.param(end, marks=pytest.mark.long) for end in ((0, 0), (1499, 1499)))],
)
def test_a_single_wrong_element_is_seen(at: tuple[int, int], tmp_path: Path) -> None:
    C, R, bound = product(1500, 1500)
    before = draw(C, R, bound, tmp_path / "right.png")
    assert not near(before, "#7a1c00").any()
    C[at] *= 2
    after = draw(C, R, bound, tmp_path / "wrong.png")
    if 0 < at[0] < 1499:  # else half under the frame
        assert near(after, "#7a1c00").any(), "the cell of the element"
    assert near(after, "#000000").sum() > near(before, "#000000").sum() + 20, "a ring around it"


@needs_plots
def test_what_was_never_a_number_is_black(tmp_path: Path) -> None:
    C, R, bound = product(64, 64)
    C[32:, :] = np.nan
    image = draw(C, R, bound, tmp_path / "nan.png")
    rows = np.flatnonzero(near(image, "#000000").mean(axis=1) > 0.5)
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    assert max(map(len, runs)) > 0.3 * len(image), "half of C"
    assert sum(map(len, runs)) - max(map(len, runs)) < 5, "and but for the frame nothing else"


@needs_plots
@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (500, 3), (65, 129), (401, 400)])
def test_any_shape_of_c(shape: tuple[int, int], tmp_path: Path) -> None:
    C, R, bound = product(*shape)
    C[shape[0] // 2, shape[1] // 2] += 1
    assert near(draw(C, R, bound, tmp_path / "e.png"), "#7a1c00").any()


@needs_plots
@pytest.mark.parametrize("off", [1e-6, 1.0, 1e30, np.inf])
def test_where_c_must_be_exact(off: float, tmp_path: Path) -> None:
    R = np.arange(64.0, dtype=np.float32).reshape(8, 8) / 64
    C = R.copy()
    assert not near(draw(C, R, None, tmp_path / "right.png"), "#7a1c00").any()
    C[2, 3] += np.float32(off)
    image = draw(C, R, None, tmp_path / "wrong.png")
    colour = "#000000" if np.isinf(off) else "#7a1c00"
    assert near(image, colour).sum() > 1000


@needs_plots
def test_an_error_map_says_how_many_are_wrong(tmp_path: Path) -> None:
    C, R, bound = product(1000, 900)
    C[5:7, 8] = 0
    wrong = ~(np.abs(C - R) <= bound)
    error_map.draw(reduction.of(C, R, wrong, bound=bound, title=TITLE), tmp_path / "e.svg")
    said = words((tmp_path / "e.svg").read_text(encoding="utf-8"))
    for part in (
        TITLE, "2 of 900,000 elements wrong", "the worst of 3 × 3 elements", "row of C",
        "column of C", "|C − expected| / error bound",
    ):  # fmt: skip
        assert part in said
