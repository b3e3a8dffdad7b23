"""Several GPUs of one model: what they share, what each measures, and what a table says."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import record_files, scripted
from support.cli import QUICK, Matbench, Refusal, last_run, records_in
from support.fixtures import Noted

from matbench.bench.options import FIRST, Round
from matbench.features.probes import cases
from matbench.model import Case, DeviceInfo
from matbench.records.environment import last_run_path
from matbench.records.outcome import Outcome
from matbench.worker import worker


def cards(name: str = "A Card") -> list[DeviceInfo]:
    """Two GPUs of one model, with UUIDs."""
    return [
        msgspec.structs.replace(
            scripted.DEVICE, index=index, name=name, kind="gpu",
            properties={"UUID": f"GPU-{name[-1]}{index}"},
        )
        for index in range(2)
    ]  # fmt: skip


def installed(patch: pytest.MonkeyPatch, found: list[DeviceInfo]) -> None:
    """These are the devices of this machine, with the fixture `scripted_device`."""
    patch.setattr(scripted, "DEVICES", found)


RUN = ("run", "naive-2d", "tiled", "--set", "TILE=8", *QUICK)


@pytest.fixture
def twins(
    scripted_device: None, own_state: None, monkeypatch: pytest.MonkeyPatch
) -> list[DeviceInfo]:
    found = cards()
    installed(monkeypatch, found)
    return found


def by_problem() -> dict[str, set[str]]:
    """The devices that measured each size in the last run."""
    found: dict[str, set[str]] = defaultdict(set)
    for outcome in last_run():
        assert outcome.status == "measured", outcome.reason
        found[outcome.case.problem.size].add(outcome.case.device_id)
    return found


def test_a_size_has_one_gpu_and_all_gpus_work(matbench: Matbench, twins: list[DeviceInfo]) -> None:
    result = matbench(*RUN, "--sizes", "16,17,18,19", "--device", "all")
    found = by_problem()
    assert list(map(len, found.values())) == [1, 1, 1, 1]
    assert set.union(*found.values()) == {info.identity for info in twins}
    [environment], outcomes = record_files.read(last_run_path())
    assert [info.identity for info in environment.devices] == ["GPU-d0", "GPU-d1"]
    assert len(outcomes) == 8
    assert "8 measured, 0 wrong, 0 failed, 0 skipped" in result.stdout
    assert re.search(r"on opencl:0", result.stdout)
    assert re.search(r"on opencl:1", result.stdout)
    assert result.stdout.count("★") >= 4  # one a size at least; equals share it


def test_repetitions_have_the_same_gpu(matbench: Matbench, twins: list[DeviceInfo]) -> None:
    matbench(*RUN, "--sizes", "16,17,18", "--device", "all", "--repeat", "3")
    assert [len(ids) for ids in by_problem().values()] == [1, 1, 1]
    assert sorted(o.repetition for o in last_run()) == sorted([1, 2, 3] * 6)


def test_a_resumed_sweep_takes_what_any_gpu_measured_and_ends_a_size_where_it_began(
    matbench: Matbench, twins: list[DeviceInfo], tmp_path: Path
) -> None:
    path = tmp_path / "out.jsonl"
    words = (*RUN, "--sizes", "16,17,18")
    matbench(*words, "--device", "1", "--output", path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]))  # both cases of 16, one of 17
    before = records_in(path)
    matbench(*words, "--device", "all", "--resume", path)
    after = records_in(path)
    assert after[:3] == before
    assert len(after) == 6
    where = {outcome.case.problem.size: outcome.case.device_id for outcome in after[3:]}
    assert where["17"] == "GPU-d1"
    # Only device 0 may be used now: what device 1 measured is measured again.
    matbench(*words, "--device", "0", "--resume", path)
    again = records_in(path)[6:]
    assert {outcome.case.device_id for outcome in again} <= {"GPU-d0"}
    assert {"16", "17"} <= {outcome.case.problem.size for outcome in again}


def test_check_and_tune_use_all_gpus(
    matbench: Matbench, twins: list[DeviceInfo], noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = noted(worker.Worker, "measure")

    def used() -> set[str]:
        """By what was checked or measured since."""
        places = {one.device.place for one, *_ in measured}
        measured.clear()
        return places

    every = cases.probed
    monkeypatch.setattr(cases, "probed", lambda *arguments: every(*arguments)[:6])
    words = ("check", "tiled", "--set", "TILE=8", "--format", "json", "--device")
    one = matbench(*words, "0")
    assert used() == {"opencl:0"}
    several = matbench(*words, "all")
    assert used() == {"opencl:0", "opencl:1"}

    def probes(text: str) -> list[tuple[str, Any, Any]]:
        return [
            (r["purpose"], r["outcome"]["case"]["problem"], r["outcome"]["status"])
            for r in json.loads(text)
            if r["type"] == "probe"
        ]

    assert probes(several.stdout) == probes(one.stdout)  # also in their order
    matbench("tune", "tiled", "--set", "TILE=8,16", "--sizes", "16,24", "--device", "all")
    assert used() == {"opencl:0", "opencl:1"}


def test_other_commands_ask_for_one(refusal: Refusal, twins: list[DeviceInfo]) -> None:
    for words in (["compare", "tiled", "naive-2d"], ["blocks", "tiled"], ["explain", "tiled"]):
        for listed in ("0,1", "all"):
            told = refusal(*words, "--device", listed)
            assert told == f"--device {listed!r}: this command takes one device"
    assert refusal("run", "tiled", "--device", "card") == (
        "--device 'card': which one? opencl:0 A Card; opencl:1 A Card "
        "(or several: opencl:0,opencl:1)"
    )
    assert refusal("run", "tiled", "--device", "0,7").startswith("--device '7': no such device")


def test_devices_of_two_models_each_measure_everything(
    matbench: Matbench, twins: list[DeviceInfo], refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, [twins[0], cards(name="Another Model")[1]])
    matbench(*RUN, "--sizes", "16", "--device", "all")
    assert len(last_run()) == 4
    assert by_problem() == {"16": {"GPU-d0", "GPU-l1"}}
    for command in ("check", "tune"):
        assert refusal(command, "tiled", "--device", "all") == (
            "--device 'all': this command takes devices of one model, not "
            "opencl A Card and opencl Another Model"
        )


def test_ctrl_c_keeps_what_all_gpus_have_done(
    matbench: Matbench, twins: list[DeviceInfo], listening: None, monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    path = tmp_path / "out.jsonl"
    begun: list[str] = []
    write = worker.Worker.measure

    def measure(self: worker.Worker, case: Case, which: Round = FIRST) -> Outcome:
        begun.append(case.label)
        if len(begun) == 5:  # three or four are done, and will soon be recorded
            until = time.monotonic() + 30
            while len(records_in(path)) < 3 and time.monotonic() < until:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
        if len(begun) >= 5:
            time.sleep(0.5)  # until the main thread has its turn
        return write(self, case, which)

    monkeypatch.setattr(worker.Worker, "measure", measure)
    words = (*RUN, "--sizes", "16,17,18,19", "--device", "all")
    result = matbench(*words, "--output", path, code=130)
    kept = records_in(path)
    assert 3 <= len(kept) < 8
    assert f"interrupted: {len(kept)} of 8 cases are done" in result.stderr
    monkeypatch.setattr(worker.Worker, "measure", write)
    matbench(*words, "--resume", path)
    after = records_in(path)
    assert after[: len(kept)] == kept
    assert len([outcome for outcome in after if not outcome.interrupted]) == 8
