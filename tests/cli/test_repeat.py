"""`matbench run --repeat`: each case in several processes, and what is made of that file."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import record_files, records
from support.cli import QUICK, Matbench, csv_rows, last_run, records_in
from support.kernels import GOOD_BODY, KernelWriter
from support.pictures import words
from support.records import repeated, timing

from matbench.analysis import gathering
from matbench.bench.options import FIRST, Round
from matbench.cli import main
from matbench.model import Case, Problem
from matbench.records.outcome import Outcome
from matbench.worker import worker

pytestmark = pytest.mark.usefixtures("own_state")

OUTPUT = Path("out.jsonl")
TWO_CASES = ("tiled", "--set", "TILE=4,8", "--sizes", "9", *QUICK)


@pytest.fixture
def measured(scripted_device: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cases that are measured."""
    labels: list[str] = []
    measure = worker.Worker.measure

    def noted(self: worker.Worker, case: Case, which: Round = FIRST) -> Outcome:
        labels.extend([case.label] * (which.number == 1))
        return measure(self, case, which)

    monkeypatch.setattr(worker.Worker, "measure", noted)
    return labels


def order(file: Path = OUTPUT) -> list[tuple[int | None, int]]:
    return [(one.case.params.get("TILE"), one.repetition) for one in records_in(file)]


@pytest.mark.usefixtures("scripted_device")
def test_each_repetition_has_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the processes that tests reuse."""
    measured: list[tuple[str, int]] = []
    original = worker.Worker.measure

    def measure(self: worker.Worker, case: Case, which: Round = FIRST) -> Outcome:
        made = original(self, case, which)
        if which.number == 1:
            measured.append((case.label, self.process.call(os.getpid)))
        return made

    monkeypatch.setattr(worker.Worker, "measure", measure)
    arguments = ["run", *TWO_CASES, "--repeat", "2", "--output", str(OUTPUT)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    [one, two, three, four] = [process for _, process in measured]
    assert one == two != three == four
    assert os.getpid() not in (one, three)
    assert [label for label, _ in measured] == ["tiled TILE=4 at 9", "tiled TILE=8 at 9"] * 2
    assert order() == [(4, 1), (8, 1), (4, 2), (8, 2)]
    [environment], _ = record_files.read(OUTPUT)
    assert environment.settings["repeat"] == 2


def test_rows_are_shown_once_and_json_has_all(matbench: Matbench, measured: list[str]) -> None:
    shown = matbench("run", *TWO_CASES, "--repeat", "2", "--output", OUTPUT).stdout
    assert len(last_run()) == len(measured) == 4
    assert matbench("report", OUTPUT).stdout == shown
    assert "2 measured, 0 wrong, 0 failed, 0 skipped" in shown
    assert "each case in 2 processes" in shown
    rows = csv_rows(matbench("report", OUTPUT, "--format", "csv").stdout)
    assert [row["params"] for row in rows].count("TILE=8") == 1
    assert len(rows) == 2
    assert all("2 processes, whose medians differ by up to" in row["notes"] for row in rows)
    _, *found = json.loads(matbench("report", OUTPUT, "--format", "json").stdout)
    assert [one["repetition"] for one in found] == [1, 1, 2, 2]
    # The control: the same cases once.
    assert "processes" not in matbench("run", *TWO_CASES).stdout


def test_resuming_continues_inside_a_repetition(matbench: Matbench, measured: list[str]) -> None:
    arguments = ("run", *TWO_CASES, "--repeat", "3")
    matbench(*arguments, "--output", OUTPUT)
    assert len(measured) == 6
    whole = OUTPUT.read_bytes()
    environment, *lines = whole.splitlines(keepends=True)
    OUTPUT.write_bytes(b"".join([environment, *lines[:3]]))
    kept = OUTPUT.read_bytes()
    measured.clear()
    table = matbench(*arguments, "--resume", OUTPUT).stdout
    assert measured == [
        "tiled TILE=8 at 9", "tiled TILE=4 at 9", "tiled TILE=8 at 9",
    ]  # fmt: skip
    assert OUTPUT.read_bytes().startswith(kept)
    assert order() == [(4, 1), (8, 1), (4, 2), (8, 2), (4, 3), (8, 3)]
    assert len(gathering.sets(records_in(OUTPUT))) == 2
    assert "2 measured" in table
    measured.clear()
    before = OUTPUT.read_bytes()
    matbench(*arguments, "--resume", OUTPUT)
    assert measured == []
    assert OUTPUT.read_bytes() == before
    # More repetitions than before measure only those.
    matbench("run", *TWO_CASES, "--repeat", "4", "--resume", OUTPUT)
    assert len(measured) == 2
    assert order()[-2:] == [(4, 4), (8, 4)]


# Files of several processes


def sweep() -> list[Outcome]:
    """Three sizes, in five processes each, some of them slower."""
    found = []
    for size in (64, 128, 256):
        case = repeated(records.outcome("tiled", problem=Problem(size, size, size)))
        for number, one in enumerate(case):
            ns = size**2 * (1 + number / 50)
            cold = timing(samples_ns=(ns, ns, ns), interval_ns=(ns, ns))
            found.append(records.outcome("tiled", problem=one.case.problem, cold=cold,
                                         repetition=one.repetition))  # fmt: skip
    return found


def test_a_picture_has_one_point_for_each_case(matbench: Matbench) -> None:
    pytest.importorskip("vl_convert", exc_type=ImportError)
    record_files.write(Path("all.jsonl"), *sweep())
    record_files.write(Path("one.jsonl"), *gathering.gathered(sweep(), [])[0])
    for name in ("all", "one"):
        matbench("report", f"{name}.jsonl", "--picture", f"{name}.svg")
    assert words(Path("all.svg").read_text()) == words(Path("one.svg").read_text())
    record_files.write(Path("other.jsonl"), *sweep()[:1], *sweep()[5:6])
    matbench("report", "other.jsonl", "--picture", "other.svg")
    assert words(Path("other.svg").read_text()) != words(Path("one.svg").read_text())


# A wrong sample again


#: Wrong for negative sums that are not integers, which only samples have.
OFF_IN_SAMPLES = GOOD_BODY.replace("= sum;", "= sum < 0.0f && sum != rint(sum) ? 0.0f : sum;")


def reason(output: str) -> str:
    [found] = [each for each in json.loads(output) if each["type"] == "outcome"]
    assert found["status"] == "wrong"
    return str(found["reason"])


def test_a_wrong_sample_is_launched_again(matbench: Matbench, write_kernel: KernelWriter) -> None:
    path = write_kernel(body=OFF_IN_SAMPLES)
    case = ("run", path, "--sizes", "33", "--set", "TILE=8", *QUICK, "--format", "json")
    first = reason(matbench(*case, code=1).stdout)
    said = re.match(r"samples: with the inputs of --replay ([0-9a-f]+): (.*)", first)
    assert said is not None, first
    again = reason(matbench(*case, "--replay", said[1], code=1).stdout)
    assert again == first
    other = reason(matbench(*case, "--replay", "1", code=1).stdout)
    assert other != first
    assert "--replay 1:" in other


def test_numpy_is_not_timed_either(matbench: Matbench) -> None:
    said = matbench("run", "numpy", "--sizes", "5", "--replay", "12", "--format", "json").stdout
    [outcome] = [each for each in json.loads(said) if each["type"] == "outcome"]
    assert outcome["status"] == "measured"
    assert outcome["cold"] is outcome["hot"] is None
