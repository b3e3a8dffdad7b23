"""Ctrl-C, SIGTERM and SIGKILL: what is known is kept, and no process is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import GOOD_BODY, SPIN_BODY, KernelWriter
from support.paths import ROOT
from test_terminal import COMMAND, assert_gone, on_terminal

from matbench.model import DeviceInfo

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SPIN = SPIN_BODY.partition("{")[2].rpartition("C[0]")[0]
#: Right with TILE = 8; with 16 it goes on for long.
PARTLY_BODY = GOOD_BODY.replace("{", "{\n#if TILE == 16\n" + SPIN + "\n#endif\n", 1)


@pytest.fixture
def partly(write_kernel: KernelWriter) -> Path:
    path = write_kernel("partly", body=PARTLY_BODY)
    path.write_text(path.read_text().replace("TILE = [8]", "TILE = [8, 16]"))
    return path


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_second_case(output: Path) -> None:
    ends = time.monotonic() + 60
    while not (output.exists() and output.read_bytes().count(b"\n") > 1):
        assert time.monotonic() < ends
        time.sleep(0.05)
    time.sleep(0.5)


def alive(group: int) -> list[int]:
    """The processes of a group that are not ending."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(of_group) == group and state not in "ZX":
            found.append(int(path.parent.name))
    return found


def assert_none_alive(group: int) -> None:
    ends = time.monotonic() + 10
    while alive(group):
        assert time.monotonic() < ends, alive(group)
        time.sleep(0.05)


@pytest.mark.parametrize("to_all", [False, True], ids=["to-one", "to-all"])
def test_sigterm_leaves_the_table_so_far_and_no_process(
    partly: Path, tmp_path: Path, device: DeviceInfo, to_all: bool
) -> None:
    output = tmp_path / "out.jsonl"
    process = started("run", "--kernel", partly, "--sizes", "20", "--output", output)
    wait_for_second_case(output)
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 143
    assert stderr == "interrupted: 1 of 2 cases are done\n"
    assert "1 measured, 0 wrong, 0 failed, 0 skipped" in stdout
    assert_gone(process.pid)


def test_a_worker_ends_with_a_parent_that_was_killed(
    partly: Path, tmp_path: Path, device: DeviceInfo
) -> None:
    output = tmp_path / "out.jsonl"
    process = started("run", "--kernel", partly, "--sizes", "20", "--output", output)
    wait_for_second_case(output)
    assert len(alive(process.pid)) >= 2
    process.kill()
    process.communicate(timeout=30)  # until all that hold its output are gone
    assert_none_alive(process.pid)


def test_sigterm_ends_a_watch_too(write_kernel: KernelWriter, device: DeviceInfo) -> None:
    process = started("run", "--watch", write_kernel(), "naive-2d", "--sizes", "20")
    assert process.stdout is not None
    assert "version 1" in process.stdout.readline()
    process.terminate()
    _, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (143, "interrupted\n")
    assert_gone(process.pid)


@pytest.mark.parametrize("told_by", ["the system", "a pipe"])
def test_an_idle_process_ends_with_its_parent(told_by: str, tmp_path: Path) -> None:
    """Also where the system cannot be asked to see to it."""
    script = tmp_path / "parent.py"
    script.write_text(
        "import multiprocessing, sys, time\n"
        "from matbench import signals\n"
        "def child(told_by, ready):\n"
        "    if told_by == 'a pipe':\n"
        "        signals._asked_linux = lambda: False\n"
        "    signals.end_with_parent()\n"
        "    ready.set()\n"
        "    time.sleep(600)\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    ready = context.Event()\n"
        "    context.Process(target=child, args=(sys.argv[1], ready)).start()\n"
        "    ready.wait()\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(600)\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [sys.executable, script, told_by],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        assert len(alive(process.pid)) >= 2
        process.kill()
        process.wait()
        assert_none_alive(process.pid)


def test_ctrl_c_held_down_loses_nothing(partly: Path, tmp_path: Path, device: DeviceInfo) -> None:
    output = tmp_path / "out.jsonl"
    process = started("run", "--kernel", partly, "--sizes", "20", "--output", output)
    wait_for_second_case(output)
    ends = time.monotonic() + 30
    while process.poll() is None:
        assert time.monotonic() < ends
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.03)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert stderr == "interrupted: 1 of 2 cases are done\n"
    assert "1 measured, 0 wrong, 0 failed, 0 skipped" in stdout
    assert_gone(process.pid)


def test_ctrl_c_while_the_program_is_imported(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", ""), str(ROOT)]
    done = subprocess.run(
        [*COMMAND, "list"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "second", "known", "said"),
    [
        (["check", "PARTLY"], "TILE=16", "right at 1 of 1", "probes are done"),
        (["explain", "PARTLY", "--size", "20", "--tiles", "8,16"], "TILE=16", "TILE=8", "of "),
        (
            ["compare", "partly", "naive-2d", "--kernel", "PARTLY", "--tiles", "8,16",
             "--sizes", "20", "--max-time", "0.2"],
            "1/2", "naive-2d", "interrupted: 1 of 2 comparisons are done",
        ),
        (["tune", "PARTLY", "--sizes", "20"], "TILE=16", "best so far", "0 of 1 sizes are done"),
        (["blocks", "PARTLY", "--size", "20", "--tile", "16"], "partly", "", "0 of 1 cases"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_every_command_keeps_what_it_knows(
    partly: Path, tmp_path: Path, device: DeviceInfo,
    arguments: list[str], second: str, known: str, said: str,
) -> None:  # fmt: skip
    since: list[float] = []

    def in_the_second(written: str) -> bool:
        if second in written and not since:
            since.append(time.monotonic())
        return bool(since) and time.monotonic() > since[0] + 1

    table = tmp_path / "stdout"
    session = on_terminal(
        *(str(partly) if word == "PARTLY" else word for word in arguments),
        interrupt_when=in_the_second,
        stdout_to=table,
    )
    assert session.code == 130
    assert "Traceback" not in session.written
    [line] = [line for line in session.lines if line.startswith("interrupted: ")]
    assert said in line
    shown = table.read_text(encoding="utf-8")
    assert known in shown
    assert bool(shown) == bool(known)


@pytest.mark.parametrize("command", [
    ["check", "SPINS"], ["explain", "SPINS", "--size", "20"], ["tune", "SPINS", "--sizes", "20"],
    ["compare", "spins", "naive-2d", "--kernel", "SPINS", "--sizes", "20"],
], ids=lambda command: command[0])  # fmt: skip
def test_nothing_known_is_no_table(
    write_kernel: KernelWriter, tmp_path: Path, device: DeviceInfo, command: list[str]
) -> None:
    spins = write_kernel("spins", body=SPIN_BODY)
    table = tmp_path / "stdout"
    session = on_terminal(
        *(str(spins) if word == "SPINS" else word for word in command),
        interrupt_when=lambda written: "spins" in written,
        stdout_to=table,
    )
    assert (session.code, table.read_text(encoding="utf-8")) == (130, "")
    assert [line for line in session.lines if line.startswith("interrupted: 0 of ")]


def test_a_kernel_that_hangs_is_not_probed_to_the_end(
    write_kernel: KernelWriter, device: DeviceInfo
) -> None:
    process = started("check", write_kernel("spins", body=SPIN_BODY), "--timeout", "2")
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (1, "")
    assert stdout.count("FAILED") == 2
    assert "running took longer than 2 s and was stopped (see --timeout)" in stdout
    rows = [line for line in stdout.splitlines() if line.rstrip().endswith("–")]
    assert f"{len(rows)} probes left out: 2 had passed their deadline (see --timeout)" in stdout
    assert len(rows) > 10
