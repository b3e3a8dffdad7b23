"""Requirements for the file of a picture."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from matbench.errors import UsageError
from matbench.show.pictures import files


@pytest.mark.parametrize("name", ["t.gif", "t", "t.svg.txt", ".svg"])
def test_a_kind_of_picture_that_is_not_made(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"name must end in \.svg, \.png or \.html"):
        files.require(tmp_path / name, ".html")


def test_a_picture_needs_a_folder_and_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder"):
        files.require(tmp_path / "missing" / "t.svg")
    (tmp_path / "t.svg").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        files.require(tmp_path / "t.svg")


def test_a_name_that_nothing_lies_at(tmp_path: Path) -> None:
    path = tmp_path / "e.png"
    for name in ("e.png", "e_2.png", "e_3.png"):
        assert files.unused(path) == tmp_path / name
        (tmp_path / name).touch()


def test_a_file_is_replaced_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, link = tmp_path / "p.svg", tmp_path / "link.svg"
    link.symlink_to(path)
    files.write(path, b"old")
    files.write(link, b"new")
    assert path.read_bytes() == b"new"
    assert link.is_symlink()

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:1])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UsageError, match=r"p\.svg: cannot be written: No space left on device"):
        files.write(path, b"newest")
    assert path.read_bytes() == b"new"
    assert sorted(tmp_path.iterdir()) == [link, path]


def test_what_draws_is_named_if_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError, match=r"need vl_convert; pip install 'matbench-cuda\[plots\]'$"):
        files.require(tmp_path / "t.svg")


def test_a_link_that_waits_beside_the_target_leads_nowhere(tmp_path: Path) -> None:
    """A cloned repository can hold one for any name that can be guessed."""
    precious, target = tmp_path / "precious", tmp_path / "page.html"
    precious.write_bytes(b"precious")
    (tmp_path / ".page.html.part").symlink_to(precious)
    files.write(target, b"page")
    assert (precious.read_bytes(), target.read_bytes()) == (b"precious", b"page")
    assert not target.is_symlink()
    assert len(list(tmp_path.iterdir())) == 3
