"""Writing: records stay, whatever ends the run, and no other run interferes."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from support.disk import full_after
from support.optional import present
from support.paths import ROOT, TESTS, programs
from support.record_files import only, read, write
from support.records import device, environment, in_turns, outcome

from matbench.errors import MatbenchError, UsageError
from matbench.records import encoding
from matbench.records.environment import SCHEMA, last_run_path, run_environment, state_folder
from matbench.records.writing import Mode, RecordWriter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.jsonl"


def kernels(path: Path) -> list[str]:
    """Whose outcomes a file has."""
    return [one.case.kernel for one in read(path)[1]]


def test_an_existing_file_is_kept_unless_told(path: Path) -> None:
    write(path, outcome())
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"--force.*--resume"):
        write(path, outcome(kernel="other"))
    assert path.read_bytes() == before
    write(path, outcome(kernel="other"), mode="resume")
    assert path.read_bytes().startswith(before)
    assert kernels(path) == ["tiled", "other"]
    path.chmod(0o640)
    write(path, outcome(kernel="third"), mode="force")
    assert kernels(path) == ["third"]
    assert path.stat().st_mode & 0o777 == 0o640
    assert only(path.parent) == ["x.jsonl"]


def test_force_keeps_the_old_file_until_something_is_recorded(path: Path) -> None:
    write(path, outcome())
    before = path.read_bytes()
    with RecordWriter(path, environment(), "force") as writer:
        assert path.read_bytes() == before
        writer.write(outcome(kernel="new"))
        assert kernels(path) == ["new"]
        writer.write(outcome(kernel="newer"))
    assert kernels(path) == ["new", "newer"]
    path.write_bytes(before)
    write(path, mode="force")
    assert path.read_bytes() == before


def test_nothing_is_left_open(path: Path) -> None:
    before = psutil.Process().num_fds()
    for kernel in ("first", "second", "third"):
        write(path, outcome(kernel=kernel), mode="force")
    assert psutil.Process().num_fds() == before


@pytest.mark.parametrize("mode", ["new", "force", "resume"])
def test_a_run_that_records_nothing_leaves_nothing(path: Path, mode: Mode) -> None:
    write(path, mode=mode)
    assert only(path.parent) == []


def test_force_replaces_what_cannot_be_read(path: Path) -> None:
    path.write_text("notes\n")
    write(path, outcome(), mode="force")
    assert read(path)[1] == [outcome()]


def test_an_empty_file_holds_nothing_that_could_be_lost(path: Path) -> None:
    path.touch()
    write(path, outcome())
    assert read(path)[1] == [outcome()]


def test_a_link_is_followed(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    write(link, outcome())
    write(link, outcome(kernel="forced"), mode="force")
    assert link.is_symlink()
    assert read(path)[1] == [outcome(kernel="forced")]


# Refusals before anything runs


def refused(path: Path, mode: Mode = "new") -> str:
    with pytest.raises(UsageError) as raised:
        RecordWriter(path, environment(), mode).__enter__()
    message = str(raised.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "is a folder" in refused(tmp_path)
    assert f"no folder {tmp_path / 'missing'}" in refused(tmp_path / "missing" / "x.jsonl")
    for path in (file / "x.jsonl", tmp_path / ("x" * 300), loop, Path("/proc/x.jsonl")):
        assert "name another file" in refused(path)
        assert "None" not in refused(path)
    with pytest.raises(UsageError, match="null"):  # an error without `strerror`
        RecordWriter(Path("a\0b.jsonl"), environment(), "new").__enter__()
    assert only(tmp_path) == ["file", "loop"]


def test_a_missing_or_unreadable_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.jsonl"):
        with pytest.raises(UsageError, match="cannot be read"):
            read(path)


PROGRAMS = programs(__file__)


def writing(path: Path, script: str) -> subprocess.Popen[bytes]:
    """Another process that writes to this file; it has printed a line."""
    text = PROGRAMS["imports"] + PROGRAMS[script]
    child = subprocess.Popen(
        [sys.executable, "-c", text, path, TESTS, ROOT], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert present(child.stdout).readline()
    return child


def test_killed_at_any_moment_the_file_is_valid(path: Path) -> None:
    for attempt in range(3):
        with writing(path, "writes until it is killed") as child:
            time.sleep(0.01 * (attempt + 1))
            child.send_signal(signal.SIGKILL)
        found = read(path)[1]
        assert [one.case.params["I"] for one in found] == list(range(len(found)))


# The disk


@pytest.mark.parametrize("mode", ["new", "force", "resume"])
def test_no_power_failure_costs(mode: Mode, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is synced once it is written, and a new file's name, too. `force` syncs the new file
    before it replaces the old one."""
    rows: list[tuple[bytes, bool]] = []
    names: list[int] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        state, here = os.fstat(descriptor), path.stat()
        if os.path.samestat(state, path.parent.stat()):
            names.append(here.st_ino)
        else:
            rows.append((os.pread(descriptor, state.st_size, 0), os.path.samestat(state, here)))
        fsync(descriptor)

    if mode != "new":
        write(path, outcome(kernel="earlier"))
    monkeypatch.setattr(os, "fsync", noted)
    with RecordWriter(path, environment(), mode) as writer:
        for kernel in ("first", "second"):
            writer.write(outcome(kernel=kernel))
            assert rows
            assert rows[-1][0] == path.read_bytes()
            assert mode == "resume" or names[-1:] == [path.stat().st_ino]
    assert rows[0][1] == (mode != "force")


def test_ctrl_c_during_a_sync_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def interrupted(descriptor: int) -> None:
        fsync(descriptor)
        raise KeyboardInterrupt

    with RecordWriter(path, environment()) as writer:
        writer.write(outcome(kernel="first"))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(os, "fsync", interrupted)
            writer.write(outcome(kernel="second"))
        writer.write(outcome(kernel="third"))
    assert kernels(path) == ["first", "second", "third"]


def test_a_resumed_file_has_its_findings(tmp_path: Path) -> None:
    """Its folder is created if it is matbench's own, and only then."""
    own = tmp_path / "folder" / "file.jsonl"
    with pytest.raises(UsageError, match="no folder"), RecordWriter(own, environment(), "resume"):
        pass
    found = in_turns(None)
    with RecordWriter(own, environment(), "resume", own=True) as writer:
        assert writer.findings == []
        writer.write(found)
    with RecordWriter(own, environment(), "resume", own=True) as writer:
        assert writer.findings == [found]


def test_what_was_recorded_before_the_disk_was_full_is_kept(path: Path) -> None:
    with RecordWriter(path, environment()) as writer:
        writer.write(outcome())
        before = path.read_bytes()
        with (
            full_after(len(before) + 100),
            pytest.raises(MatbenchError, match=r"holds 1 outcomes.*--resume"),
        ):
            writer.write(outcome(kernel="lost"))
        assert path.read_bytes() == before
        writer.write(outcome(kernel="after"))
    assert kernels(path) == ["tiled", "after"]


def test_force_on_a_full_disk_keeps_the_old_file(path: Path) -> None:
    write(path, outcome())
    before = path.read_bytes()
    with RecordWriter(path, environment(), "force") as writer:
        with full_after(100), pytest.raises(MatbenchError):
            writer.write(outcome(kernel="new"))
        assert path.read_bytes() == before
        assert only(path.parent) == [".x.jsonl.lock", "x.jsonl"]
    assert only(path.parent) == ["x.jsonl"]


# Two runs


def test_a_second_run_on_one_file_is_refused_until_the_first_is_gone(path: Path) -> None:
    with writing(path, "holds the file") as child:
        before = path.read_bytes()
        for mode in ("new", "force", "resume"):
            assert "another run is writing to it" in refused(path, mode)
        assert path.read_bytes() == before
        child.send_signal(signal.SIGKILL)
    assert only(path.parent) == [".x.jsonl.lock", "x.jsonl"]
    write(path, outcome(kernel="resumed"), mode="resume")
    assert kernels(path) == ["tiled", "resumed"]
    assert only(path.parent) == ["x.jsonl"]


def test_the_lock_is_the_files_wherever_it_is_named_from(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    with RecordWriter(path, environment()) as writer:
        writer.write(outcome())
        assert "another run" in refused(link, "resume")


# The last run


def test_the_last_run_is_kept_if_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(tmp_path / "deep" / "state"))
    path = last_run_path()
    for kernel in ("one", "two"):
        with RecordWriter(path, environment(), "force", best_effort=True) as writer:
            writer.write(outcome(kernel=kernel))
        assert writer.error is None
        assert read(path)[1] == [outcome(kernel=kernel)]
    # Another run, or this run's own output, keeps it: no record is lost.
    with (
        RecordWriter(path, environment(), "resume") as holder,
        RecordWriter(path, environment(), "force", best_effort=True) as writer,
    ):
        assert isinstance(writer.error, UsageError)
        writer.write(outcome(kernel="dropped"))
        holder.write(outcome(kernel="three"))
    assert kernels(path) == ["two", "three"]
    assert only(path.parent) == ["last-run.jsonl"]


def test_best_effort_never_stops_a_run(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with RecordWriter(file / "state" / "x", environment(), "force", best_effort=True) as writer:
        writer.write(outcome())
    assert "cannot be written" in str(writer.error)
    path = tmp_path / "x"
    with RecordWriter(path, environment(), "force", best_effort=True) as writer, full_after(100):
        writer.write(outcome())
        writer.write(outcome())
    assert "File too large" in str(writer.error)


# Provenance


def test_the_environment_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    settings = {"seed": 0, "timeout": math.inf}
    found = run_environment(["matbench", "run"], [device()], settings)
    assert found.schema == SCHEMA
    assert found.devices == (device(),)
    assert found.packages["numpy"] == np.__version__
    assert "pycuda" not in found.packages or found.packages["pycuda"]
    assert found.time.endswith("+00:00")
    assert found.project_revision is None
    plain = json.loads(encoding.array([found]))[0]
    assert plain["settings"] == {"seed": 0, "timeout": None}


def test_state_is_kept_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(tmp_path))
    assert last_run_path() == tmp_path / "last-run.jsonl"
    monkeypatch.delenv("MATBENCH_STATE_DIR")
    assert state_folder().is_absolute()
