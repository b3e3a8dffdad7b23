"""What the system refuses is told in one line, and a pipe in the place of a file blocks nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.paths import ROOT
from support.terminal import COMMAND

from matbench.model import DeviceInfo

ONE_CASE = ("tiled", "--set", "TILE=8", "--sizes", "8")


def after(setup: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in a folder, after a line of shell."""
    return subprocess.run(
        ["sh", "-c", f'{setup}\nexec "$0" "$@"', *COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
    )


GONE = "mkdir gone; cd gone; rmdir ../gone"
NO_WORKER = "a worker process cannot be started: "


@pytest.mark.parametrize(
    ("setup", "arguments", "told"),
    [
        (GONE, ("run", *ONE_CASE), f"{NO_WORKER}the working folder no longer exists; change to"),
        (GONE, ("show", "tiled"), "the working folder no longer exists; change to another one"),
        ("ulimit -n 10", ("run", *ONE_CASE), f"{NO_WORKER}Too many open files; raise `ulimit -n`"),
        ("ulimit -n 16", ("run", *ONE_CASE), f"{NO_WORKER}Too many open files; raise `ulimit -n`"),
        ("echo raise MemoryError > click.py", ("list",), "out of memory"),
        ("echo import missing > click.py", ("list",), "No module named 'missing'"),
    ],
)
def test_the_true_reason_is_told(
    setup: str, arguments: tuple[str, ...], told: str, tmp_path: Path, device: DeviceInfo
) -> None:
    done = after(setup, *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"matbench: {told}")
    assert done.stderr.count("\n") == 1
