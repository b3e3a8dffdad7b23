"""The cache of this machine, as commands use and clear it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import QUICK, Matbench, outside

from matbench.cache import Cache

pytestmark = pytest.mark.usefixtures("own_state", "scripted_device")


def test_a_clear_cache(matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(folder))
    Cache().put("key", bytes(2_000_000))
    assert matbench("doctor", "--clear-cache").stdout == f"removed 2.0 MB from {folder}\n"
    assert list(folder.iterdir()) == []
    assert matbench("doctor", "--clear-cache").stdout == f"removed 0.0 MB from {folder}\n"


def test_shared_cache(matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(folder))
    result = matbench("run", "tiled", "--sizes", "8", "--output", "out.jsonl", code=2)
    assert result.stderr == (
        f"matbench: cache folder {folder}: other users can write to it; "
        "run `chmod 700` on it or set MATBENCH_CACHE_DIR to another folder\n"
    )
    assert not Path("out.jsonl").exists()


@pytest.mark.parametrize("kind", ["file", "below a file", "not to be made"])
def test_an_unusable_cache_folder_is_one_line(
    kind: str, tmp_path: Path, matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    folder = {"file": file, "below a file": file / "x", "not to be made": Path("/proc/x")}[kind]
    if not Path("/proc").is_dir() and folder == Path("/proc/x"):
        pytest.skip("no /proc")
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(folder))
    done = matbench("run", "tiled", "--sizes", "9", "--set", "TILE=8", code=2)
    assert done.stderr.count("\n") == 1
    reason = "cannot be written: " if kind == "not to be made" else "not a folder; "
    assert done.stderr.startswith(f"matbench: cache folder {folder}: {reason}")
    assert "set MATBENCH_CACHE_DIR to another folder" in done.stderr


@pytest.mark.skipif(not Path("/proc/self/fdinfo").is_dir(), reason="no folder that stays empty")
def test_a_cache_folder_that_takes_no_file_stays_empty() -> None:
    command = ("run", "tiled", "--set", "TILE=8", "--sizes", "9", *QUICK)
    done = outside(*command, MATBENCH_CACHE_DIR="/proc/self/fdinfo")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_cache_that_is_a_file_is_not_cleared(
    matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(file))
    result = matbench("doctor", "--clear-cache", code=2)
    assert result.stderr == (
        f"matbench: cache folder {file}: not a folder; set MATBENCH_CACHE_DIR to another folder\n"
    )
    assert file.read_text() == "kept"
