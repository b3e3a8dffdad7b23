"""Provenance: the environment of a run."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from support.records import device

from matbench.records import encoding, provenance
from matbench.records.environment import SCHEMA


def test_the_environment_says_where_and_with_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    settings = {"seed": 0, "timeout": math.inf}
    found = provenance.environment(["matbench", "run"], [device()], settings)
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
    assert provenance.last_run_path() == tmp_path / "last-run.jsonl"
    monkeypatch.delenv("MATBENCH_STATE_DIR")
    assert provenance.state_folder().is_absolute()
