"""The command in a real terminal: progress bar and width; and the differences in a pipe."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from rich.cells import cell_len
from support import record_files, tables
from support.cli import QUICK
from support.terminal import COMMAND, on_terminal

from matbench.model import Skip

pytestmark = pytest.mark.usefixtures("scripted_device")

# -- the bar -------------------------------------------------------------------------------------

PAIR = ("tiled", "shared-row", "--sizes", "33", "--max-time", "0.1")
RUN = ("run", "tiled", "--set", "TILE=8,16", "--sizes", "9", *QUICK)


def test_the_bar_does_not_mix_with_what_is_piped(tmp_path: Path) -> None:
    piped = tmp_path / "stdout"
    session = on_terminal(*RUN, "--format", "json", stdout_to=piped)
    assert "━" in session.written
    records = json.loads(piped.read_text(encoding="utf-8"))
    assert [record["type"] for record in records] == ["environment", "outcome", "outcome"]


def test_a_pipe_gets_neither_bar_nor_colours() -> None:
    done = subprocess.run(
        [*COMMAND, *RUN], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True
    )
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "━" not in done.stdout
    assert "2 measured, 0 wrong, 0 failed, 0 skipped" in done.stdout


# -- widths --------------------------------------------------------------------------------------


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Every status, with a long name and long reasons."""
    liar = "reference: 1,000,000 of 1,000,000 elements wrong; first C[0, 0]: expected 2, found 1"
    typo = "typo.cu:20:9: error: use of undeclared identifier 'summ'; did you mean 'sum'?"
    wide = Skip(
        "condition",
        "TILE * TILE <= max_threads_per_block",
        {"TILE": 500, "max_threads_per_block": 8192},
    )
    path = tmp_path / "out.jsonl"
    record_files.write(
        path,
        tables.outcome("tiled", 0.25, params={"TILE": 8}),
        tables.outcome("kahan", 0.5),
        tables.outcome("a-kernel-of-a-rather-long-name", 0.75),
        tables.outcome("liar", status="wrong", reason=liar),
        tables.outcome("typo", status="failed", reason=typo),
        tables.outcome("tiled", status="skipped", skip=wide, params={"TILE": 500}),
    )
    return path


@pytest.mark.parametrize("command", [("kernels",), ("kernels", "shared-row"), ("--help",)])
def test_other_commands_keep_to_the_width(command: tuple[str, ...]) -> None:
    session = on_terminal(*command, width=60)
    assert session.code == 0
    assert max(map(cell_len, session.lines)) <= 60


def test_columns_of_the_environment_are_heeded(records: Path) -> None:
    session = on_terminal("report", records, width=200, environment={"COLUMNS": "70"})
    assert max(map(cell_len, session.lines)) <= 70


def test_no_color_is_heeded(records: Path) -> None:
    session = on_terminal("report", records, environment={"NO_COLOR": "1"})
    assert not re.search(r"\x1b\[[0-9;]*3[0-9][;m]", session.written)


@pytest.mark.long
def test_a_file_has_no_more_columns_than_needed_nor_blanks(records: Path, tmp_path: Path) -> None:
    """Reasons wrap, as on a terminal; measured rows end with their last figure."""
    check = ("check", "tiled", "--set", "TILE=8")
    for command in (("report", records), RUN, check, ("compare", *PAIR), ("kernels",)):
        file = tmp_path / "file.txt"
        with file.open("w") as stdout:
            subprocess.run([*COMMAND, *command], stdout=stdout, check=True)
        lines = file.read_text(encoding="utf-8").splitlines()
        assert lines
        assert [line for line in lines if line != line.rstrip()] == []
        if command[0] != "kernels":  # one line for each kernel
            assert max(map(cell_len, lines)) <= 180
    session = on_terminal("report", records, width=250)
    table = [line.rstrip() for line in session.lines if line.startswith(("kernel ", "tiled "))]
    reported = subprocess.run([*COMMAND, "report", records], capture_output=True, text=True)
    assert table[0] in reported.stdout


@pytest.mark.long
def test_80_columns_have_room_for_the_interval_of_a_comparison() -> None:
    session = on_terminal("compare", "tiled", "thread-tile-2d", *PAIR[2:], width=80)
    [header] = [line for line in session.lines if line.startswith("size ")]
    assert header.split()[-2:] == ["interval", "verdict"]
    [row] = [line for line in session.lines if re.match(r"33 .*BM=128", line)]
    assert re.search(r"[\d.]+ (to|×) .*(faster|slower)", row)
    assert max(map(cell_len, session.lines)) <= 80


@pytest.mark.parametrize("arguments", [("kernels",), ("run", "naïve★")])
def test_an_encoding_that_lacks_letters_is_no_error(arguments: tuple[str, ...]) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, env=environment)
    assert done.returncode == (2 if "naïve★" in arguments else 0)
    assert b"Traceback" not in done.stderr
    assert done.stdout + done.stderr
