"""`matbench compare OLD.jsonl NEW.jsonl`, and the exit codes that CI relies on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import records
from support.cli import Matbench, Refusal
from support.records import repeated, timing

from matbench.model import Conditions, DeviceInfo
from matbench.records.outcome import Outcome
from matbench.records.writing import RecordWriter

STEADY = tuple(100_000.0 + 10 * (i % 5) for i in range(20))
DEVICE = records.device()


def steady(kernel: str = "tiled", factor: float = 1.0, **changes: Any) -> Outcome:
    """A case whose samples hardly vary."""
    samples = timing(samples_ns=tuple(factor * sample for sample in STEADY))
    return records.outcome(kernel, cold=samples, **changes)


def write(path: Path, *outcomes: Outcome, device: DeviceInfo = DEVICE) -> Path:
    with RecordWriter(path, records.environment(devices=(device,))) as writer:
        for outcome in outcomes:
            writer.write(outcome)
    return path


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (0.5, 0), (1.04, 0), (1.2, 1)])
def test_only_regressions(tmp_path: Path, matbench: Matbench, factor: float, code: int) -> None:
    old = write(tmp_path / "old.jsonl", *repeated(steady()))
    new = write(tmp_path / "new.jsonl", *repeated(steady(factor=factor)))
    matbench("compare", old, new, "--fail-if-slower", "5%", code=code)
    matbench("compare", old, new)


def test_one_process_each_is_not_enough_and_it_says_why(tmp_path: Path, matbench: Matbench) -> None:
    """Two processes of the same code differ by as much on a CPU."""
    old = write(tmp_path / "old.jsonl", steady())
    new = write(tmp_path / "new.jsonl", steady(factor=1.2))
    gate = ("compare", old, new, "--fail-if-slower", "5%")
    result = matbench(*gate, code=3)
    shown = " ".join(result.stdout.split())
    assert "1 UNDECIDED" in shown
    assert result.stderr.startswith("--fail-if-slower could not judge any case: the interval cont")
    assert matbench(*gate, "--allow-skips").stderr == ""
    matbench("compare", old, new, "--fail-if-slower", "60%")  # more than the interval reaches
    matbench("compare", old, new)
    assert "the interval allows for a difference of 25.00% between processes" in shown
    assert "record both sides with --repeat 5" in shown
    # Far more than processes differ by is told from one process as well.
    much = write(tmp_path / "much.jsonl", steady(factor=1.5))
    matbench("compare", old, much, "--fail-if-slower", "5%", code=1)


def test_other_environments_are_exit_3_unless_allowed(tmp_path: Path, matbench: Matbench) -> None:
    old = write(tmp_path / "old.jsonl", *repeated(steady()))
    other = records.device(driver="99")
    new = write(tmp_path / "new.jsonl", *repeated(steady(factor=1.2)), device=other)
    result = matbench("compare", old, new, "--fail-if-slower", "5%", code=3)
    matbench("compare", old, new, "--fail-if-slower", "900%", code=3)
    matbench("compare", old, new, "--fail-if-slower", "5%", "--allow-skips")
    assert "driver differs: was 1.2, now 99" in result.stderr
    assert "--allow-skips makes the exit code 0" in result.stderr
    matbench("compare", old, new)


def busy(share: float, factor: float = 1.0, kernel: str = "tiled") -> list[Outcome]:
    """A case in five processes, while other programs took this share of the processors."""
    moments = (Conditions(), Conditions(others_share=share))
    samples = tuple(factor * sample for sample in STEADY)
    cold = timing(samples_ns=samples, conditions=moments)
    return repeated(records.outcome(kernel, cold=cold))


def test_other_load_is_exit_3_only_without_a_judgement(tmp_path: Path, matbench: Matbench) -> None:
    old = write(tmp_path / "old.jsonl", *busy(0.1), *busy(0.1, kernel="kahan"))
    all_busy = write(tmp_path / "all.jsonl", *busy(0.7, 1.2), *busy(0.6, kernel="kahan"))
    result = matbench("compare", old, all_busy, "--fail-if-slower", "5%", code=3)
    said = "the load of other programs at {} TILE=16 at 17x33x65 differs: was 10%, now {}"
    assert said.format("tiled", "70%") in result.stderr
    assert said.format("kahan", "60%") in result.stderr
    assert "2 UNDECIDED" in result.stdout
    # One case can be judged: that decides, whether it is slower or not.
    for factor, code in ((1.0, 0), (1.2, 1)):
        file = tmp_path / f"{code}.jsonl"
        write(file, *busy(0.7, 1.2), *busy(0.1, factor, kernel="kahan"))
        result = matbench("compare", old, file, "--fail-if-slower", "5%", code=code)
        assert said.format("tiled", "70%") in result.stderr
        assert "kahan" not in result.stderr


def test_a_case_of_another_environment_judges_nothing(tmp_path: Path, matbench: Matbench) -> None:
    """However narrow its interval; the other case is UNDECIDED by its own."""
    old = write(tmp_path / "old.jsonl", *busy(0.1), steady("kahan"))
    new = write(tmp_path / "new.jsonl", *busy(0.7), steady("kahan", factor=1.2))
    told = matbench("compare", old, new, "--fail-if-slower", "5%", code=3)
    assert "2 UNDECIDED" in told.stdout
    assert "--fail-if-slower could not judge any case: not comparable: the load" in told.stderr


def test_a_case_that_broke_fails_and_is_named(tmp_path: Path, matbench: Matbench) -> None:
    old = write(tmp_path / "old.jsonl", steady())
    wrong = records.outcome("tiled", status="wrong", reason="integers: 3 of 9 wrong")
    new = write(tmp_path / "new.jsonl", wrong)
    result = matbench("compare", old, new, "--fail-if-slower", "5%", code=1)
    assert "is now wrong: integers: 3 of 9 wrong" in result.stderr


def test_verdicts_and_cases_of_one_file_alone(tmp_path: Path, matbench: Matbench) -> None:
    old = write(tmp_path / "old.jsonl", *repeated(steady()), steady("kahan"), steady("naive-2d"))
    new = write(
        tmp_path / "new.jsonl", *repeated(steady(factor=1.1)), steady("kahan", 0.5), steady("mine")
    )
    result = matbench("compare", old, new)
    assert f"only in {old}: naive-2d TILE=16 at 17x33x65" in result.stderr
    assert f"only in {new}: mine TILE=16 at 17x33x65" in result.stderr
    assert "1 SLOWER, 1 FASTER" in result.stdout
    assert "1.10 × slower" in result.stdout
    _, *found = json.loads(matbench("compare", old, new, "--format", "json").stdout)
    verdicts = {one["candidate"]["case"]["kernel"]: one["comparison"]["verdict"] for one in found}
    assert verdicts == {"tiled": "SLOWER", "kahan": "FASTER"}


def test_nothing_to_judge_is_no_pass(tmp_path: Path, matbench: Matbench) -> None:
    old = write(tmp_path / "old.jsonl", steady())
    new = write(tmp_path / "new.jsonl", steady("naive-2d"))
    told = matbench("compare", old, new, "--fail-if-slower", "5%", code=3).stderr
    assert "--fail-if-slower could not judge any case: no case is on both sides" in told
    matbench("compare", old, new, "--fail-if-slower", "5%", "--allow-skips")


def test_same_summary(matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, summary = (tmp_path / name for name in ("old.jsonl", "new.jsonl", "summary.md"))
    write(old, records.outcome("tiled"), records.outcome("kahan"))
    write(new, records.outcome("tiled", status="wrong", reason="3 of 9"), records.outcome("kahan"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    matbench("compare", old, new)
    text = summary.read_text()
    assert text.startswith("### 1 case is wrong or failed\n")
    assert "- tiled TILE=16 at 17x33x65 is now wrong: 3 of 9\n" in text


@pytest.mark.usefixtures("own_state")
@pytest.mark.parametrize("target", ["folder", "folder/no/file.md", "\udcff/x"])
def test_a_summary_that_cannot_be_written_is_told_before_measuring(
    target: str, refusal: Refusal, nothing_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("folder").mkdir()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", target)
    for names in (("tiled", "naive-2d"), ("kept.jsonl", "kept.jsonl")):
        told = refusal("compare", *names)
        assert told.startswith("GITHUB_STEP_SUMMARY=")
        assert "cannot be written" in told
