"""Ctrl-C, SIGTERM, SIGHUP and SIGKILL: results are kept, and no process is left behind."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import record_files
from support.cli import QUICK, Matbench, outside, records_in
from support.kernels import GOOD_BODY, SPIN_BODY, kernel_text, saved
from support.optional import present
from support.paths import programs
from support.terminal import COMMAND, alive, assert_gone, on_terminal, started

from matbench.features.timeline import clocking
from matbench.features.tune import looking
from matbench.records.environment import last_run_path
from matbench.records.writing import RecordWriter
from matbench.worker import comparing, worker

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.usefixtures("own_state", "scripted_device"),
]

PROGRAMS = programs(__file__)
SPIN = SPIN_BODY.partition("{")[2].rpartition("C[0]")[0]
#: Right at n = 20; runs for a long time at 21.
PARTLY_BODY = "#define HANGS N == 21\n" + GOOD_BODY.replace(
    "{", "{\nif (N == 21) {\n" + SPIN + "\n}\n", 1
)
PARTLY_SIZES = ("--sizes", "20,21")


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("partly") / "partly.cu"
    path.write_text(kernel_text("partly", body=PARTLY_BODY), encoding="utf-8")
    return path


def in_the_second_case(output: Path) -> Callable[[str], bool]:
    """Whether a run that writes to this file has been at its second case for a while."""
    since: list[float] = []

    def is_there(_: str) -> bool:
        if not since and output.exists() and output.read_bytes().count(b"\n") > 1:
            since.append(time.monotonic())
        return bool(since) and time.monotonic() > since[0] + 0.2

    return is_there


def wait_for_the_second_case(output: Path) -> None:
    ends, is_there = time.monotonic() + 60, in_the_second_case(output)
    while not is_there(""):
        assert time.monotonic() < ends
        time.sleep(0.05)


def locks(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix == ".lock"]


# -- a run ---------------------------------------------------------------------------------------


@pytest.mark.real
def test_ctrl_c_leaves_the_table_so_far_and_a_valid_file(partly: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    is_there = in_the_second_case(output)
    pressed: list[float] = []

    def interrupt_when(written: str) -> bool:
        if is_there(written):
            pressed.append(time.monotonic())
        return bool(pressed)

    session = on_terminal(
        "run", partly, *QUICK, *PARTLY_SIZES, "--output", output,
        interrupt_when=interrupt_when,
    )  # fmt: skip
    assert session.code == 130
    assert time.monotonic() - pressed[0] < 15  # the kernel would run for much longer
    text = "\n".join(session.lines)
    assert "Traceback" not in text
    assert "interrupted: 1 of 2 cases are done" in text
    table = text[text.rindex("size 20") :]
    assert re.match(r"size 20\s+partly .*µs", table)
    assert "size 21" not in table
    assert "1 measured, 0 wrong, 0 failed, 0 skipped" in table
    [environment], [outcome] = record_files.read(output)
    assert (outcome.case.problem.N, outcome.status) == (20, "measured")
    assert environment.argv[0] == "run"
    assert records_in(last_run_path()) == [outcome]
    assert not locks(tmp_path)


def test_ctrl_c_between_rounds_keeps_those_that_are_done(tmp_path: Path) -> None:
    """The second kernel spins in its first round; the first waits for its second."""
    good, spins = tmp_path / "good.cu", tmp_path / "spins.cu"
    good.write_text(kernel_text("good"), encoding="utf-8")
    spins.write_text(kernel_text("spins", body=SPIN_BODY), encoding="utf-8")
    output = tmp_path / "out.jsonl"
    session = on_terminal(
        "run", good, spins, *QUICK, "--sizes", "20", "--output", output,
        interrupt_when=lambda text: bool(re.search(r"running +spins", text)),
    )  # fmt: skip
    assert session.code == 130
    text = "\n".join(session.lines)
    assert "interrupted: 1 of 2 cases are done" in text
    [outcome] = records_in(output)
    assert (outcome.case.kernel, outcome.status) == ("good", "measured")
    hot = present(outcome.hot)
    assert (len(hot.rounds), hot.settled, hot.stopped) == (1, False, "interrupted")
    assert outcome.interrupted
    assert outside("run", good, *QUICK, "--sizes", "20", "--resume", output).returncode == 0
    first, again = records_in(output)
    assert first == outcome
    assert (again.interrupted, len(present(again.hot).rounds)) == (False, 7)
    assert "1 measured" in outside("report", output).stdout


@pytest.mark.parametrize("is_piped", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_closed_terminal_takes_nothing(is_piped: bool, partly: Path, tmp_path: Path) -> None:
    """Nor if the table would be shown there."""
    output, table = tmp_path / "out.jsonl", tmp_path / "stdout"
    session = on_terminal(
        "run", partly, *QUICK, *PARTLY_SIZES, "--output", output,
        interrupt_when=in_the_second_case(output), hang_up=True,
        stdout_to=table if is_piped else None,
    )  # fmt: skip
    assert session.code == 129
    assert not is_piped or "1 measured, 0 wrong, 0 failed" in table.read_text(encoding="utf-8")
    assert len(records_in(output)) == 1
    assert not locks(tmp_path)


def test_nohup_outlives_its_terminal_and_ends_by_sigterm(partly: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as child processes inherit it
    try:
        process = started("run", partly, *QUICK, *PARTLY_SIZES, "--output", output)
    finally:
        signal.signal(signal.SIGHUP, ignored)
    wait_for_the_second_case(output)
    os.killpg(process.pid, signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 143
    assert stderr == (
        "interrupted: 1 of 2 cases are done\n"
        f"to continue repeat the command with --resume {output} in place of --output\n"
    )
    assert "1 measured, 0 wrong, 0 failed, 0 skipped" in stdout
    assert not locks(tmp_path)
    assert_gone(process.pid)


def test_a_killed_run_leaves_no_process_and_goes_on(partly: Path, tmp_path: Path) -> None:
    output, words = tmp_path / "out.jsonl", ("run", partly, *QUICK, *PARTLY_SIZES)
    process = started(*words, "--output", output)
    wait_for_the_second_case(output)
    assert len(alive(process.pid)) >= 2
    process.kill()
    process.communicate(timeout=30)  # until all processes with its output have ended
    assert_gone(process.pid)
    [finished] = records_in(output)
    assert outside(*words, "--timeout", "1", "--resume", output).returncode == 1
    first, late = records_in(output)
    assert (first, late.status) == (finished, "failed")


@pytest.mark.parametrize("told_by", ["the system", "a pipe"])
def test_an_idle_process_ends_with_its_parent(told_by: str, tmp_path: Path) -> None:
    """Also if the system does not support a death signal."""
    script = saved(tmp_path / "parent.py", PROGRAMS["a parent"])
    process = subprocess.Popen(
        [sys.executable, script, told_by], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    with present(process.stdout) as printed:
        assert printed.readline() == b"ready\n"
        assert len(alive(process.pid)) >= 2
        process.kill()
        process.wait()
        assert_gone(process.pid)


@pytest.mark.long
def test_ctrl_c_held_down_loses_nothing(partly: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    process = started("run", partly, *QUICK, *PARTLY_SIZES, "--output", output)
    wait_for_the_second_case(output)
    ends = time.monotonic() + 30
    while process.poll() is None:
        assert time.monotonic() < ends
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.03)
    stdout, stderr = process.communicate(timeout=30)
    first = "interrupted: 1 of 2 cases are done"
    assert (process.returncode, stderr.split("\n")[0], "Traceback" in stderr) == (130, first, False)
    assert "1 measured, 0 wrong, 0 failed, 0 skipped" in stdout
    assert_gone(process.pid)


#: Sends Ctrl-C as soon as a worker begins its nth task.
Interrupting = Callable[[int], None]


@pytest.fixture
def interrupting(listening: None, monkeypatch: pytest.MonkeyPatch) -> Interrupting:
    def interrupt(nth: int) -> None:
        begun = itertools.count(1)

        def replace(place: Any, name: str) -> None:
            method = getattr(place, name)

            def interrupted(*arguments: Any, **more: Any) -> Any:
                if next(begun) == nth:
                    os.kill(os.getpid(), signal.SIGINT)
                return method(*arguments, **more)

            monkeypatch.setattr(place, name, interrupted)

        replace(worker.Worker, "measure")
        replace(comparing, "compare")
        replace(looking, "look")
        replace(clocking, "clocked")

    return interrupt


SMALL = ("--sizes", "20", "--max-time", "0.02")
CHECK = ["check", "tiled", "--set", "TILE=8"]
EXPLAIN = ["explain", "tiled", *SMALL[:2], "--set", "TILE=8,16"]
BLOCKS = ["blocks", "tiled", "--sizes", "20", "--set", "TILE=8"]
COMPARE = ["compare", "naive-2d", "tiled", "--set", "TILE=8,16", *SMALL]
TUNE = ["tune", "tiled", "--sizes", "20", "--set", "TILE=8,16"]


@pytest.mark.parametrize(
    ("arguments", "nth", "known", "said"),
    [
        (CHECK, 2, "passed 1 of 1", "interrupted: 1 of "),
        (EXPLAIN, 2, "TILE=8", "interrupted: 1 of 2 cases are done"),
        (COMPARE, 2, "naive-2d", "interrupted: 1 of 2 comparisons are done"),
        (TUNE, 2, "best so far", "interrupted: 0 of 1 sizes are done"),
        (["run", "tiled", *SMALL], 1, "", "interrupted: 0 of 3 cases are done"),
        (CHECK, 1, "", "interrupted: 0 of "),
        (EXPLAIN, 1, "", "interrupted: 0 of "),
        (COMPARE, 1, "", "interrupted: 0 of 2 comparisons are done"),
        (TUNE, 1, "", "interrupted: 0 of 1 sizes are done"),
        (BLOCKS, 1, "", "interrupted: 0 of 1 cases"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_command_keeps_what_it_knows(
    arguments: list[str], nth: int, known: str, said: str, interrupting: Interrupting,
    matbench: Matbench,
) -> None:  # fmt: skip
    interrupting(nth)
    result = matbench(*arguments, code=130)
    assert result.stderr.splitlines()[-1].startswith(said)  # nothing to be continued
    assert known in result.stdout
    assert bool(result.stdout) == bool(known)


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_run_without_output_is_continued_from_its_record_if_there_is_one(
    is_recorded: bool, interrupting: Interrupting, matbench: Matbench
) -> None:
    last = last_run_path()
    if not is_recorded:
        last.parent.write_text("no folder")
    words = ["run", "tiled", "--set", "TILE=8,16", *SMALL]
    interrupting(2)
    said, *more = matbench(*words, code=130).stderr.splitlines()[-1 - is_recorded :]
    assert said == "interrupted: 1 of 2 cases are done"
    if not is_recorded:
        return
    [outcome] = records_in(last)
    again = f"repeat the command with --resume {last}"
    assert more == [f"to continue, before any other run, {again}"]
    matbench(*words, "--resume", last)
    first, *others = records_in(last)
    assert (first, first.interrupted) == (outcome, True)
    assert [other.case.params["TILE"] for other in others] == [8, 16]
    assert not any(other.interrupted for other in others)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("run naive-2d --sizes 20,21 --max-time 0.02", "1 of 2 cases are done"),
        pytest.param("grade naive-2d tiled", "1 of 2 kernels are done", marks=pytest.mark.long),
    ],
    ids=["run", "grade"],
)
def test_ctrl_c_while_an_outcome_is_written(
    arguments: str, said: str, listening: None, matbench: Matbench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The outcome is in every record, in the table, and counted."""
    write = RecordWriter.write

    def interrupted(self: RecordWriter, outcome: Any) -> None:
        write(self, outcome)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(RecordWriter, "write", interrupted)
    words = (*arguments.split(), "--set", "TILE=8", "--output", "out.jsonl")
    result = matbench(*words, code=130)
    assert result.stderr.startswith(f"interrupted: {said}\n")
    assert "naive-2d" in result.stdout
    assert "tiled" not in result.stdout
    output = Path("out.jsonl")
    assert output.read_bytes().count(b"\n") == 2  # the environment and one outcome
    if words[0] == "run":
        assert records_in(last_run_path()) == records_in(output)


@pytest.mark.long
def test_a_kernel_that_hangs_is_not_probed_to_the_end(tmp_path: Path) -> None:
    spins = tmp_path / "spins.cu"
    spins.write_text(kernel_text("spins", body=SPIN_BODY), encoding="utf-8")
    process = started("check", spins, "--timeout", "1")
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (1, "")
    assert stdout.count("FAILED") == 1
    assert "running took longer than 1 s and was stopped (see --timeout)" in stdout
    rows = [line for line in stdout.splitlines() if line.rstrip().endswith("–")]
    assert f"{len(rows)} skipped: not tried after the timeout at 1 (see --timeout)" in stdout
    assert len(rows) > 10


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("a signal in a callback", "heard 143\n"),
        ("a signal while it is held", "to the end\nheard 143\n"),
    ],
)
def test_no_signal_is_lost(script: str, said: str) -> None:
    """Not in a callback, where Python cannot raise, nor in an uninterruptible section."""
    start = "import os, signal, time\nfrom matbench import signals\nsignals.listen()\n"
    done = subprocess.run(
        [sys.executable, "-c", start + PROGRAMS[script]], capture_output=True, text=True, timeout=15
    )
    assert (done.stdout, done.stderr) == (said, "")


@pytest.mark.parametrize(
    ("module", "sent", "said"),
    [
        ("matbench.cli", "exec('raise KeyboardInterrupt')", "interrupted"),
        ("matbench.signals", "os.kill(os.getpid(), signal.SIGINT)", ""),  # the first of all
        ("matbench.worker.preloaded", "os.killpg(0, signal.SIGINT)", "interrupted"),  # a server
    ],
)
def test_exit_codes_stay_after_ctrl_c(module: str, sent: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n"
        f"            {sent}\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    folders = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": folders}
    words = [*COMMAND, "run", "tiled", "--sizes", "8", "--backend", "opencl"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, start_new_session=True)
    assert (done.returncode, done.stdout, done.stderr.split(":")[0].strip()) == (130, "", said)


def test_an_error_in_a_callback_is_shown_as_ever() -> None:
    script = (
        "from matbench import signals\nsignals.listen()\n"
        "class Last:\n    def __del__(self): raise ValueError('mine')\n"
        "last = Last()\ndel last\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, "ValueError: mine" in done.stderr) == (0, True)
