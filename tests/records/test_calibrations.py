"""What `matbench calibrate` keeps: the variation of each device, in the state folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from support import records

from matbench.errors import UsageError
from matbench.model import DeviceInfo
from matbench.records import calibrations, encoding, provenance
from matbench.records.calibrations import Calibration
from matbench.records.variation import Variation

NOW = "2026-11-22T12:00:00+00:00"
ONE, TWO = Variation(0.1, 0.01, 20), Variation(0.2, 0.02, 10)
CPU = records.device()


def card(uuid: str | None) -> DeviceInfo:
    return records.device(backend="cuda", name="Some GPU", kind="gpu", properties={"UUID": uuid})


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(folder))
    return folder


def test_the_latest_of_each_device_is_read_back(state: Path) -> None:
    assert calibrations.of(CPU) is None
    calibrations.keep(CPU, ONE, NOW)
    calibrations.keep(card("GPU-1"), TWO, NOW)
    assert calibrations.of(CPU) == ONE
    assert calibrations.of(card("GPU-1")) == TWO
    calibrations.keep(CPU, TWO, NOW)
    assert calibrations.of(CPU) == TWO
    assert calibrations.path() == state / "calibrated.jsonl"
    assert len(calibrations.path().read_bytes().splitlines()) == 3  # nothing is lost
    assert [path.name for path in state.iterdir()] == ["calibrated.jsonl"]


@pytest.mark.parametrize(
    "other",
    [records.device(name="Another"), records.device(backend="host"), card("GPU-2"), card(None)],
)
def test_another_device_was_not_calibrated(other: DeviceInfo) -> None:
    """Not even another card of the same model."""
    calibrations.keep(CPU, ONE, NOW)
    calibrations.keep(card("GPU-1"), ONE, NOW)
    assert calibrations.of(other) is None
    assert calibrations.of(card("GPU-1")) == ONE


@pytest.mark.parametrize(
    "damage",
    [
        b"{", b"\xff\xfe\n", b"{\"x\":" + b"[" * 100_000, b"null", b"{}",
        b'{"backend":"opencl","device":"A Processor","uuid":"","time":"",'
        b'"variation":{"processes":-1,"recordings":0,"runs":20}}',
        b'{"backend":"opencl","device":"A Processor","uuid":"","time":"",'
        b'"variation":{"processes":1e999,"recordings":0,"runs":20}}',
    ],
)  # fmt: skip
def test_damaged_lines_are_ignored_and_kept(damage: bytes) -> None:
    calibrations.keep(CPU, ONE, NOW)
    with calibrations.path().open("ab") as file:
        file.write(damage)
    assert calibrations.of(CPU) == ONE
    calibrations.keep(CPU, TWO, NOW)
    assert calibrations.of(CPU) == TWO
    assert damage.strip() in calibrations.path().read_bytes()


def test_fields_of_a_later_version_are_skipped() -> None:
    calibrations.path().parent.mkdir()
    line = encoding.line(Calibration("opencl", "A Processor", "", NOW, ONE))
    calibrations.path().write_text(line.replace("{", '{"more": 1, ', 1) + "\n")
    assert calibrations.of(CPU) == ONE


def test_asking_whether_it_can_be_kept_keeps_nothing(state: Path) -> None:
    calibrations.require()
    assert list(state.iterdir()) == []
    calibrations.keep(CPU, ONE, NOW)
    before = calibrations.path().read_bytes()
    calibrations.require()
    assert calibrations.path().read_bytes() == before


@pytest.mark.parametrize("what", ["a file", "a folder"])
def test_what_cannot_be_kept_is_told_with_the_way_out(state: Path, what: str) -> None:
    if what == "a file":
        state.write_text("not a folder")
    else:
        (state / "calibrated.jsonl").mkdir(parents=True)
    hint = "MATBENCH_STATE_DIR" if what == "a file" else "is a folder; name a file in it"
    for attempt in (calibrations.require, lambda: calibrations.keep(CPU, ONE, NOW)):
        with pytest.raises(UsageError, match=rf"calibrated\.jsonl: .*{hint}"):
            attempt()
    assert calibrations.of(CPU) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_told(state: Path) -> None:
    state.mkdir()
    state.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(UsageError, match="MATBENCH_STATE_DIR"):
        calibrations.require()


def test_the_environment_of_a_run_has_what_is_known_of_its_devices() -> None:
    used = [CPU, card("GPU-1")]
    assert provenance.environment([], used, {}).variations == {}
    calibrations.keep(CPU, ONE, NOW)
    found = provenance.environment([], used, {})
    assert found.variations == {"opencl:0 A Processor": ONE}
