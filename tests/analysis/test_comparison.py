"""Two record files held against each other, and the exit codes that CI relies on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from conftest import Matbench

from matbench.analysis import comparison
from matbench.model import DeviceInfo, Environment, Outcome, Problem
from matbench.records import results

DEVICE = DeviceInfo(
    backend="cuda", index=0, name="Some GPU", kind="gpu", driver="1", toolkit="2", limits={}
)
STEADY = tuple(100_000.0 + 10 * (i % 5) for i in range(20))


def environment(device: DeviceInfo = DEVICE) -> Environment:
    return results.environment(["run"], [device], {})


def outcome(kernel: str = "tiled", size: int = 64, factor: float = 1.0, **other: object) -> Outcome:
    samples = tuple(factor * sample for sample in STEADY)
    known: dict[str, object] = {
        "kernel": kernel, "sha256": "a" * 64, "group": "tutorial", "params": {"TILE": 16},
        "problem": Problem(size, size, size), "backend": "cuda", "device": "Some GPU",
        "device_kind": "gpu", "status": "measured", "samples_ns": samples, "median_ns": samples[2],
        "timing_mode": "cold", "sm_mhz": 1980.0,
    }  # fmt: skip
    return msgspec.convert({"type": "outcome", **msgspec.to_builtins(known | other)}, Outcome)


def write(path: Path, outcomes: list[Outcome], device: DeviceInfo = DEVICE) -> Path:
    with results.RecordWriter(path, environment(device)) as writer:
        for one in outcomes:
            writer.write(one)
    return path


def joined(old: list[Outcome], new: list[Outcome]) -> comparison.Joined:
    there = [environment()]
    return comparison.compare_records((there, old), (there, new), ("old", "new"), 0.01)


def test_cases_are_joined_by_kernel_parameters_and_problem() -> None:
    found = joined(
        [outcome(), outcome(size=128), outcome("kahan")],
        [outcome(factor=1.1), outcome("kahan", factor=0.8), outcome("naive-2d")],
    )
    assert [(row.kernel, row.verdict) for row in found.rows] == [
        ("tiled", "SLOWER"),
        ("kahan", "FASTER"),
    ]
    assert found.only_old == ["tiled TILE=16 at 128"]
    assert found.only_new == ["naive-2d TILE=16 at 64"]
    assert found.differences == []
    assert comparison.comparable(found)


def test_the_same_twice_is_the_same() -> None:
    (row,) = joined([outcome()], [outcome()]).rows
    assert row.verdict == "SAME"
    assert row.ratio == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sm_mhz": 1700.0}, "SM clock"),
        ({"timing_mode": "hot"}, "timing differs"),
        ({"device": "Another GPU"}, "device differs"),
    ],
)
def test_what_makes_times_incomparable_is_said(change: dict[str, object], words: str) -> None:
    found = joined([outcome()], [outcome(**change)])
    assert any(words in text for text in found.differences)
    assert not comparison.comparable(found)


def test_a_changed_kernel_is_what_one_compares() -> None:
    found = joined([outcome()], [outcome(sha256="b" * 64)])
    assert found.differences == ["the source of tiled differs"]
    assert comparison.comparable(found)


def test_a_case_that_broke_is_named_and_has_no_verdict() -> None:
    wrong = outcome(status="wrong", reason="integers: 3 of 9 wrong", samples_ns=[], median_ns=None)
    found = joined([outcome()], [wrong])
    assert found.rows[0].verdict is None
    assert found.broken == ["tiled TILE=16 at 64 is wrong now: integers: 3 of 9 wrong"]


@pytest.mark.parametrize(
    ("factor", "code"),
    [(1.0, 0), (0.5, 0), (1.02, 0), (1.2, 1)],
)
def test_exit_code_tells_regressions_alone(
    tmp_path: Path, matbench: Matbench, factor: float, code: int
) -> None:
    old = write(tmp_path / "old.jsonl", [outcome()])
    new = write(tmp_path / "new.jsonl", [outcome(factor=factor)])
    matbench("compare", old, new, "--fail-if-slower", "5%", code=code)


def test_environments_that_differ_are_exit_3_unless_forced(
    tmp_path: Path, matbench: Matbench
) -> None:
    other = msgspec.structs.replace(DEVICE, driver="99")
    old = write(tmp_path / "old.jsonl", [outcome()])
    new = write(tmp_path / "new.jsonl", [outcome(factor=1.2)], other)
    result = matbench("compare", old, new, "--fail-if-slower", "5%", code=3)
    assert "driver differs: 1 then, 99 now" in result.stderr
    matbench("compare", old, new, "--fail-if-slower", "5%", "--force", code=1)
    matbench("compare", old, new, code=0)
