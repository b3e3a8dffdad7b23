"""What the system refuses is told in one line, and a pipe in the place of a file blocks nothing."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from support.cli import QUICK, Matbench, Refusal
from support.paths import ROOT
from support.terminal import COMMAND

from matbench import backends
from matbench.kernelfile import catalogue

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
        ("ulimit -n 10", ("run", *ONE_CASE), f"{NO_WORKER}Too many open files; raise `ulimit -n`"),
        ("ulimit -n 14", ("run", *ONE_CASE), f"{NO_WORKER}Too many open files; raise `ulimit -n`"),
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


@pytest.mark.usefixtures("nothing_runs")
def test_a_backend_without_a_device_says_what_is_missing(refusal: Refusal) -> None:
    try:
        backends.devices("cuda")
    except backends.UnavailableError:
        pass
    else:
        pytest.skip("CUDA can be used here")
    message = refusal("run", "tiled", "--backend", "cuda", "--output", "kept.jsonl")
    assert message.startswith("no device to run on; cuda: ")
    assert re.search("install|driver", message)


@pytest.mark.usefixtures("own_state")
def test_ctrl_c_without_a_table(matbench: Matbench, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(catalogue, "builtin", interrupted)
    for command in (["run"], ["kernels"], ["compare", "tiled", "kahan"], ["kernels", "tiled"]):
        result = matbench(*command, code=130)
        assert (result.stdout, result.stderr) == ("", "interrupted\n")
