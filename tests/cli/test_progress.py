"""The live display of a run: what it shows on a terminal, and how it counts steps."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from support.cli import QUICK, Matbench, records_in
from support.kernels import BROKEN_BODY, GOOD_BODY, SPIN_BODY, WRONG_BODY, kernel_text
from support.record_files import write
from support.records import outcome
from support.terminal import COMMAND, CONTROL, Session, on_terminal

from matbench.cli.console import Display
from matbench.model import Problem
from matbench.worker.worker import Worker

pytestmark = pytest.mark.usefixtures("scripted_device")

BAR = re.compile(r"^[━╸╺]{40} \d/6 0:00:\d\d (?:-:--:--|0:00:\d\d) left$", re.MULTILINE)
COLOURED = re.compile(r"\x1b\[[0-9;]*[39][0-7][;m]")
FAILED = ("wrong c-liar TILE=8 at 9: ", "failed d-typo TILE=8 at 9: ")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels: one is good, one prints, one is wrong, one does not compile, one spins."""
    folder = tmp_path_factory.mktemp("kernels")
    talks = '#define SAYS "a word from the kernel"\n' + GOOD_BODY
    for name, text in {
        "a-good": kernel_text("a-good"),
        "b-talks": kernel_text("b-talks", body=talks),
        "c-liar": kernel_text("c-liar", body=WRONG_BODY),
        "d-typo": kernel_text("d-typo", body=BROKEN_BODY),
        "z-spins": kernel_text("z-spins", body=SPIN_BODY),
    }.items():
        (folder / f"{name}.cu").write_text(text, encoding="utf-8")
    return folder


def sweep(folder: Path, *, last: str = "", **environment: str) -> Session:
    """Six cases, of which one is wrong and one failed; Ctrl-C comes when the display has the last.

    That one spins: the others may all be done before the display is drawn again.
    """
    names = "c-liar", "d-typo", "b-talks", "a-good", "z-spins"
    *files, spinning = (str(folder / f"{name}.cu") for name in names)
    return on_terminal(
        "run", *files, "naive-2d", last or spinning, "--sizes", "9", "--set", "TILE=8", *QUICK,
        width=80, height=24, environment=environment,
        interrupt_when=lambda text: bool(re.search(r"running +z-spins", text)),
    )  # fmt: skip


def test_a_sweep_on_a_usual_terminal(kernels: Path) -> None:
    session = sweep(kernels)
    assert session.code == 130
    assert COLOURED.search(session.written)
    assert max(cell_len(line) for line in session.lines if "━" in line) <= 80
    text = "\n".join(session.lines).replace("^C", "")  # echoed by the terminal
    assert BAR.search(text)
    # Failures come at once, not at the end; they are not drawn again. (A case that is over before
    # the display is drawn again may never be on it, but the last one is.)
    for failed in FAILED:
        [line] = [line for line in session.lines if line.startswith(failed)]
        assert re.search(r"elements wrong|no sum|…", line)
        assert text.index(failed) < text.index(" z-spins TILE=8 at 9")
    assert "kernel output: a word from the kernel" in session.lines
    _, shown, end = text.rpartition("running    z-spins TILE=8 at 9\n")
    assert shown
    # The display is gone in the end; failures are in the table as well.
    assert "━" not in end
    assert "3 measured, 1 wrong, 1 failed, 0 skipped" in end
    assert re.search(r"^ *c-liar .*wrong", end, re.MULTILINE)


def test_a_terminal_that_cannot_move_its_cursor_shows_failures_only(kernels: Path) -> None:
    session = sweep(kernels, last="kahan", TERM="dumb")
    assert "\x1b" not in session.written
    assert "/6" not in session.written
    text = "\n".join(session.lines)
    for line in FAILED:
        assert line in text.partition("kernel output")[0]
    assert re.search(r"^ *c-liar .*wrong", text, re.MULTILINE)


def test_in_a_pipe_there_is_no_display_nor_what_draws_it() -> None:
    script = (
        "import sys\nfrom matbench.cli.console import progress\n"
        "with progress(1) as display:\n    display.begin('a step')\n"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "FORCE_COLOR": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.real
def test_what_is_printed_to_a_file_meanwhile_goes_there(kernels: Path, tmp_path: Path) -> None:
    source = tmp_path / "foreign.cu"
    text = (kernels / "a-good.cu").read_text(encoding="utf-8")
    bare = text[text.index('extern "C"') :].replace("TILE", "16")
    source.write_text(bare, encoding="utf-8")
    piped = tmp_path / "stdout"
    session = on_terminal("adopt", source, stdout_to=piped)
    assert session.code == 0
    assert re.search(r"0:\d\d", session.written)
    first, *_, wrote, following = piped.read_text(encoding="utf-8").splitlines()
    assert first.startswith("`a_good` computes ")  # printed while the display was there
    assert first not in session.written
    assert wrote.startswith("wrote ")
    assert following.startswith("next: matbench run ")


def test_a_resumed_run_begins_with_what_is_done(matbench: Matbench, tmp_path: Path) -> None:
    """Its other case has several rounds."""
    words = ("run", "naive-2d", "--set", "TILE=8", "--max-time", "0.05", "--sizes")
    matbench(*words, "9", "--output", tmp_path / "out.jsonl")
    session = on_terminal(*words, "9,10", "--resume", tmp_path / "out.jsonl")
    counts = re.findall(r"━ (\d/2) ", "\n".join(session.lines))
    assert (counts[0], counts[-1]) == ("1/2", "2/2")


def display_of(
    total: int | None, known: int = 0, **how: Any
) -> tuple[Display, Callable[[], list[str]]]:
    """A display, and what draws it: lines of text."""
    file = io.StringIO()
    given = {"width": 80, "height": 24, "no_color": True} | how
    console = Console(file=file, force_terminal=True, highlight=False, markup=False, **given)
    display = Display(console, total, known)

    def drawn() -> list[str]:
        file.truncate(file.seek(0))
        console.print(display.drawn())
        return [line.rstrip() for line in file.getvalue().splitlines()]

    return display, drawn


def test_rounds_of_cases_add_up() -> None:
    display, drawn = display_of(2)
    filled = []
    for share in (1 / 3, 1 / 3, 1 / 3):
        for problem in (Problem(64, 64, 64), Problem(512, 512, 512)):
            display.done(outcome(problem=problem), "", share)
        bar, *_ = drawn()
        filled.append((bar.count("━"), bar[40:44]))
    assert filled == [(13, " 0/2"), (26, " 1/2"), (40, " 2/2")]


def test_the_time_left_is_that_of_the_rest() -> None:
    now = [100.0]
    display, drawn = display_of(8, 4, get_time=lambda: now[0])
    assert " 4/8 0:00:00 -:--:-- left" in drawn()[0]
    for _ in range(3):
        now[0] += 60
        display.done(outcome(), "", 1.0)
        line = drawn()[0]
    assert line.endswith(" 7/8 0:03:00 0:01:00 left")


@pytest.mark.parametrize("width", [20, 35, 36, 60, 200])
def test_it_fits_any_terminal(width: int) -> None:
    display, drawn = display_of(120, width=width)
    display.begin("a kernel with a long name TILE=16 at 1000x1000x1000 and more")
    lines = drawn()
    assert len(lines) == 2
    assert max(map(cell_len, lines)) <= width
    assert "  0/120 0:00:00" in lines[0]
    assert lines[1].startswith("a kernel with")
    assert lines[0].endswith("left") == (width > 35)


def test_without_a_total_there_is_only_a_clock() -> None:
    display, drawn = display_of(None)
    display.begin("adopting")
    assert re.search(r"━ +0:00:0\d$", drawn()[0])
    assert drawn()[1:] == ["adopting"]


def test_a_failure_is_one_safe_line() -> None:
    display, _ = display_of(2)
    assert display._console is not None
    display.done(outcome("li\x1bar", status="wrong", reason="\x1b[2J wrong\nC[0, 0]"), "", 1.0)
    display.done(outcome(status="failed", reason="x" * 99), "", 1.0)
    assert isinstance(display._console.file, io.StringIO)
    first, second = display._console.file.getvalue().splitlines()
    assert CONTROL.sub("", first) == "wrong li\ufffdar TILE=16 at 17x33x65: \ufffd[2J wrong"
    assert second.endswith("xx…")


def test_steps_without_outcomes_are_counted_when_the_next_begins() -> None:
    display, drawn = display_of(3)
    for done, label in enumerate(("one", "two")):
        display.begin(label)
        bar, *labels = drawn()
        assert f" {done}/3 " in bar
        assert labels == [label]


def test_the_cases_of_several_devices_are_shown_together() -> None:
    display, drawn = display_of(3)
    display.begin("one", place="cuda:0")
    display.begin("two", place="cuda:1")
    assert drawn()[1:] == ["cuda:0  one", "cuda:1  two"]
    display.begin("three", place="cuda:0")
    bar, first, _ = drawn()
    assert " 1/3 " in bar
    assert first == "cuda:0  three"
    display.end("cuda:1")
    assert drawn()[1:] == ["three"]
    display.end("cuda:1")  # nothing was begun there
    assert " 2/3 " in drawn()[0]


def test_a_case_that_is_done_goes_unless_the_next_began(monkeypatch: pytest.MonkeyPatch) -> None:
    display, drawn = display_of(3)
    monkeypatch.setattr(Worker, "doing", "running")  # what was done before
    display.show("na\x1b\nme")
    display.done(outcome("before"), "", 1.0)
    assert drawn()[1:] == ["na\ufffd me"]
    display.show(outcome().case.label)
    display.done(outcome(), "", 1.0)
    assert drawn()[1:] == []
    assert " 2/3 " in drawn()[0]


# Streams


FULL = Path("/dev/full")


def id_of(value: str | tuple[str | int, ...]) -> str:
    """Of a command, of descriptors, or of `PYTHONUNBUFFERED`."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value and 'un'}buffered"


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize(("command", "unbuffered"), [
    (("report", "FILE"), ""), (("report", "FILE"), "1"),
    (("report", "FILE", "--format", "json"), ""), (("kernels", "tiled"), ""), (("--help",), "1"),
], ids=id_of)  # fmt: skip
def test_a_full_disk_is_one_line(command: tuple[str, ...], unbuffered: str, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    write(file, outcome())
    with FULL.open("w") as full:
        done = subprocess.run(
            [*COMMAND, *(str(file) if word == "FILE" else word for word in command)], stdout=full,
            stderr=subprocess.PIPE, text=True, timeout=60, check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "matbench: standard output: No space left on device\n"


RUN = ("run", "tiled", "--set", "TILE=8", "--sizes", "9", "--max-time", "0.001", "--no-blocks")


@pytest.mark.parametrize(("command", "descriptors"), [
    (RUN, (0, 1, 2)), pytest.param(RUN, (2,), marks=pytest.mark.long), (("kernels",), (1,)),
], ids=id_of)  # fmt: skip
def test_a_stream_that_is_closed_is_the_null_device(
    command: tuple[str, ...], descriptors: tuple[int, ...], tmp_path: Path
) -> None:
    """No file, pipe or process takes the place of a closed stream."""
    output = tmp_path / "out.jsonl"
    keeping = ("--output", str(output)) if command[0] == "run" else ()

    def close() -> None:
        for descriptor in descriptors:
            os.close(descriptor)

    done = subprocess.run(
        [*COMMAND, *command, *keeping], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60, check=False, preexec_fn=close,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (1 not in descriptors)
    if keeping:
        assert [outcome.status for outcome in records_in(output)] == ["measured"]


@pytest.mark.parametrize(("command", "unbuffered"), [
    (RUN, ""), (("kernels",), "1"), (("--help",), ""),
], ids=id_of)  # fmt: skip
def test_an_early_end_is_fine(command: tuple[str, ...], unbuffered: str, tmp_path: Path) -> None:
    """It ends quietly, with exit code 1, and keeps what was measured."""
    output = tmp_path / "out.jsonl"
    keeping = ("--output", str(output)) if command == RUN else ()
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, *command, *keeping], stdout=writer, stderr=subprocess.PIPE, text=True,
            timeout=60, check=False, env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
    if keeping:
        assert [outcome.status for outcome in records_in(output)] == ["measured"]
