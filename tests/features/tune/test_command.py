"""`matbench tune`: the winner, what is printed, and what `--write` puts into the table."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from support import tunable
from support.cli import Matbench, csv_rows
from support.kernels import saved

from matbench.features.tune import search, writing
from matbench.kernelfile import catalogue
from matbench.model import Problem

pytestmark = pytest.mark.usefixtures("short_turns", "scripted_device")

SIZE = Problem(48, 48, 48)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path / "tunable.cu", tunable.KERNEL)


# -- who wins ------------------------------------------------------------------------------------


def test_the_fastest_that_is_right_wins(matbench: Matbench, file: Path) -> None:
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
    assert (first["tried"], first["space"]["combinations"]) == (9, 12)
    assert result.stderr.endswith("to use it at 48: --set TURNS=1 --set KIND=1\n")
    assert file.read_text(encoding="utf-8") == tunable.KERNEL


@pytest.mark.real
def test_given_values_are_all_that_is_tried(matbench: Matbench) -> None:
    def rows(values: str) -> list[dict[str, str]]:
        result = matbench("tune", "tiled", "--set", f"TILE={values}", "--sizes", "20",
                          "--format", "csv")  # fmt: skip
        return csv_rows(result.stdout)

    [only] = rows("8")
    assert (only["params"], only["is_best"], only["is_default"]) == ("TILE=8", "true", "true")
    assert (only["ratio"], only["median_ratio"]) == ("", "1.0")
    default = {row["params"]: row["is_default"] for row in rows("16,4")}
    assert default == {"TILE=16": "true", "TILE=4": "false"}


@pytest.mark.long
@pytest.mark.real
def test_a_budget_of_time_outlives_a_candidate_that_hangs(matbench: Matbench, file: Path) -> None:
    hangs = "for (volatile int i = 0; TURNS == 1 && i < 1; sum = sum + 1.0f)\n        ;\n    "
    text = tunable.KERNEL.replace("C[(size_t)row * N", hangs + "C[(size_t)row * N")
    assert text != tunable.KERNEL
    file.write_text(text, encoding="utf-8")
    begun = time.monotonic()
    result = matbench(
        *("tune", file, "--sizes", "48", "--set", "KIND=1", "--budget", "20s", "--timeout", "60")
    )
    assert time.monotonic() - begun < 40
    assert "TURNS=1 KIND=1 at 48 is failed: running took longer than " in result.stderr
    assert "(see --budget)" in result.stderr
    assert "3 of 3 candidates tried" in result.stdout
    assert "--set TURNS=8 --set KIND=1" in result.stderr


def test_what_no_device_runs_is_skipped_with_reason(matbench: Matbench, file: Path) -> None:
    file.write_text(tunable.KERNEL.replace("// [sweep]", '// requires = ["sm_999"]\n// [sweep]'))
    result = matbench("tune", file, "--sizes", "9,12", code=1)
    assert result.stdout.count("12 excluded: needs sm_999; this ") == 1
    assert "no candidate could be measured" in result.stdout
    assert "--set" not in result.stderr


# -- what is written -----------------------------------------------------------------------------

WRITE = ("--sizes", "48", "--set", "TURNS=8,1", "--set", "KIND=1", "--write")
TABLE, CODE = tunable.KERNEL.split("// ///\n\n", 1)


def test_the_winner_is_written_and_all_else_stays(matbench: Matbench, file: Path) -> None:
    text = tunable.KERNEL.replace(
        "// TURNS = [8]\n", "//TURNS = [ # some\n//   8, # first\n// ] # turns\n//\n", 1
    )
    text = text.replace("// KIND = [1]\n", "//KIND = [1]\n", 1)
    file.write_bytes(text.replace("\n", "\r\n").encode())
    result = matbench("tune", file, *WRITE)
    assert result.stderr.endswith(f"wrote {file}\n")
    [turns], [kind] = catalogue.load(file).sweep.values()
    expected = tunable.KERNEL.replace("// TURNS = [8]\n", f"// TURNS = [{turns}] # turns\n//\n", 1)
    expected = expected.replace("// KIND = [1]\n", f"//KIND = [{kind}]\n", 1)
    assert file.read_bytes() == expected.replace("\n", "\r\n").encode()


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_table_beside_the_file_gets_a_sweep(file: Path, end: str) -> None:
    text = TABLE.replace("// [sweep]\n// TURNS = [8]\n// KIND = [1]\n", "").partition("\n")[2]
    text = text.replace("// ", "").rstrip("\n") + end
    file.write_text(CODE, encoding="utf-8")
    beside = file.with_suffix(".toml")
    beside.write_text(text, encoding="utf-8")
    path = writing.place(catalogue.load(file))
    assert path == beside
    new = writing.written(catalogue.load(file), path, {"TURNS": 1, "KIND": 2}).decode()
    assert new.startswith(text)
    assert new[len(text) :].strip() == "[sweep]\nTURNS = [1]\nKIND = [2]"


def test_a_fenced_table_gets_a_sweep(file: Path) -> None:
    given = "// [sweep]\n// TURNS = [8]\n// KIND = [1]\n"
    file.write_text(tunable.KERNEL.replace(given, ""), encoding="utf-8")
    new = writing.written(catalogue.load(file), file, {"TURNS": 8, "KIND": 1}).decode()
    assert new == f"{TABLE.replace(given, '')}//\n{given}// ///\n\n{CODE}"


def test_only_the_table_of_the_function_is_written(tmp_path: Path) -> None:
    def source(width: str) -> str:
        return "\n\n".join(
            f"# /// matbench\n# [sweep]\n# W = [{values}]  # wide\n# ///\n"
            f"def {name}(A, B, W):\n    return A @ B\n"
            for name, values in (("f", "1, 2"), ("g", width))
        )

    path = saved(tmp_path / "f.py", source("3, 4"))
    path.with_suffix(".toml").write_text("[project]\n", encoding="utf-8")  # of something else
    kernel = catalogue.load(Path(f"{path}::g"))
    assert writing.written(kernel, writing.place(kernel), {"W": 4}).decode() == source("4")


@pytest.mark.usefixtures("nothing_runs")
def test_what_cannot_be_written_is_refused_before_anything_is_measured(
    matbench: Matbench, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: str | Path) -> str:
        return matbench("tune", *arguments, "--write", code=2).stderr

    copy = "tune a copy: matbench kernels tiled > mine.cu"
    assert f"--write: tiled comes with matbench; {copy}" in refused("tiled", "--sizes", "8")
    assert "--write takes the winner of one size; give one" in refused(file, "--sizes", "8,9")
    monkeypatch.setattr(os, "access", lambda path, _: path != file)
    assert f"--write: {file} is not writable; make it so" in refused(file, "--sizes", "8")
    file.write_text(CODE, encoding="utf-8")
    given = ("--front-matter", "sweep.TURNS=8,1", "--front-matter", "sweep.KIND=1")
    launch = ("--front-matter", "launch.block=8,8", "--front-matter", "launch.grid=64,64")
    assert f"--write: {file} has no table; write one" in refused(file, *given, *launch)


def test_a_changed_file(matbench: Matbench, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tunable.KERNEL + "// edited\n"
    finals = search.TuningSearch._finals

    def edited(*arguments: Any) -> None:
        finals(*arguments)
        file.write_text(changed, encoding="utf-8")

    monkeypatch.setattr(search.TuningSearch, "_finals", edited)
    result = matbench("tune", file, *WRITE, code=2)
    assert f"--write: {file} changed during the search; tune it again" in result.stderr
    assert file.read_text(encoding="utf-8") == changed


def test_nothing_is_written_after_an_interruption(
    matbench: Matbench, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search.TuningSearch, "_finals", lambda *_: os.kill(os.getpid(), 2))
    result = matbench("tune", file, *WRITE, code=130)
    assert "to use it at 48: --set TURNS=" in result.stderr
    assert file.read_text(encoding="utf-8") == tunable.KERNEL
