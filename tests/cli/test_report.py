"""`matbench report` shows whatever commands recorded, in every format."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import Matbench

from matbench.cli import registry
from matbench.records import KINDS, reading

ROOT = Path(__file__).parents[2]
RECORDED = {
    "comparison": ROOT / "docs" / "examples" / "compare.json",
    "tuning": ROOT / "docs" / "examples" / "tune.json",
    "blocks": ROOT / "docs" / "examples" / "blocks.json",
    "explanation": ROOT / "docs" / "examples" / "explain.json",
    "grade": ROOT / "results" / "cpu-grade.jsonl",
}
#: A line of the command's own table, and a cell of its CSV with its column.
SHOWN = {
    "comparison": ("the candidate is", "verdict", "SLOWER"),
    "tuning": ("against default: in turns", "is_best", "true"),
    "blocks": ("tiled TILE=32 at 512\n", "counters", "one"),
    "explanation": ("minimum traffic", "limiters", "threads; registers"),
    "grade": ("order of sums", "letter", "A"),
}
CASES = ROOT / "results" / "course.jsonl"


@pytest.mark.parametrize("kind", registry.RECORDS)
def test_what_commands_recorded_is_shown(matbench: Matbench, kind: str) -> None:
    line, column, value = SHOWN[kind]
    for fmt in ("rich", "github"):
        text = matbench("report", RECORDED[kind], "--format", fmt).stdout
        assert line in text
        assert ("0 wrong, 0 failed, 0 skipped\n\n" in text) == (kind != "grade")  # outcomes, too
    rows = csv.DictReader(matbench("report", RECORDED[kind], "--format", "csv").stdout.splitlines())
    assert value in {row[column] for row in rows}


@pytest.mark.parametrize("kind", registry.RECORDS)
def test_json_is_all_that_was_recorded(matbench: Matbench, kind: str, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    again.write_text(matbench("report", RECORDED[kind], CASES, "--format", "json").stdout)
    files = [reading.Contents(RECORDED[kind]), reading.Contents(CASES)]
    assert reading.Contents(again).records == [one for file in files for one in file.records]
    assert kind in {one["type"] for one in json.loads(again.read_text())}


def test_tables_that_are_not_one_are_no_csv(matbench: Matbench) -> None:
    for fmt in ("csv", "junit"):
        refused = matbench("report", RECORDED["blocks"], CASES, "--format", fmt, code=2).stderr
        assert refused == (
            f"matbench: --format {fmt}: outcomes and blocks are not one table; report their files "
            "separately, or with --format json\n"
        )
    junit = matbench("report", RECORDED["comparison"], "--format", "junit").stdout
    assert junit.count("<testcase") == 6  # both sides of three are cases
    assert junit.count("<?xml") == 1


def test_a_kind_that_is_not_known_is_said(matbench: Matbench, tmp_path: Path) -> None:
    file = tmp_path / "later.json"
    file.write_text(RECORDED["blocks"].read_text().replace('"type":"blocks"', '"type":"later"'))
    done = matbench("report", file)
    assert "1 measured" in done.stdout
    assert "not a record, ignored: a record of another kind: 'later'" in done.stderr


@pytest.mark.parametrize(("file", "features"), [(CASES, []), (RECORDED["grade"], ["grade"])])
def test_only_what_a_file_holds_is_imported(file: Path, features: list[str]) -> None:
    code = (
        "import sys\nfrom matbench.cli import main\nmain(['report', sys.argv[1]], standalone_mode"
    )
    code += "=False)\nprint([m[18:] for m in sys.modules if m.startswith('matbench.features.') and "
    code += "m.count('.') == 2], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True)
    assert done.stderr.strip() == str(features)


def test_each_kind_is_registered_by_its_own_tag() -> None:
    assert {*registry.RECORDS} == {*KINDS} - {"environment", "outcome", "probe", "need"}
    for kind in registry.RECORDS.values():
        assert registry.load(kind.view).PAGE
