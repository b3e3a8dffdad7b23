"""Runs one case in a child Python process under one of NVIDIA's tools: sanitizer or profiler."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from matbench import files, programs
from matbench.errors import MatbenchError, UsageError
from matbench.model import Case, DeviceInfo

#: What needs each of the tools.
_NEEDS = {
    "compute-sanitizer": "--sanitize needs compute-sanitizer",
    "ncu": "--counters needs ncu (Nsight Compute)",
}


def executable(name: str) -> str:
    """A tool's path; `UsageError` says how to get it."""
    path = programs.which(name) or programs.which(name, path="/usr/local/cuda/bin")
    if path is None:
        raise UsageError(
            f"{_NEEDS[name]}, which is part of the CUDA toolkit; add the toolkit's bin folder to "
            "PATH"
        )
    return path


# Isolated: otherwise Python would import from the current folder, which is not trusted.
_START = """
import sys
sys.path[:] = {path!r}
from matbench.features.nvidia_tools import observer
observer.child(sys.argv[1])
"""


def observe(
    command: Sequence[str], device: DeviceInfo, case: Case, *, guarded: bool, timeout_s: float,
    tool: str,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """The output of a tool's `command` on a child process that checks the case as usual."""
    with files.temporary_folder() as folder:
        job = folder / "case"
        job.write_bytes(msgspec.msgpack.encode((device, case, guarded)))
        start = _START.format(path=list(filter(None, sys.path)))
        try:
            return subprocess.run(
                [executable(command[0]), *command[1:], sys.executable, "-I", "-c", start, str(job)],
                capture_output=True,
                text=True,
                errors="replace",
                cwd=folder,  # ncu reads its settings from the working folder
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise MatbenchError(
                f"{tool} took longer than {timeout_s:g} s on {case.label} (see --timeout)"
            ) from None


def child(path: str) -> None:
    """The code that the tool observes."""
    from matbench import backends
    from matbench.bench.options import Options
    from matbench.bench.session import Session
    from matbench.cache import Cache

    job = msgspec.msgpack.decode(Path(path).read_bytes(), type=tuple[DeviceInfo, Case, bool])
    device, case, guarded = job
    cache = Cache()
    session = Session(
        backends.open_backend(device, cache), cache, Options(timed=False, guarded=guarded)
    )
    with closing(session):
        session.measure(case)
