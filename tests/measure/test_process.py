"""Worker processes: where they work, and what is left of them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from matbench.measure.process import DiedError, Pool


def test_processes_work_in_a_private_folder_that_goes_with_all_they_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pool = Pool()
    try:
        folder = Path(pool.call(os.getcwd))
        assert folder != tmp_path
        assert folder.stat().st_mode & 0o077 == 0
        assert Path(pool.call(tempfile.mkdtemp)).parent == folder
        assert pool.call(os.getenv, "TMPDIR") == str(folder)
        with pytest.raises(DiedError):
            pool.call(os.abort)
    finally:
        pool.kill()
    assert not folder.exists()
    assert Path.cwd() == tmp_path
