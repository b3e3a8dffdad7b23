"""The command in a real terminal: its bar, its width, and Ctrl-C; and what changes in a pipe."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import SPIN_BODY, Matbench, kernel_text
from rich.cells import cell_len

from matbench.kernelfile import catalogue
from matbench.model import DeviceInfo, Problem
from matbench.records import results
from matbench.records.outcome import Outcome
from matbench.workloads import WORKLOADS

COMMAND = [sys.executable, "-m", "matbench"]
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9])")


class Session(NamedTuple):
    """What became of a command on a terminal: its exit code, and all that it wrote there."""

    code: int
    written: str

    @property
    def lines(self) -> list[str]:
        """Every line as it stood there at some time, without colours and movements."""
        return re.split(r"\r\n|\r|\n", CONTROL.sub("", self.written))


def on_terminal(
    *arguments: str | Path,
    width: int = 100,
    interrupt_when: Callable[[str], bool] = lambda _: False,
    environment: dict[str, str] | None = None,
    stdout_to: Path | None = None,
    stderr_to: Path | None = None,
    limit_s: float = 60,
) -> Session:
    """Run the command on a pseudo-terminal of its own, and press Ctrl-C there when it is time."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    opened = [path.open("wb") if path else None for path in (stdout_to, stderr_to)]
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=inside,
        stdout=opened[0] or inside,
        stderr=opened[1] or inside,
        start_new_session=True,
        # The terminal becomes that of the session, so that it sends Ctrl-C to all of it.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env={**os.environ, "TERM": "xterm-256color", **(environment or {})},
    )
    os.close(inside)
    written, ends, pressed = b"", time.monotonic() + limit_s, False
    try:
        while True:
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    piece = os.read(terminal, 65536)
                except OSError:  # the last process on the terminal is gone
                    break
                if not piece:
                    break
                written += piece
            if not pressed and interrupt_when(written.decode(errors="replace")):
                os.write(terminal, b"\x03")
                pressed = True
            assert time.monotonic() < ends, written.decode(errors="replace")[-2000:]
        return Session(process.wait(timeout=limit_s), written.decode())
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(terminal)
        for file in opened:
            if file is not None:
                file.close()


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """A good kernel, and one that goes on for long."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "a-good.cu").write_text(kernel_text("a-good"), encoding="utf-8")
    (folder / "b-spins.cu").write_text(kernel_text("b-spins", body=SPIN_BODY), encoding="utf-8")
    return folder


def outcomes_in(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()[1:]
    except FileNotFoundError:
        return []


def assert_gone(group: int) -> None:
    """No process of this group is left behind, but for those that are ending just now."""
    ends = time.monotonic() + 10
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < ends:
            os.killpg(group, 0)
            time.sleep(0.05)


# -- Ctrl-C --------------------------------------------------------------------------------------


def test_ctrl_c_leaves_the_table_so_far_and_a_valid_file(
    kernels: Path, tmp_path: Path, device: DeviceInfo
) -> None:
    output = tmp_path / "out.jsonl"
    since: list[float] = []

    def in_the_second_case(_: str) -> bool:
        if outcomes_in(output) and not since:
            since.append(time.monotonic())
        return bool(since) and time.monotonic() > since[0] + 0.5

    started = time.monotonic()
    session = on_terminal(
        "run", "--kernels-dir", kernels, "--sizes", "20", "--output", output,
        interrupt_when=in_the_second_case,
    )  # fmt: skip
    assert session.code == 130
    assert time.monotonic() - started < 15
    text = "\n".join(session.lines)
    assert "Traceback" not in text
    assert "interrupted: 1 of 2 cases are done" in text
    table = text[text.rindex("status") :]
    assert re.search(r"^a-good ★ .*measured", table, re.MULTILINE)
    assert "b-spins" not in table
    assert "1 measured, 0 wrong, 0 failed, 0 skipped" in table
    [environment], [outcome] = results.read(output)
    assert (outcome.case.kernel, outcome.status) == ("a-good", "measured")
    assert environment.argv[0] == "run"
    assert results.read(results.last_run_path())[1] == [outcome]
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".lock"]


def test_ctrl_c_before_the_first_case_is_done(kernels: Path, device: DeviceInfo) -> None:
    session = on_terminal(
        "run", "--kernel", kernels / "b-spins.cu", "--sizes", "20",
        interrupt_when=lambda written: "b-spins" in written,
    )  # fmt: skip
    assert session.code == 130
    text = "\n".join(session.lines)
    assert "Traceback" not in text
    assert "interrupted: 0 of 1 cases are done" in text


def test_ctrl_c_while_comparing(kernels: Path, device: DeviceInfo) -> None:
    session = on_terminal(
        "compare", "a-good", "b-spins", "--kernels-dir", kernels, "--sizes", "20",
        interrupt_when=lambda written: "b-spins" in written,
    )  # fmt: skip
    assert session.code == 130
    assert "Traceback" not in session.written


def test_an_outcome_that_was_just_written_is_kept(tmp_path: Path) -> None:
    """Whenever Ctrl-C comes: a file that holds something is never taken back."""
    about = results.environment([], [], {})
    path = tmp_path / "out.jsonl"
    problem = Problem(1, 1, 1)
    outcome = Outcome(
        kernel="k", sha256="", group="tutorial", params={}, problem=problem, backend="b",
        device="d", device_kind="cpu", status="skipped",
    )  # fmt: skip

    class Interrupted(results.RecordWriter):
        def _append(self, data: bytes) -> None:
            super()._append(data)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Interrupted(path, about) as writer:
        writer.write(outcome)
    assert results.read(path) == ([about], [outcome])


def test_a_run_without_a_terminal_can_be_interrupted_too(
    kernels: Path, tmp_path: Path, device: DeviceInfo
) -> None:
    output = tmp_path / "out.jsonl"
    process = subprocess.Popen(
        [*COMMAND, "run", "--kernels-dir", kernels, "--sizes", "20", "--output", output],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    ends = time.monotonic() + 60
    while not outcomes_in(output):
        assert time.monotonic() < ends
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "a-good" in stdout
    assert stderr == "interrupted: 1 of 2 cases are done\n"
    assert len(results.read(output)[1]) == 1
    assert_gone(process.pid)


# -- the bar -------------------------------------------------------------------------------------

RUN = ("run", "tiled", "--tiles", "8,16", "--sizes", "9", "--max-time", "0.001", "--no-blocks")


def test_a_terminal_shows_a_bar_while_it_lasts(device: DeviceInfo) -> None:
    session = on_terminal(*RUN)
    assert session.code == 0
    assert re.search(r"━+.*[01]/2.*tiled TILE=(8|16) at 9", session.written)
    assert "\x1b[" in session.written  # colours
    end = session.written[session.written.rindex("━") :]
    assert "2 measured, 0 wrong, 0 failed, 0 skipped" in end


def test_the_bar_does_not_mix_with_what_is_piped(device: DeviceInfo, tmp_path: Path) -> None:
    piped = tmp_path / "stdout"
    session = on_terminal(*RUN, "--format", "json", stdout_to=piped)
    assert "━" in session.written
    records = json.loads(piped.read_text(encoding="utf-8"))
    assert [record["type"] for record in records] == ["environment", "outcome", "outcome"]

    session = on_terminal(*RUN, stderr_to=tmp_path / "stderr")
    assert "━" not in session.written
    assert (tmp_path / "stderr").read_bytes() == b""
    assert "2 measured" in session.written


def test_a_pipe_gets_neither_bar_nor_colours(device: DeviceInfo) -> None:
    done = subprocess.run(
        [*COMMAND, *RUN], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True
    )
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "━" not in done.stdout
    assert "2 measured, 0 wrong, 0 failed, 0 skipped" in done.stdout


# -- widths --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def records(
    matbench: Matbench, tmp_path_factory: pytest.TempPathFactory, device: DeviceInfo
) -> Path:
    """A sweep with long names and reasons, of every status."""
    folder = tmp_path_factory.mktemp("records")
    long = "a-kernel-of-a-rather-long-name"
    liar = kernel_text("liar").replace("k < K", "k < K - 1")
    (folder / "long.cu").write_text(kernel_text(long), encoding="utf-8")
    (folder / "liar.cu").write_text(liar, encoding="utf-8")
    (folder / "typo.cu").write_text(kernel_text("typo").replace("sum +=", "summ +="), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MATBENCH_STATE_DIR", str(folder / "state"))
        matbench(
            "run", "tiled", "kahan", "--kernels-dir", folder, "--sizes", "20,33x20x40",
            "--tiles", "8,500", "--output", folder / "out.jsonl", "--max-time", "0.001", code=1,
        )  # fmt: skip
    return folder / "out.jsonl"


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int, records: Path) -> None:
    session = on_terminal("report", records, width=width)
    assert session.code == 0
    assert max(map(cell_len, session.lines)) <= width
    text = "\n".join(session.lines)
    together = "".join(text.split())
    assert "6 measured, 2 wrong, 2 failed, 10 skipped" in text
    # Whatever columns had to go, these stay, and reasons are told to their end.
    for word in ("kernel", "parameters", "time", "status", "tiled", "kahan", "TILE=8", "★"):
        assert word in text
    for word in ("needsTILE*TILE<=max_threads_per_block", "summ", "elementswrong"):
        assert word in together


EXPLAIN = ("explain", "tiled", "--size", "33", "--tiles", "8,32", "--arch", "g80,this")


@pytest.mark.parametrize("command", [("list",), ("show", "shared-row"), ("--help",), EXPLAIN])
@pytest.mark.parametrize("width", [60, 100])
def test_other_commands_keep_to_the_width(command: tuple[str, ...], width: int) -> None:
    session = on_terminal(*command, width=width)
    assert session.code == 0
    assert max(map(cell_len, session.lines)) <= width


@pytest.mark.parametrize("width", [60, 80, 120])
def test_an_explanation_breaks_no_name_of_a_column(width: int) -> None:
    lines = on_terminal(*EXPLAIN, width=width).lines
    tables = [line for line in lines if line.startswith("parameters ")]
    assert len(tables) == 2
    assert all(line.split()[:2] == ["parameters", "threads"] for line in tables)
    assert all("resident" in line for line in tables[:1])
    text = "\n".join(lines)
    assert "32 × 32 = 1,024 threads a block > 512" in text
    [row] = [line for line in lines if line.startswith("least traffic")]
    assert "each input read" in row  # the remark wraps in its column
    chart = [line for line in lines if "└" in line]
    assert [cell_len(line.rstrip()) for line in chart] == [min(width, 100) - 8]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_kernels_are_listed_by_group(width: int) -> None:
    session = on_terminal("list", width=width)
    assert max(map(cell_len, session.lines)) <= width
    lines = [line.rstrip() for line in session.lines]
    kernels = catalogue.builtin()
    titles = {f"{kernel.workload} · {kernel.group}" for kernel in kernels}
    found = [line for line in lines if " · " in line and not line.startswith(" ")]
    assert set(found) == titles
    assert len(found) == len(titles)  # each once
    title = ""
    shown: dict[str, str] = {}
    for line in lines:
        if line in titles:
            title = line
        elif name := re.match(r"  (\S+)  ", line):
            shown[name[1]] = title
    assert shown == {kernel.name: f"{kernel.workload} · {kernel.group}" for kernel in kernels}
    together = " ".join(" ".join(lines).split())
    for kernel in kernels:
        assert kernel.summary in together
    assert "TILE 8, 16, 32" in together
    assert "needs cuda, sm_80" in together


def test_a_pipe_gets_a_line_for_each_kernel() -> None:
    done = subprocess.run([*COMMAND, "list"], capture_output=True, text=True, check=True)
    _, *lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        kernel.name
        for workload in WORKLOADS
        for group in ("tutorial", "ladder", "baseline")
        for kernel in catalogue.Catalogue(catalogue.builtin()).group(group, workload)
    ]
    [line] = [line for line in lines if line.startswith("tiled ")]
    for word in ("matmul", "tutorial", "TILE 8, 16, 32", "from T×T tiles in shared memory"):
        assert word in line


def test_the_bar_keeps_to_a_narrow_terminal(device: DeviceInfo) -> None:
    session = on_terminal(*RUN, width=40)
    assert session.code == 0
    assert max(map(cell_len, session.lines)) <= 40


def test_columns_of_the_environment_are_heeded(records: Path) -> None:
    session = on_terminal("report", records, width=200, environment={"COLUMNS": "70"})
    assert max(map(cell_len, session.lines)) <= 70


def test_no_color_is_heeded(records: Path) -> None:
    session = on_terminal("report", records, environment={"NO_COLOR": "1"})
    assert not re.search(r"\x1b\[[0-9;]*3[0-9][;m]", session.written)


def test_in_a_pipe_nothing_is_cut(records: Path) -> None:
    done = subprocess.run([*COMMAND, "report", records], capture_output=True, text=True, check=True)
    _, outcomes = results.read(records)
    for outcome in outcomes:
        assert outcome.case.kernel in done.stdout
        if outcome.reason:
            assert outcome.reason.splitlines()[0] in done.stdout
    assert "avg rel err" in done.stdout


@pytest.mark.parametrize("arguments", [("list",), ("run", "--help"), ("run", "naïve★")])
def test_an_encoding_that_lacks_letters_is_no_error(arguments: tuple[str, ...]) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, env=environment)
    assert done.returncode == (2 if "naïve★" in arguments else 0)
    assert b"Traceback" not in done.stderr
    assert done.stdout + done.stderr


def test_a_reader_that_leaves_early_is_no_error(records: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m matbench report {records} --format json | head -c 10; "
        "echo; exit ${PIPESTATUS[0]}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    assert done.stderr == ""
