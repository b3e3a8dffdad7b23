"""A hostile current folder: nothing in it is run or imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import QUICK
from support.paths import ROOT

from matbench.kernelfile import catalogue, sweep
from matbench.measure import observer
from matbench.model import DeviceInfo, Problem

#: Modules that the processes of a run, and their parents, import first.
MODULES = ("matbench", "multiprocessing", "signal", "pickle", "numpy", "pebble", "sitecustomize")
TRAP = "import pathlib\n(pathlib.Path(__file__).parent / 'PWNED').touch()\nraise SystemExit\n"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with modules of such names; returns what they leave behind."""
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(TRAP)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "PWNED"


def test_no_process_imports_from_the_current_folder(trap: Path, device: DeviceInfo) -> None:
    # As the installed script does it: the folder is not on the path of the main process.
    start = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
    start += "from matbench.__main__ import main\nmain()"
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            start,
            "run",
            "tiled",
            "--sizes",
            "8",
            "--set",
            "TILE=8",
            *QUICK,
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not trap.exists()


def test_an_observed_process_does_not_either(trap: Path, device: DeviceInfo) -> None:
    kernel = catalogue.load(catalogue.kernels_folder() / "tiled.cu")
    case = sweep.case(kernel, Problem(8, 8, 8), {"TILE": 8}, device)
    done = observer.observe(["env"], device, case, guarded=True, timeout_s=60, tool="env")
    assert done.returncode == 0, done.stderr
    assert not trap.exists()
