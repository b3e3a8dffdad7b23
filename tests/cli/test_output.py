"""Files that commands write: new, appended, replaced or resumed, and none lost;
and what is said of the machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.cli import QUICK, Matbench, Refusal, outside, records_in, summary
from support.disk import full_after
from support.golden import TableRegression
from support.kernels import GOOD_BODY, kernel_text
from support.pictures import needs_plots

from matbench.cache import Cache
from matbench.cli.console import write_file
from matbench.errors import UsageError
from matbench.records.environment import last_run_path

pytestmark = pytest.mark.usefixtures("own_state", "scripted_device")

OUTPUT = Path("out.jsonl")
NINE = ("tiled", "--sizes", "9")


def run(matbench: Matbench, *arguments: str | Path, code: int | None = 0) -> Any:
    return matbench("run", *QUICK, *arguments, code=code)


def test_an_output_is_replaced_if_that_is_asked_for(matbench: Matbench) -> None:
    run(matbench, *NINE, "--set", "TILE=8", "--output", OUTPUT)
    run(matbench, *NINE, "--set", "TILE=16", "--output", OUTPUT, "--force")
    assert summary(records_in(OUTPUT)) == [("tiled", 16, "9", "measured")]


def test_a_torn_line_is_fixed_and_said(matbench: Matbench) -> None:
    run(matbench, *NINE, "--set", "TILE=8", "--output", OUTPUT)
    whole = OUTPUT.read_bytes()
    OUTPUT.write_bytes(whole + b'{"type":"outcome","kern')
    result = run(matbench, *NINE, "--set", "TILE=8", "--resume", OUTPUT)
    assert result.stderr == "out.jsonl:3: incomplete line ignored\n"
    assert OUTPUT.read_bytes() == whole
    OUTPUT.write_bytes(whole + b'{"type":"outcome","kern')
    shown = matbench("report", OUTPUT)
    assert shown.stderr == "note: out.jsonl:3: incomplete line ignored\n"
    assert "1 measured" in shown.stdout


def test_a_run_that_continues_nothing_says_so(matbench: Matbench) -> None:
    said = "typo.jsonl: has no records to continue; all cases are measured\n"
    assert run(matbench, *NINE, "--resume", "typo.jsonl").stderr == said
    assert run(matbench, *NINE, "--resume", "typo.jsonl").stderr == ""


def test_a_file_is_replaced_as_a_whole_or_not_at_all() -> None:
    path, link = Path("p.svg"), Path("link.svg")
    link.symlink_to(path)
    write_file(path, b"old")
    write_file(link, b"new")
    assert path.read_bytes() == b"new"
    assert link.is_symlink()

    with (
        full_after(1),
        pytest.raises(UsageError, match=r"p\.svg: cannot be written: File too large"),
    ):
        write_file(path, b"newest")
    assert path.read_bytes() == b"new"
    assert sorted(Path().iterdir()) == [link, path]


def test_a_link_that_waits_beside_the_target_leads_nowhere() -> None:
    """A cloned repository can hold one for any name that can be guessed."""
    precious, target = Path("precious"), Path("page.html")
    precious.write_bytes(b"precious")
    Path(".page.html.part").symlink_to(precious)
    write_file(target, b"page")
    assert (precious.read_bytes(), target.read_bytes()) == (b"precious", b"page")
    assert not target.is_symlink()
    assert len(list(Path().iterdir())) == 3


# -- outputs that are other files of the command --------------------------------------------------


@needs_plots
@pytest.mark.usefixtures("nothing_runs")
def test_an_output_is_no_other_file_of_the_command(
    refusal: Refusal, table_regression: TableRegression
) -> None:
    """Each command has one file in two roles, some by way of a link."""
    for name in ("mine.cu", "mine.svg"):
        Path(name).write_text(kernel_text(body='#include "factor.h"' + GOOD_BODY))
    for name in ("kept.jsonl", "kept.svg", "factor.h", "bad.cu"):
        Path(name).touch()
    for link, target in (
        ("to-new.svg", "new.svg"),
        ("to-mine", "mine.cu"),
        ("last.jsonl", last_run_path()),
    ):
        Path(link).symlink_to(target)
    os.link("kept.jsonl", "hard.jsonl")
    os.link("kept.jsonl", "hard.html")
    sources = Path("mine.cu").read_bytes(), Path("mine.svg").read_bytes()
    table_regression("clashes.txt", lambda command: refusal(*command.split()))
    assert (Path("mine.cu").read_bytes(), Path("mine.svg").read_bytes()) == sources


def test_special_files_in_and_out(matbench: Matbench, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("null.jsonl").symlink_to(os.devnull)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", os.devnull)
    matbench("compare", "null.jsonl", "null.jsonl")


# -- what is said of the machine -----------------------------------------------------------------


def test_a_clear_cache(matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(folder))
    Cache().put("key", bytes(2_000_000))
    assert matbench("doctor", "--clear-cache").stdout == f"removed 2.0 MB from {folder}\n"
    assert list(folder.iterdir()) == []
    assert matbench("doctor", "--clear-cache").stdout == f"removed 0.0 MB from {folder}\n"


RUN = ("run", *NINE, "--output", OUTPUT)


@pytest.mark.parametrize(
    ("words", "name", "reason"),
    [
        (RUN, "file", "not a folder; "),
        (RUN, "file/x", "not a folder; "),
        (RUN, "/proc/x", "cannot be written: "),
        (RUN, "open", "other users can write to it; run `chmod 700` on it"),
        (("doctor", "--clear-cache"), "file", "not a folder; "),
    ],
)
def test_an_unusable_cache_folder_is_one_line(
    words: tuple[Any, ...], name: str, reason: str, tmp_path: Path, matbench: Matbench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "file").write_text("kept")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    folder = tmp_path / name
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(folder))
    done = matbench(*words, code=2)
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"matbench: cache folder {folder}: {reason}")
    assert "set MATBENCH_CACHE_DIR to another folder" in done.stderr
    assert not OUTPUT.exists()
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.skipif(not Path("/proc/self/fdinfo").is_dir(), reason="no folder that stays empty")
def test_a_cache_folder_that_takes_no_file_stays_empty() -> None:
    command = ("run", "tiled", "--set", "TILE=8", "--sizes", "9", *QUICK)
    done = outside(*command, MATBENCH_CACHE_DIR="/proc/self/fdinfo")
    assert (done.returncode, done.stderr) == (0, "")
