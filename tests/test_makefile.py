"""What `make` installs: PyCUDA where there is an NVIDIA driver, otherwise OpenCL for the CPU."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import drivers
from support.optional import present
from support.paths import ROOT, programs

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")

#: Makes an environment whose programs write down their arguments; `matbench` fails if told to.
PYTHON = programs(__file__)["a Python that notes what is run"]


class Project:
    """An empty clone on a machine with or without a driver."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tools = folder / "clone", folder / "tools"
        self.folder.mkdir()
        for name in ("Makefile", "constraints.txt", "pyproject.toml"):
            shutil.copy(ROOT / name, self.folder)
        self.python = drivers.program(self.tools / "python", PYTHON)
        drivers.program(self.tools / "ldconfig")  # knows no library
        for name in ("make", "sh", "awk", "cat", "chmod", "grep", "ls", "mkdir", "touch"):
            found = present(shutil.which(name))
            (self.tools / name).symlink_to(found)
        self.driver(False)

    def driver(self, works: bool) -> None:
        drivers.program(self.tools / "nvidia-smi", "" if works else "exit 9")

    def make(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        path = str(self.tools)  # no nvcc
        return subprocess.run(
            ["make", f"PYTHON={self.python}", *arguments],
            cwd=self.folder,
            env=os.environ | {"PATH": path, "MAKEFLAGS": "", "ARGS": ""} | variables,
            capture_output=True,
            text=True,
        )

    def ran(self) -> list[str]:
        """The commands that installed and measured, without pip's options."""
        kept = self.folder / "ran"
        lines = kept.read_text(encoding="utf-8").splitlines()
        kept.unlink()
        return [line.rpartition("--editable ")[2] for line in lines if "import pip" not in line]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_without_a_driver_the_cpu_is_measured(project: Project) -> None:
    done = project.make("bench")
    assert (done.returncode, done.stderr.splitlines()[1][:4]) == (0, "Next")
    assert project.ran() == [".[cpu,plots]", "matbench run --sizes 256,1000"]


def test_with_a_driver_pycuda_is_installed_once(project: Project) -> None:
    project.driver(True)
    assert project.make("bench").returncode == 0
    measured = "matbench run --sizes 256,1000"
    assert project.ran() == [".[plots]", "matbench doctor --install", measured]
    project.make("bench")
    assert project.ran() == [measured]
    project.make("quick")
    assert project.ran()[:2] == [".[plots,dev]", "matbench doctor --install"]


def test_the_site_needs_no_device(project: Project) -> None:
    project.driver(True)
    assert "build/site/index.html" in project.make("site").stdout
    [installed, built] = project.ran()
    assert installed == ".[site]"
    assert "mkdocs build" in built


def test_the_user_chooses(project: Project) -> None:
    project.driver(True)
    assert project.make("bench", "EXTRA=cpu").returncode == 0
    assert project.ran()[0] == ".[cpu,plots]"
    project.driver(False)
    assert project.make("bench", "EXTRA=cuda").returncode == 0
    assert project.ran()[:2] == [".[plots]", "matbench doctor --install"]


def test_what_is_missing_is_said_and_the_cpu_is_not_measured_instead(project: Project) -> None:
    project.driver(True)
    for _ in range(2):  # nothing counts as installed
        done = project.make("bench", FAILS="yes")
        assert done.returncode == 2
        assert done.stderr.splitlines()[:2] == [
            "matbench: no C++ compiler", "To measure the CPU instead: make EXTRA=cpu bench"
        ]  # fmt: skip
        assert project.ran()[-1] == "matbench doctor --install"
