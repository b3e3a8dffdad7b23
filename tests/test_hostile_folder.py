"""A hostile current folder: nothing in it is run or imported."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import QUICK
from support.kernels import own_file
from support.paths import ROOT

from matbench import programs
from matbench.features.nvidia_tools import observer
from matbench.kernelfile import catalogue, sweep
from matbench.model import DeviceInfo, Problem

#: Modules that the processes of a run, and their parents, import first.
MODULES = ("matbench", "multiprocessing", "signal", "pickle", "numpy", "pebble", "sitecustomize")
TRAP = "import pathlib\n(pathlib.Path(__file__).parent / 'PWNED').touch()\nraise SystemExit\n"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with modules of such names; returns what they leave behind."""
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(TRAP)
    for name in ("uname", "git"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch {tmp_path / 'PWNED'}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "PWNED"


#: As the installed script does it: the folder is not on the path of the main process.
START = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
START += "from matbench.__main__ import main\nmain()"
#: A library that leaves a trace when it is loaded.
LIBRARY = """#include <fcntl.h>
__attribute__((constructor)) static void load() { creat("TRACE", 0600); }
"""


def measure(cache: Path, **environment: str) -> None:
    """A run in the current folder that compiles everything."""
    words = ("run", "tiled", "--sizes", "8", "--set", "TILE=8", *QUICK)
    done = subprocess.run(
        [sys.executable, "-I", "-c", START, *words], capture_output=True, text=True, timeout=120,
        env=os.environ | {"MATBENCH_CACHE_DIR": str(cache)} | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_in_the_current_folder_is_imported_loaded_or_obeyed(
    trap: Path, device: DeviceInfo, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The loader says which libraries it tries in the current folder: then they are there. Nor is
    a cache used that others may write, from which PyOpenCL would unpickle what it finds."""
    outside = tmp_path_factory.mktemp("outside")
    open_to_all = outside / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    measure(
        outside / "1", LD_DEBUG="libs", LD_DEBUG_OUTPUT=str(outside / "log"),
        HOME="/dev/null/home", XDG_CACHE_HOME=str(open_to_all),
    )  # fmt: skip
    assert not list(open_to_all.iterdir())
    log = "".join(path.read_text(errors="replace") for path in outside.glob("log.*"))
    libraries = {"librt.so.1", *re.findall(r"trying file=([^/\s]\S*)", log)}
    built = outside / "library.so"
    command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(built)]
    subprocess.run(command, input=LIBRARY.replace("TRACE", str(trap)), text=True, check=True)
    for name in libraries:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(built, name)
    # The settings of Intel's runtime: it would write down what it compiles.
    Path("cl.cfg").write_text("CL_CONFIG_DUMP_BIN = True\n")
    before = set(Path().rglob("*"))
    measure(Path(os.path.relpath(outside / "2")), PATH=f":.:{os.environ['PATH']}")
    assert (outside / "2").is_dir(), "a relative path means the same in all processes"
    assert set(Path().rglob("*")) == before
    if "Intel" in device.toolkit:
        assert len(libraries) > 1, "this runtime searches the current folder"
    ctypes.CDLL(str(built))
    assert trap.exists(), "loading such a library leaves a trace"


def test_an_observed_process_does_not_either(trap: Path, device: DeviceInfo) -> None:
    kernel = catalogue.load(own_file("tiled"))
    case = sweep.case(kernel, Problem(8, 8, 8), {"TILE": 8}, device)
    command = ["sh", "-c", 'pwd; exec "$@"', "sh"]
    done = observer.observe(command, device, case, guarded=True, timeout_s=60, tool="sh")
    assert done.returncode == 0, done.stderr
    # Where ncu would find settings, which name files to load.
    assert Path(done.stdout.splitlines()[0]) != trap.parent
    assert not trap.exists()


@pytest.mark.parametrize("path", ["", ".", "{}:", ":{}", "bin", "./bin:{}"])
def test_programs_of_the_current_folder_are_not_run(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path, tmp_path / "bin", tmp_path / "elsewhere"]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        (folder / "nvcc").write_text("#!/bin/sh\n")
        (folder / "nvcc").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path.format(folders[2]))
    found = programs.which("nvcc")
    assert found == (str(folders[2] / "nvcc") if "{}" in path else None)
