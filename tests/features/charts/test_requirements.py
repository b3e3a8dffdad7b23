"""Requirements for the file of a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from matbench.errors import UsageError
from matbench.features.charts import drawing


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
