"""Pictures from the command line: `matbench plot`, timelines."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import QUICK, Matbench
from support.pictures import bars, needs_plots, words

from matbench.model import DeviceInfo


@needs_plots
@pytest.mark.parametrize("suffix", [".html", ".svg"])
def test_a_timeline_of_a_real_launch(matbench: Matbench, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    matbench("blocks", "tiled", "--sizes", "100", "--set", "TILE=16", "--timeline", path)
    text = path.read_text(encoding="utf-8")
    assert "tiled TILE=16 at 100" in text
    assert suffix == ".html" or len(bars(text)) == 49


@needs_plots
def test_charts_from_record_files(matbench: Matbench, tmp_path: Path, device: DeviceInfo) -> None:
    files = []
    for number, sizes in enumerate(("8,16", "32,4x8x4")):
        files.append(tmp_path / f"{number}.jsonl")
        matbench("run", "single-block", "numpy", "--sizes", sizes, *QUICK,
                 "--output", files[-1])  # fmt: skip
    matbench("plot", *files, "--output", tmp_path / "c.svg")
    said = words((tmp_path / "c.svg").read_text(encoding="utf-8"))
    assert "single-block" in said
    assert "numpy" in said
    assert all(size in said for size in ("8", "16", "32"))
    assert "2 cases of other shapes" in said
    # The folder that a picture was drawn in holds nothing else.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.jsonl", "1.jsonl", "c.svg"]
