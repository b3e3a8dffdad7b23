"""`matbench run`: what it measures, skips and refuses, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from support import record_files
from support.cli import QUICK, Matbench, Plan, csv_rows, last_run, records_in
from support.fixtures import Noted
from support.kernels import SLOW_BODY, KernelWriter, kernel_text
from support.optional import present
from support.paths import ROOT
from support.terminal import COMMAND

from matbench import backends
from matbench.backends.protocol import UnavailableError
from matbench.bench.options import Deadlines
from matbench.cli.options import DeadlineOptions, LaunchOptions
from matbench.kernelfile import catalogue
from matbench.model import Problem, Skip
from matbench.records.environment import last_run_path
from matbench.worker import worker

pytestmark = pytest.mark.usefixtures("own_state")


def run(matbench: Matbench, *arguments: str | Path, code: int | None = 0) -> Any:
    return matbench("run", *QUICK, *arguments, code=code)


@pytest.mark.long
def test_a_cpu_says_once_that_its_times_are_usually_unsettled(
    matbench: Matbench, write_kernel: KernelWriter
) -> None:
    """Rows that are clearly slower than the fastest have no footnote for that."""
    slow = write_kernel("slow", body=SLOW_BODY)
    command = ("run", slow, "tiled", "--set", "TILE=8", "--sizes", "200,201", "--max-time", "0.05")
    done = matbench(*command, "--uncertainty", "0.01%")
    assert all(o.timing is not None and o.timing.settled is False for o in last_run())
    [line] = [line for line in done.stdout.splitlines() if "did not settle" in line]
    assert line.startswith("4 of 4 times are unsteady or did not settle: usual on a CPU, and no ")
    assert "not settled:" not in done.stdout
    csv = matbench("report", last_run_path(), "--format", "csv").stdout
    assert csv.count(",false,time is up,") == 4


def test_a_baseline_on_the_host(matbench: Matbench) -> None:
    run(matbench, "--group", "baseline", "--sizes", "20,300")
    found = {(o.case.kernel, o.case.problem.size): o for o in last_run()}
    assert found["numpy", "20"].status == found["numpy", "300"].status == "measured"
    assert found["numpy", "20"].case.device_kind == "cpu"
    loop = found["host-loop", "300"]
    assert loop.status == "skipped"
    assert loop.skip is not None
    try:
        backends.host_device()
    except UnavailableError:
        assert loop.skip.kind == "unavailable"
        assert "OpenCL" in loop.skip.needs
    else:
        sides = {"M": 300, "N": 300, "K": 300}
        assert loop.skip == Skip("condition", "M * N * K <= 2**24", {**sides})
        assert found["host-loop", "20"].status == "measured"


def test_after_one_that_is_out_of_memory_the_next_is_measured(matbench: Matbench) -> None:
    run(matbench, "tiled", "--set", "TILE=16", "--sizes", "1000000x1000000x1,8", code=1)
    large, small = last_run()
    assert (large.status, small.status) == ("failed", "measured")
    assert re.match(r"out of (host|device) memory", large.reason or "")


@pytest.mark.usefixtures("scripted_device")
def test_time_that_was_asked_for_is_not_late(matbench: Matbench) -> None:
    run = ("run", "tiled", "--sizes", "1", "--set", "TILE=8", "--uncertainty", "0.000001%")
    found = json.loads(
        matbench(*run, "--max-time", "0.4", "--timeout", "0.2", "--format", "json").stdout
    )
    [outcome] = [record for record in found if record["type"] == "outcome"]
    assert outcome["status"] == "measured", outcome["reason"]


@pytest.mark.parametrize(("timeout_s", "build_s"), [(0.5, 120), (300, 300)])
def test_a_build_has_two_minutes_or_the_timeout(timeout_s: float, build_s: float) -> None:
    assert DeadlineOptions(timeout_s).deadlines == Deadlines(build_s=build_s, run_s=timeout_s)


# -- cold and hot --------------------------------------------------------------------------------


def test_asks_for_both(planned: Plan, noted: Noted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The options that reach the worker, on any machine."""
    made = noted(worker.WorkerPool, "__init__")
    monkeypatch.setattr(LaunchOptions, "require_able", lambda *_: None)
    kinds = {"cold": {"cold"}, "hot": {"hot"}, "cold,graph": {"cold", "hot graph"}}
    kinds |= {"": {"cold"}, "rotating": {"rotating"}}
    for words in kinds:
        [last] = planned("tiled", "--set", "TILE=8", "--sizes", "9", "--method", words)
    assert last.case.problem.inputs == "signed", "as rotating launches have it"
    assert [options.on("gpu").modes for _, options, *_ in made] == [*kinds.values()]


# Other workloads


@pytest.mark.usefixtures("scripted_device")
def test_records_of_a_workload_are_read_again(matbench: Matbench, tmp_path: Path) -> None:
    path = tmp_path / "dot.jsonl"
    words = ("--sizes", "2^10", "--inputs", "signed", *QUICK)
    matbench("run", "dot-tree", *words, "--output", path)
    [outcome] = records_in(path)
    assert outcome.case.problem == Problem(1, 1024, 1, inputs="signed", workload="dot")
    assert outcome.copy_bytes_per_s, "bytes are compared with it"
    [row] = csv_rows(matbench("report", path, "--format", "csv").stdout)
    rate = (8 * 1024 + 4) / present(outcome.median_ns)
    assert float(row["gbytes_per_s"]) == pytest.approx(rate, rel=1e-3)


# What is said of a run later


def test_a_run_is_printed_recorded_and_reported(matbench: Matbench) -> None:
    """Good and bad kernels; JSON has the records, and a report of the fastest one of each."""
    files = {
        "good": kernel_text("good"),
        "liar": kernel_text("liar").replace("k < K", "k < K - 1"),
        "typo": kernel_text("typo").replace("sum +=", "summ +="),
    }
    for name, text in files.items():
        Path(f"{name}.cu").write_text(text, encoding="utf-8")
    output = Path("out.jsonl")
    words = (".", "--sizes", "20,9x8x5", "--set", "TILE=4,8", "--format", "json")
    printed = matbench("run", *words, *QUICK, "--output", output, code=1).stdout
    assert record_files.read(last_run_path()) == record_files.read(output)
    recorded = output.read_text(encoding="utf-8")
    assert json.loads(printed) == [json.loads(line) for line in recorded.splitlines()]
    assert "NaN" not in recorded
    shown = matbench("report", output, "--fastest", "--format", "csv").stdout
    cases = [(row["size"], row["kernel"]) for row in csv_rows(shown)]
    assert sorted(cases) == sorted((size, name) for size in ("20", "9x8x5") for name in files)


# What goes wrong


ONE_CASE = ("tiled", "--set", "TILE=8", "--sizes", "8")


def after(setup: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in a folder, after a line of shell."""
    return subprocess.run(
        ["sh", "-c", f'{setup}\nexec "$0" "$@"', *COMMAND, *arguments], capture_output=True,
        text=True, timeout=60, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
    )  # fmt: skip


GONE = "mkdir gone; cd gone; rmdir ../gone"
NO_WORKER = "a worker process cannot be started: "


@pytest.mark.parametrize(
    ("setup", "arguments", "told"),
    [
        (GONE, ("run", *ONE_CASE), f"{NO_WORKER}the working folder no longer exists; change to"),
        ("ulimit -n 15", ("run", *ONE_CASE), f"{NO_WORKER}Too many open files; raise `ulimit -n`"),
        ("echo raise MemoryError > click.py", ("kernels",), "out of memory"),
        ("echo import missing > click.py", ("kernels",), "No module named 'missing'"),
    ],
)
def test_why_it_failed(setup: str, arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    done = after(setup, *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"matbench: {told}")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def pipes(own_state: None) -> Path:
    """The state folder, with a pipe in place of its file."""
    state = Path(os.environ["MATBENCH_STATE_DIR"])
    state.mkdir()
    os.mkfifo(state / "last-run.jsonl")
    return state


@pytest.mark.usefixtures("scripted_device")
def test_a_run_passes_over_pipes_among_its_own_files(pipes: Path, matbench: Matbench) -> None:
    assert "1 measured" in matbench("run", *ONE_CASE, *QUICK).stdout


# What the system refuses


@pytest.mark.usefixtures("own_state")
def test_ctrl_c_without_a_table(matbench: Matbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "builtin", mock.Mock(side_effect=KeyboardInterrupt))
    for command in (["run"], ["kernels"], ["compare", "tiled", "kahan"], ["kernels", "tiled"]):
        result = matbench(*command, code=130)
        assert (result.stdout, result.stderr) == ("", "interrupted\n")
