"""Installs what CUDA needs into this Python environment: a compiler from wheels, and PyCUDA.

PyCUDA has no wheels, and its build finds a toolkit only where `nvcc` is on PATH. A toolkit from
wheels has no library names that a linker looks for, and no folder that the loader searches.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from matbench import files, programs
from matbench.backends.cuda import compilation, libcuda
from matbench.errors import MatbenchError, UsageError

#: The toolkit's first release whose wheels contain nvcc, and the driver that supports it.
_FIRST_WHEELS, _ITS_DRIVER = 13, 580
_PARTS = "cccl,crt,cudart,curand,nvcc,nvvm,profiler"
#: Reads machine code, also that of earlier releases; not one of the toolkit's parts.
_NVDISASM = "nvidia-cuda-nvdisasm"


def install() -> Iterator[str]:
    """Install what is missing; says what it does before each step.

    Without a toolkit, nvcc and headers come from wheels of the driver's release. `UsageError` if
    something is missing that pip cannot install; `MatbenchError` if pip fails.
    """
    pip = _pip()
    if missing := build_tools_missing():
        raise UsageError(f"PyCUDA cannot be built: {missing}")
    nvcc = compilation.find()
    if nvcc is None or compilation.is_from_wheels(nvcc):
        version = libcuda.version()
        if version is None:
            what = "install it first, or for the CPU: matbench-cuda[cpu]"
            raise UsageError(f"no NVIDIA driver; {what}")
        release = "{}.{}".format(*version)
        if version[0] < _FIRST_WHEELS:
            raise UsageError(
                f"the driver supports CUDA {release}, whose nvcc does not come as wheels; install "
                f"the CUDA toolkit {release} and put its bin folder on PATH, or update the driver "
                f"to {_ITS_DRIVER} or newer"
            )
        yield f"installing nvcc {release} and CUDA's headers from wheels"
        _run([*pip, _NVDISASM, f"cuda-toolkit[{_PARTS}]=={release}.*"])
        importlib.invalidate_caches()
        nvcc = compilation.find()
        assert nvcc is not None
    yield "installing PyCUDA, which takes some minutes to build"
    with build_environment(nvcc) as environment:
        # A wheel in pip's cache may have been built against another toolkit.
        fresh = [*pip, "--no-cache-dir"]
        if find_spec("pycuda") is not None and not _imports("pycuda.driver"):
            _run([*fresh, "--force-reinstall", "--no-deps", "pycuda"], environment)
        _run([*fresh, "matbench-cuda[cuda]"], environment)
    importlib.invalidate_caches()
    compilation.nvcc.cache_clear()


def build_tools_missing() -> str | None:
    """What PyCUDA's build lacks, with the command that installs it; None if it has everything."""
    if programs.which("g++") is None:
        return f"no C++ compiler; {system_package('g++', 'gcc-c++')}"
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        python = f"python3.{sys.version_info.minor}"
        return f"no {header}; {system_package(f'{python}-dev', 'python3-devel')}"
    return None


def system_package(debian: str, fedora: str) -> str:
    """The command that installs a package of the system."""
    if programs.which("dnf"):
        return f"sudo dnf install {fedora}"
    return f"sudo apt-get install {debian}"


@contextmanager
def build_environment(nvcc: Path) -> Iterator[dict[str, str]]:
    """The environment variables with which PyCUDA's build finds the toolkit of this nvcc."""
    root = (compilation.root(nvcc) or nvcc.parents[1]).resolve()
    variables = {"CUDA_ROOT": str(root), "PATH": str(root / "bin")}
    with files.temporary_folder() as folder:
        if compilation.is_from_wheels(nvcc):
            curand = next((root / "lib").glob("libcurand.so.*"), None)
            for name, file in (("curand", curand), ("cuda", libcuda.path())):
                if file is not None:
                    Path(folder, f"lib{name}.so").symlink_to(file)
            # Relative to site-packages/pycuda, where the extension module will be.
            found_there = f"-Wl,-rpath,$ORIGIN/../nvidia/{root.name}/lib"
            variables |= {
                "CPATH": str(root / "include"), "LIBRARY_PATH": str(folder),
                "LDFLAGS": found_there,
            }  # fmt: skip
        for name, value in variables.items():
            joint = " " if name == "LDFLAGS" else os.pathsep
            if name != "CUDA_ROOT" and os.environ.get(name):
                variables[name] = f"{value}{joint}{os.environ[name]}"
        yield variables


def _pip() -> list[str]:
    """The command that installs into this environment."""
    if find_spec("pip") is not None:
        asked = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        return [sys.executable, *asked]
    uv = programs.which("uv")
    if uv is None:
        raise UsageError(f"{sys.executable} has no pip; run its -m ensurepip, or install uv")
    return [uv, "pip", "install", "--quiet", "--python", sys.executable]


def _run(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    """Run pip, which prints only errors; `MatbenchError` if it fails."""
    with files.temporary_folder() as empty:  # uv takes its index from the working folder's uv.toml
        done = subprocess.run(
            command, env={**os.environ, **(environment or {})}, cwd=empty, check=False
        )
    if done.returncode != 0:
        raise MatbenchError(f"pip could not install {command[-1]}; its messages are above")


def _imports(module: str) -> bool:
    """Whether a module can be imported, tried in another process."""
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True)
    return done.returncode == 0
