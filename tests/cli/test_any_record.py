"""Whatever is in a record file, no command that reads it ends with a traceback; and reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name
from unittest import mock

import click
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import any_record, record_files
from support.any_record import Plain
from support.browser import needs_page
from support.cli import Matbench, command_at, command_paths, csv_rows
from support.kernels import KernelWriter
from support.records import environment, outcome

from matbench import cli
from matbench.backends.cuda import compilation
from matbench.backends.protocol import UnavailableError
from matbench.cli import registry
from matbench.cli.options import FORMATS
from matbench.errors import UsageError
from matbench.model import Skip
from matbench.records import KINDS, encoding, reading
from matbench.records.environment import Environment
from matbench.show import safe
from matbench.worker.process import DiedError, WorkerProcess


def text(*records: Plain) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


@needs_page
@settings(suppress_health_check=list(HealthCheck), max_examples=settings().max_examples // 2)
@given(
    environment=any_record.plain(Environment),
    found=st.lists(
        st.one_of([any_record.plain(resolve_name(KINDS[k])) for k in KINDS if k != "environment"]),
        min_size=1,
        max_size=3,
    ),
    timed=st.lists(any_record.timed(), max_size=2),
    fmt=st.sampled_from(FORMATS),
)
def test_any_record_is_shown_or_refused(
    environment: Plain, found: list[Plain], timed: list[Plain], fmt: str, matbench: Matbench,
    tmp_path: Path,
) -> None:  # fmt: skip
    every, charted, others = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl"))
    # The same cases with other samples.
    swapped = [one | {"case": other["case"]} for one, other in zip(timed, timed[::-1], strict=True)]
    every.write_text(text(environment, *found, *timed))
    charted.write_text(text(environment, *timed))
    others.write_text(text(environment, *swapped))
    try:
        for file in (every, charted, others):
            record_files.read(file)
    except UsageError as error:
        assert "\n" not in str(error)
        return
    page, picture, summary = (tmp_path / name for name in ("p.html", "p.svg", "summary.md"))
    patched = mock.patch.dict(os.environ, GITHUB_STEP_SUMMARY=str(summary))
    for command in (
        ("report", every, "--format", fmt),
        ("report", every, charted, others, "--fastest"),
        ("compare", charted, others, "--format", fmt),
        ("compare", every, others, "--fail-if-slower", "5%"),
        ("report", every, others, "--page", page, "--picture", picture, "--force"),
        ("report", charted, "--picture", picture, "--force"),
    ):
        with patched:
            done = matbench(*command, code=None)
        assert done.exit_code in (0, 1, 2, 3), f"{command}: {done.exit_code}\n{done.output}"


# Command lines


#: `watch` never ends, `doctor` is about this machine alone, and a group alone is its help.
LEFT_OUT = ((), ("watch",), ("doctor",))
COMMANDS = [list(path) for path in command_paths() if path not in LEFT_OUT]
LINES = [line.split() for line in Path(__file__).with_name("lines.txt").read_text().splitlines()]
VARIABLES = st.sampled_from(
    ("MATBENCH_STATE_DIR", "MATBENCH_CACHE_BYTES", "COLUMNS", "LINES", "NO_COLOR", "TERM", "HOME",
     "XDG_STATE_HOME", "CUDA_VISIBLE_DEVICES", "LANG", "GIT_DIR", "TMPDIR", "PAGER")
)  # fmt: skip
HOSTILE = st.sampled_from(
    ("\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\u202etxt", "\0", "\r", "\n", "\udc80", "[/]")
)  # fmt: skip

WORDS = st.one_of(
    st.sampled_from(["old.jsonl", "mine.cu", ".", "out.png", "tiled", "cublas", "cpu", "64", "5%"]),
    (st.integers() | st.floats() | st.sampled_from([0, 2**31, 2**64, 10**300])).map(str),
    st.lists(st.text(max_size=8) | HOSTILE, max_size=4).map("".join),
).map(lambda word: word.replace("/", "").replace("..", ""))  # files stay in the folder
VALUES = WORDS.map(lambda word: word.replace("\0", "").encode("utf-8", "replace").decode())


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A line that is right, or a bare command, and further options and words."""
    words = list(draw(st.sampled_from(LINES + COMMANDS)))
    command = command_at((words[0],))
    wanted = [one for one in command.params if "--cluster" not in one.opts]  # waits for a host
    for option in draw(st.lists(st.sampled_from(wanted), max_size=3)) if wanted else ():
        choices = list(getattr(option.type, "choices", ()))
        value = draw(st.sampled_from(choices) if choices else WORDS)
        if isinstance(option, click.Option):
            words.append(draw(st.sampled_from(option.opts + option.secondary_opts)))
        if not getattr(option, "is_flag", False) or draw(st.integers(0, 9)) == 0:
            words.append(str(value))
    return [word.replace("\0", "") for word in words]  # no shell can pass one


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker and no compiler is started: each case has failed."""
    dead = mock.Mock(side_effect=DiedError("is not started in this test"))
    missing = mock.Mock(side_effect=UnavailableError("no compiler in this test"))
    monkeypatch.setattr(WorkerProcess, "start", lambda *_: None)
    monkeypatch.setattr(WorkerProcess, "call", dead)
    monkeypatch.setattr(compilation, "compiled_by_nvcc", missing)


@settings(suppress_health_check=list(HealthCheck))
@given(words=command_lines(), variables=st.dictionaries(VARIABLES, VALUES, max_size=2))
def test_any_command_line_is_obeyed_or_refused(
    words: list[str], variables: dict[str, str], no_process: None, tmp_path: Path,
    write_kernel: KernelWriter, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for kind in ("CACHE", "STATE"):
        monkeypatch.setenv(f"MATBENCH_{kind}_DIR", str(tmp_path / kind))
    write_kernel("mine")
    for name in ("old.jsonl", "new.jsonl"):
        records = [
            environment(),
            outcome(),
            outcome(status="skipped", skip=Skip("unavailable", "no")),
        ]
        (tmp_path / name).write_text("\n".join(map(encoding.line, records)), encoding="utf-8")
    done = CliRunner(env=variables).invoke(cli.main, words, prog_name="matbench")
    assert isinstance(done.exception, SystemExit | None), words
    assert done.exit_code in (0, 1, 2, 3), words
    if words[0] != "kernels":  # which prints a source as it is
        assert safe.text(done.output) == done.output
    if done.exit_code == 2:
        assert done.stderr.splitlines()[-1].startswith("matbench")


# Reports of files


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
    rows = csv_rows(matbench("report", RECORDED[kind], "--format", "csv").stdout)
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
