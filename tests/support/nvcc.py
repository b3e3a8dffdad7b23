"""Compiles kernels with nvcc where no GPU is: with the toolkit's own, or the one from wheels."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path


class CompileError(Exception):
    """nvcc refused the source; the message is nvcc's."""


def find_nvcc() -> Path | None:
    """nvcc from PATH, else from the `dev` extra's wheels; None without it or its host compiler."""
    if shutil.which("gcc") is None or shutil.which("g++") is None:
        return None
    on_path = shutil.which("nvcc")
    if on_path:
        return Path(on_path)
    wheels = importlib.util.find_spec("nvidia")
    for folder in (wheels and wheels.submodule_search_locations) or ():
        nvcc = Path(folder, "cu13", "bin", "nvcc")
        if nvcc.is_file():
            return nvcc
    return None


def compile_cubin(
    source_path: Path, arch: str, defines: Mapping[str, int] | None = None, *flags: str
) -> bytes:
    """The cubin of a kernel file for `arch` (`sm_90`); `CompileError` when nvcc refuses it."""
    nvcc = find_nvcc()
    if nvcc is None:
        raise CompileError("no nvcc, or no gcc and g++ for it; `make test` installs nvcc")
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "kernel.cubin")
        macros = [f"-D{name}={value}" for name, value in (defines or {}).items()]
        done = subprocess.run(
            [nvcc, "-cubin", f"-arch={arch}", *macros, *flags, "-o", cubin, source_path],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise CompileError((done.stdout + done.stderr).strip())
        return cubin.read_bytes()
