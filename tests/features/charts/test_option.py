"""`--error-map`, and what is said where nothing can be drawn."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.cli import QUICK, Matbench
from support.paths import BAD_KERNELS, ROOT
from support.pictures import near, needs_plots, picture

from matbench.errors import UsageError
from matbench.features.charts import drawing, error_map_chart


def test_without_what_draws_nothing_is_run(
    matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for command in (
        ("blocks", "tiled", "--timeline", tmp_path / "t.html"),
        ("run", "tiled", "--error-map", tmp_path / "e.png"),
        ("page", ROOT / "results" / "h200.jsonl", "--output", tmp_path / "p.html"),
    ):
        done = matbench(*command, code=2)
        assert done.stdout == ""
        assert " need vl_convert; pip install 'matbench-cuda[plots]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"), [("e.html", "must end in .svg or .png"), ("missing/e.png", "no folder")]
)
def test_an_error_map_that_cannot_be_written(matbench: Matbench, name: str, message: str) -> None:
    done = matbench("run", "tiled", "--error-map", name, code=2)
    assert done.stdout == ""
    assert message in done.stderr


@needs_plots
def test_each_wrong_case_gets_a_picture_and_right_ones_none(
    matbench: Matbench, tmp_path: Path
) -> None:
    options = ("--set", "TILE=8", "--format", "json", "--error-map", tmp_path / "e.png", *QUICK)
    bad = BAD_KERNELS / "bad-last-row-left-out.cu"
    done = matbench("run", bad, "tiled", "--sizes", "20,20x31x7", *options, code=1)
    outcomes = [record for record in json.loads(done.stdout) if record["type"] == "outcome"]
    wrong = [outcome for outcome in outcomes if outcome["status"] == "wrong"]
    assert [outcome["notes"] for outcome in wrong] == [
        [f"error map: {tmp_path / name}"] for name in ("e.png", "e_2.png")
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.png", "e_2.png"]
    image = picture(tmp_path / "e.png")
    black = near(image, "#000000").mean(axis=1)
    assert 0 < (black > 0.5).sum() < len(image) / 10, "one row of 20 was never written"


@needs_plots
def test_a_picture_that_fails_leaves_the_outcome(
    matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "e.png"

    def fail(*_: object) -> None:
        raise UsageError(f"{path}: cannot be written: No space left on device")

    monkeypatch.setattr(error_map_chart, "draw", fail)
    bad = BAD_KERNELS / "bad-last-row-left-out.cu"
    run = ("run", bad, "--set", "TILE=8", "--sizes", "20", "--error-map", path)
    done = matbench(*run, "--format", "json", code=1)
    [outcome] = [record for record in json.loads(done.stdout) if record["type"] == "outcome"]
    assert outcome["status"] == "wrong"
    [note] = outcome["notes"]
    assert note.startswith(f"no error map: {path}: cannot be written")


# What drawing needs


@pytest.mark.parametrize("name", ["t.gif", "t", "t.svg.txt", ".svg"])
def test_a_kind_of_picture_that_is_not_made(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"name must end in \.svg, \.png or \.html"):
        drawing.require(tmp_path / name, ".html")


def test_a_picture_needs_a_folder_and_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder"):
        drawing.require(tmp_path / "missing" / "t.svg")
    (tmp_path / "t.svg").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        drawing.require(tmp_path / "t.svg")
