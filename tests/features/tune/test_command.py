"""`matbench tune`: the winner, what is printed and saved, and `run --tuned` afterwards."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path

import msgspec
import pytest
from support import tunable
from support.cli import QUICK, Matbench, last_run

from matbench.analysis.statistics import ComparisonPlan
from matbench.features.tune import search
from matbench.features.tune.stored import Store
from matbench.kernelfile import catalogue
from matbench.model import DeviceInfo, Problem
from matbench.worker import worker

pytestmark = pytest.mark.usefixtures("short_turns")

SIZE = Problem(48, 48, 48)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate state folder."""
    folder = tmp_path / "state"
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tunable.cu"
    path.write_text(tunable.KERNEL, encoding="utf-8")
    return path


# -- who wins ------------------------------------------------------------------------------------


def test_the_fastest_that_is_right_wins(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, 0.2 s may not be enough to tell two kernels apart.
    monkeypatch.setattr(search, "ComparisonPlan", ComparisonPlan)
    result = matbench("tune", file, "--sizes", "48", "--format", "json")
    environment, *records = json.loads(result.stdout)
    assert environment["type"] == "environment"
    rows = {tuple(one["outcome"]["case"]["params"].values()): one for one in records}
    assert rows.keys() == {(1, 1), (8, 1), (64, 1)}
    first, default, last = rows[1, 1], rows[8, 1], rows[64, 1]
    assert {one["type"] for one in records} == {"tuning"}
    assert [one["is_best"] for one in (first, default, last)] == [True, False, False]
    assert [one["is_default"] for one in (first, default, last)] == [False, True, False]
    assert [one["complete"] for one in records] == [True] * 3
    assert first["median_ratio"] < 1 == default["median_ratio"] < last["median_ratio"]
    low, high = first["comparison"]["interval"]
    assert low <= first["comparison"]["ratio"] <= high < 1
    assert (default["comparison"], last["comparison"]) == (None, None)
    wrong = [line for line in result.stderr.splitlines() if "KIND=2 at 48 is wrong: " in line]
    assert len(wrong) + result.stderr.count("KIND=4 at 48 is failed: ") == 5
    assert "and 1 more were wrong or failed" in result.stderr
    [kept] = Store().winners()
    assert (kept.kernel, kept.params, kept.problem) == ("tunable", {"TURNS": 1, "KIND": 1}, SIZE)
    assert (kept.device, kept.driver) == (device.name, device.driver)
    assert (kept.tried, kept.combinations, kept.complete) == (9, 12, True)
    assert kept.ratio == first["comparison"]["ratio"]
    assert kept.sha256 == catalogue.load(file).sha256


def test_a_default_that_nothing_beats_stays(matbench: Matbench, file: Path, state: Path) -> None:
    result = matbench("tune", file, "--sizes", "48", "--set", "TURNS=8,64", "--set", "KIND=1")
    assert "winner, default" in result.stdout
    [kept] = Store().winners()
    assert (kept.params, kept.ratio) == ({"TURNS": 8, "KIND": 1}, None)


def test_given_values_are_all_that_is_tried(matbench: Matbench, state: Path) -> None:
    def rows(values: str) -> list[dict[str, str]]:
        result = matbench("tune", "tiled", "--set", f"TILE={values}", "--sizes", "20",
                          "--format", "csv")  # fmt: skip
        return list(csv.DictReader(io.StringIO(result.stdout)))

    [only] = rows("8")
    assert (only["params"], only["is_best"], only["is_default"]) == ("TILE=8", "true", "true")
    assert (only["ratio"], only["median_ratio"]) == ("", "1.0")
    default = {row["params"]: row["is_default"] for row in rows("16,4")}
    assert default == {"TILE=16": "true", "TILE=4": "false"}


@pytest.mark.long
def test_a_budget_of_time_outlives_a_candidate_that_hangs(
    matbench: Matbench, file: Path, state: Path
) -> None:
    hangs = "for (volatile int i = 0; TURNS == 1 && i < 1; sum = sum + 1.0f)\n        ;\n    "
    text = tunable.KERNEL.replace("C[(size_t)row * N", hangs + "C[(size_t)row * N")
    assert text != tunable.KERNEL
    file.write_text(text, encoding="utf-8")
    begun = time.monotonic()
    result = matbench(
        *("tune", file, "--sizes", "48", "--set", "KIND=1", "--budget", "20s", "--timeout", "60")
    )
    assert time.monotonic() - begun < 40
    assert "TURNS=1 KIND=1 at 48 is failed: stopped after " in result.stderr
    assert "because of --budget" in result.stderr
    [kept] = Store().winners()
    assert (kept.params, kept.tried) == ({"TURNS": 8, "KIND": 1}, 3)


def test_what_no_device_here_can_run_is_skipped_with_the_reason(
    matbench: Matbench, file: Path, state: Path
) -> None:
    file.write_text(tunable.KERNEL.replace("// [sweep]", '// requires = ["sm_999"]\n// [sweep]'))
    result = matbench("tune", file, "--sizes", "9,12", code=1)
    assert result.stdout.count("12 excluded: needs sm_999; this ") == 1
    assert "no candidate could be measured" in result.stdout
    assert Store().winners() == []


def test_nothing_right_is_no_winner(matbench: Matbench, file: Path, state: Path) -> None:
    file.write_text(tunable.KERNEL.replace("KIND = [1]\n", "KIND = [2]\n"), encoding="utf-8")
    result = matbench("tune", file, "--sizes", "9", "--set", "KIND=2", code=1)
    assert "no candidate could be measured" in result.stdout
    assert Store().winners() == []


@pytest.mark.parametrize("arguments", [
    ["numpy"], ["single-block"], ["tiled", "--budget", "soon"], ["tiled", "--set", "TURNS=1"],
])  # fmt: skip
def test_what_is_refused_is_one_line(matbench: Matbench, arguments: list[str]) -> None:
    result = matbench("tune", *arguments, code=2)
    assert result.stderr.startswith("matbench")
    assert result.stderr.count("\n") == 1


# -- what is kept and used -----------------------------------------------------------------------


def test_an_unwritable_state_folder_is_told_before_anything_is_measured(
    matbench: Matbench, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(tmp_path / "a-file" / "state"))
    monkeypatch.setattr(worker.Worker, "run", None)
    done = matbench("tune", file, "--sizes", "16", code=2)
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert "a-file/state/tuned.jsonl: cannot be written: Not a directory" in line
    assert "Errno" not in line


def test_tuned_takes_the_same_size_or_the_nearest(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path
) -> None:
    kernel, store = catalogue.load(file), Store()
    for size, turns in ((8, 2), (32, 3)):
        store.keep(tunable.winner(kernel, device, size, params={"TURNS": turns, "KIND": 1}))
    result = matbench("run", "--kernel", file, "--tuned", "--sizes", "32,36", *QUICK)
    assert result.stderr == ""
    same, near = last_run()
    assert [each.case.params for each in (same, near)] == [{"TURNS": 3, "KIND": 1}] * 2
    assert not [note for note in same.notes if "tuned" in note]
    assert near.notes[0] == "parameters tuned at 32"
    assert "parameters tuned at 32" in result.stdout


def test_without_a_winner_the_kernels_own_sweep_runs(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path
) -> None:
    kernel, store = catalogue.load(file), Store()
    store.keep(tunable.winner(kernel, device, 8, sha256="0" * 64))
    store.keep(msgspec.structs.replace(tunable.winner(kernel, device, 8), device="another"))
    result = matbench("run", "single-block", "--kernel", file, "--tuned", "--sizes", "5,8", *QUICK)
    own = [one.case.params for one in last_run() if one.case.params]
    assert own == [{"TURNS": 8, "KIND": 1}] * 2
    [line] = result.stderr.splitlines()
    assert line.startswith(f"tunable is not tuned for {device.name}; running its own sweep instead")
