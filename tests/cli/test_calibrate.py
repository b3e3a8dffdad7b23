"""`matbench calibrate`: what is measured, shown and kept, and who uses it."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from pathlib import Path

import pytest
from support.cli import QUICK, Matbench, Pretended, Refusal
from support.kernels import SPIN_BODY, KernelWriter
from support.terminal import on_terminal

from matbench.model import DeviceInfo
from matbench.records import calibrations, reading

pytestmark = pytest.mark.usefixtures("own_state")

BRIEFLY = ("--runs", "10", "--max-time", "0.001")


def test_what_is_measured_is_shown_kept_and_used(matbench: Matbench, device: DeviceInfo) -> None:
    result = matbench("calibrate", "--sizes", "9", *BRIEFLY)
    assert "processes differ by" in result.stdout
    assert "groups of 5 differ by" in result.stdout
    assert f"saved for {device.label}: two processes differ by up to " in result.stderr
    assert str(calibrations.path()) in result.stderr
    known = calibrations.of(device)
    assert known is not None
    assert known.runs == 10
    assert 0 <= known.recordings <= known.processes
    assert f"by up to {known.processes:.2%}, two groups of 5" in result.stderr

    # Runs record it, and `diff` allows for it.
    files = [Path(name) for name in ("old.jsonl", "new.jsonl")]
    for file in files:
        matbench("run", "tiled", "--set", "TILE=8", "--sizes", "9", *QUICK, "--output", file)
        [environment], _ = reading.read(file)
        assert environment.variations == {device.label: known}
    _, found = json.loads(matbench("diff", *files, "--format", "json").stdout)
    assert found["comparison"]["allowance"] == pytest.approx(known.processes)
    assert "calibrated in 10 processes" in found["notes"][0]


def test_json_and_csv_have_each_case(
    matbench: Matbench, pretended: Pretended, device: DeviceInfo
) -> None:
    """The first kernel drifts by 1% from process to process, the second does not."""
    measured = pretended(lambda number: 1000.0 * (1 + number // 2 / 100 if number % 2 else 1))
    arguments = ("calibrate", "tiled", "--set", "TILE=4,8", "--sizes", "9", *BRIEFLY)
    environment, *found = json.loads(matbench(*arguments, "--format", "json").stdout)
    assert measured == ["tiled TILE=4 at 9", "tiled TILE=8 at 9"] * 10
    assert environment["type"] == "environment"
    assert [one["type"] for one in found] == ["variation"] * 2
    assert [one["outcome"]["case"]["params"] for one in found] == [{"TILE": 4}, {"TILE": 8}]
    assert found[0]["medians_ns"] == pytest.approx([1000 + 10 * n for n in range(10)])
    drifting, steady = (one["variation"] for one in found)
    assert drifting == {"processes": pytest.approx(0.09), "recordings": pytest.approx(50 / 1020),
                        "runs": 10}  # fmt: skip
    assert steady == {"processes": 0, "recordings": 0, "runs": 10}
    known = calibrations.of(device)
    assert known is not None
    assert (known.processes, known.recordings) == (drifting["processes"], drifting["recordings"])
    measured.clear()
    result = matbench(*arguments, "--format", "csv")
    assert "two processes differ by up to 9.00%, two groups of 5 by up to 4.90%" in result.stderr
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["params"] for row in rows] == ["TILE=4", "TILE=8"]
    assert [row["runs"] for row in rows] == ["10", "10"]
    assert [float(row["processes"]) for row in rows] == pytest.approx([0.09, 0])


def test_a_kernel_that_is_wrong_calibrates_nothing(
    matbench: Matbench, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    path = write_kernel("liar")
    path.write_text(path.read_text().replace("k < K", "k < K - 1"))
    result = matbench("calibrate", path, "--sizes", "9", *BRIEFLY, code=1)
    assert "not calibrated: every kernel must be right in every process" in result.stderr
    assert "wrong" in result.stdout
    assert "10 of 10 processes" in result.stdout
    assert "saved" not in result.stderr
    assert not calibrations.path().exists()


def test_what_cannot_run_calibrates_nothing(matbench: Matbench, device: DeviceInfo) -> None:
    result = matbench("calibrate", "tiled-dynamic", "--set", "TILE=500", "--sizes", "9", *BRIEFLY,
                      code=1)  # fmt: skip
    assert "not calibrated" in result.stderr
    assert "1 skipped" in result.stdout
    assert not calibrations.path().exists()


def test_what_cannot_be_kept_is_told_before_measuring(
    matbench: Matbench, device: DeviceInfo, nothing_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("file").write_text("not a folder")
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(Path("file").absolute()))
    told = matbench("calibrate", *BRIEFLY, code=2).stderr
    assert "calibrated.jsonl: " in told
    assert "set MATBENCH_STATE_DIR to another folder" in told


@pytest.mark.parametrize("runs", ["9", "101"])
def test_too_few_or_many_runs_are_refused(
    runs: str, matbench: Matbench, nothing_runs: None
) -> None:
    assert "--runs" in matbench("calibrate", "--runs", runs, code=2).stderr


def test_one_kind_of_samples_is_calibrated(refusal: Refusal, device: DeviceInfo) -> None:
    assert "--hot" in refusal("calibrate", "--cold", "--hot")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a pseudo-terminal")
def test_ctrl_c_keeps_nothing(
    device: DeviceInfo, write_kernel: KernelWriter, tmp_path: Path
) -> None:
    path = write_kernel("b-spins", body=SPIN_BODY)
    session = on_terminal(
        "calibrate", path, "--sizes", "20", "--runs", "10",
        interrupt_when=lambda written: "b-spins" in written,
        environment={"MATBENCH_STATE_DIR": os.environ["MATBENCH_STATE_DIR"]},
    )  # fmt: skip
    assert session.code == 130
    text = "\n".join(session.lines)
    assert "Traceback" not in text
    assert "interrupted: 0 of 10 measurements are done" in text
    assert not calibrations.path().exists()
