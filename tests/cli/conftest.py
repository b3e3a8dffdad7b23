"""Shared fixtures for tests of commands: a separate state folder, commands that run no case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.cli import Matbench, Plan, Refusal, last_run

from matbench.measure import worker
from matbench.measure.outcomes import not_measured
from matbench.measure.session import Found
from matbench.model import Case, DeviceInfo
from matbench.records import provenance
from matbench.records.outcome import Outcome


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate last run for each test, and an empty working folder."""
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No case is run, or the test fails."""

    def no_case(*_: Any) -> None:
        raise AssertionError("a case was run")

    for method in ("measure", "look", "compare", "clock_blocks"):
        monkeypatch.setattr(worker.Worker, method, no_case)


@pytest.fixture
def refusal(own_state: None, matbench: Matbench) -> Refusal:
    """Runs a command that is refused in one line, without losing or writing anything."""

    def refused(*arguments: str | Path) -> str:
        last = provenance.last_run_path()
        Path("kept.jsonl").write_bytes(b"kept as it is")
        last.parent.mkdir(exist_ok=True)
        last.write_bytes(b"kept as well")
        before = {path.name for path in Path().iterdir()}
        result = matbench(*arguments, code=2)
        assert result.stdout == ""
        assert result.stderr.endswith("\n")
        assert result.stderr.count("\n") == 1
        assert result.stderr.startswith("matbench")
        assert Path("kept.jsonl").read_bytes() == b"kept as it is"
        assert last.read_bytes() == b"kept as well"
        assert {path.name for path in Path().iterdir()} == before
        return result.stderr.rstrip("\n").split(": ", 1)[1]

    return refused


@pytest.fixture
def planned(
    own_state: None, monkeypatch: pytest.MonkeyPatch, matbench: Matbench, device: DeviceInfo
) -> Plan:
    """The cases that a command line selects, without running them."""

    def skip(self: worker.Worker, case: Case) -> Found:
        return Found(not_measured(case, self.device, "skipped", "for this test"))

    monkeypatch.setattr(worker.Worker, "measure", skip)
    monkeypatch.setattr(worker.Crew, "start", lambda *_: None)
    monkeypatch.setattr(worker.Crew, "build_ahead", lambda *_: None)

    def plan(*arguments: str | Path) -> list[Outcome]:
        matbench("run", "--allow-skips", *arguments)
        return last_run()

    return plan
