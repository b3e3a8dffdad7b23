"""Temporary folders: none outlives its run for long, and nobody else's is touched."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from support.cli import QUICK, outside
from support.kernels import KernelWriter
from support.terminal import started

from matbench import temporary
from matbench.errors import UsageError
from matbench.measure.process import DiedError, Pool
from matbench.model import DeviceInfo


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process and its children; empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def left_behind(parent: Path, letter: str = "a") -> Path:
    """A folder as a process leaves it that is killed."""
    folder = parent / f"matbench-{letter * 8}.tmp"
    folder.mkdir()
    return folder


def as_another_run(parent: Path) -> None:
    """Clean up as a run does that starts now."""
    temporary._clean.__wrapped__(str(parent))


def test_a_folder_goes_with_its_block(parent: Path) -> None:
    with pytest.raises(ZeroDivisionError), temporary.folder() as folder:
        (folder / "file").write_text("text")
        assert list(parent.iterdir()) == [folder]
        raise ZeroDivisionError
    assert not list(parent.iterdir())


def test_the_next_run_removes_what_a_killed_one_left(
    parent: Path, write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    words = ("run", write_kernel(), *QUICK, "--sizes", "20")
    process = started(*words)
    ends = time.monotonic() + 60
    while not list(parent.glob("matbench-*.tmp/matbench-*.tmp")):  # a build
        assert process.poll() is None
        assert time.monotonic() < ends
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    assert list(parent.glob("matbench-*.tmp/matbench-*.tmp"))
    for name in ("matbench-notes", "matbench-my_notes"):
        (parent / name).mkdir()
    with temporary.folder() as live:
        assert outside(*words).returncode == 0
        assert {path.name for path in parent.iterdir()} == {
            live.name, "matbench-notes", "matbench-my_notes"
        }  # fmt: skip


def test_what_a_worker_and_its_programs_leave_goes_with_it(parent: Path) -> None:
    pool = Pool()
    try:
        for _ in range(2):
            made = [pool.call(tempfile.mkdtemp), pool.call(subprocess.getoutput, "mktemp")]
            [own] = parent.iterdir()
            assert {Path(path).parent for path in made} == {own}
            with pytest.raises(DiedError, match="SIGABRT"):
                pool.call(os.abort)
    finally:
        pool.kill()
    assert not list(parent.iterdir())


@pytest.mark.parametrize("where", ["before it is opened", "before it is locked"])
def test_a_folder_is_there_even_if_another_run_cleans_up_meanwhile(
    where: str, parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[str] = []

    def clean_up_once() -> None:
        if not turns:
            turns.append(where)
            as_another_run(parent)

    made, lock = tempfile.mkdtemp, fcntl.flock
    if where == "before it is opened":
        monkeypatch.setattr(tempfile, "mkdtemp", lambda **more: (made(**more), clean_up_once())[0])
    else:
        monkeypatch.setattr(fcntl, "flock", lambda *args: (clean_up_once(), lock(*args))[1])
    with temporary.folder() as folder:
        assert turns
        as_another_run(parent)
        assert list(parent.iterdir()) == [folder]
    assert not list(parent.iterdir())


def test_only_folders_are_removed_and_no_link_is_followed(parent: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("text")
    (left_behind(parent) / "link").symlink_to(precious)
    (parent / "matbench-bbbbbbbb.tmp").symlink_to(precious)
    os.mkfifo(parent / "matbench-cccccccc.tmp")
    as_another_run(parent)
    assert {path.name[9] for path in parent.iterdir()} == {"b", "c"}
    assert (precious / "file").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_stays(parent: Path) -> None:
    theirs = left_behind(parent)
    os.chown(theirs, 12345, 12345)
    left_behind(parent, "b")
    as_another_run(parent)
    assert list(parent.iterdir()) == [theirs]


def test_a_missing_folder_for_temporary_files_is_told(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(parent / "missing"))
    with pytest.raises(UsageError) as refused, temporary.folder():
        pass
    assert str(refused.value) == (
        "no temporary folder can be created: No such file or directory; "
        "set TMPDIR to another folder"
    )


def test_a_parent_that_cannot_be_listed_will_do(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `/tmp` with mode 1733."""

    def refused(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refused)
    with temporary.folder() as folder:
        assert folder.is_dir()
