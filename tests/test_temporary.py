"""Temporary folders: none outlives its block or its worker."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.optional import present

from matbench import temporary
from matbench.errors import UsageError


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process and its children; empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_a_folder_goes_with_its_block(parent: Path) -> None:
    with pytest.raises(ZeroDivisionError), temporary.folder() as folder:
        (folder / "file").write_text("text")
        assert list(parent.iterdir()) == [folder]
        raise ZeroDivisionError
    assert not list(parent.iterdir())


def test_a_folder_of_a_killed_process_goes_with_the_next_run(parent: Path) -> None:
    script = "import os, time\nfrom matbench import temporary\n"
    script += (
        "with temporary.folder() as folder:\n    print(folder, flush=True)\n    time.sleep(60)"
    )
    killed, alive = (
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    left, used = (Path(present(process.stdout).readline().strip()) for process in (killed, alive))
    (left / "file").write_text("text")
    killed.kill()
    killed.communicate()
    target = parent / "matbench-my-own-cache"
    target.mkdir()
    (target / "file").write_text("text")
    (parent / "matbench-aaaaaaaa.tmp").symlink_to(target)
    (young := parent / "matbench-bbbbbbbb.tmp").mkdir()
    for folder in (left, used, target):
        os.utime(folder, (0, 0))
    with temporary.folder() as own:
        assert {*parent.iterdir()} == {used, target, young, own, parent / "matbench-aaaaaaaa.tmp"}
    assert (target / "file").exists()
    alive.kill()
    alive.communicate()


def test_no_temporary_folder_is_told(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(parent / "missing"))
    with pytest.raises(UsageError) as refused, temporary.folder():
        pass
    assert str(refused.value) == (
        "no temporary folder can be created: No such file or directory; "
        "set TMPDIR to another folder"
    )
