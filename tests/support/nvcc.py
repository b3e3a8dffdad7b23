"""Compiles kernels with nvcc on machines without a GPU."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from matbench.backends.cuda import compilation
from matbench.backends.protocol import UnavailableError


class CompileError(Exception):
    """nvcc rejected the source; the message is nvcc's."""


def find_nvcc() -> Path | None:
    """The nvcc that matbench uses, from a toolkit or wheels; None if it or g++ is missing."""
    try:
        return Path(compilation.nvcc().path)
    except UnavailableError:
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
