"""What `matbench doctor` finds on this machine, backend by backend; it prints nothing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from functools import partial

from matbench import files, programs
from matbench.backends import building, opencl
from matbench.backends.cuda import libcuda
from matbench.backends.functions import isolated
from matbench.cache import Cache
from matbench.errors import UsageError
from matbench.features.doctor import cuda, installing
from matbench.features.doctor.cuda import DoctorFinding, Found, Status
from matbench.worker.process import WorkerProcess

#: How long it may take to start a process.
_ISOLATED_S = 30.0


def findings() -> Iterator[DoctorFinding]:
    """Everything that measuring needs here; a *problem* means that it cannot be done."""
    yield from cuda.findings()
    needed: tuple[Status, Status] = ("problem", "note")
    no_compiler, no_opencl = needed if libcuda.gpu_is_present() else reversed(needed)
    yield cuda.guarded("C++ compiler", partial(_compiler, no_compiler), no_compiler)
    yield cuda.guarded("OpenCL", _opencl, no_opencl)
    yield cuda.guarded("cache", _cache, "problem")
    yield cuda.guarded("isolation", _isolation)


def _compiler(lack: Status) -> Found:
    path = programs.which("g++")
    if path is None:
        return lack, "no g++, which nvcc needs", installing.system_package("g++", "gcc-c++")
    with files.temporary_folder() as folder:
        building.run([path, "-x", "c++", "-shared", "-", "-o", "made.so"], folder)
        said = building.run([path, "--version"], folder).decode(errors="replace")
    return "ok", (said.splitlines() or [path])[0]


def _cache() -> Found:
    cache = Cache()
    try:
        before = bytes(cache.get("doctor") or b"")
        cache.put("doctor", os.urandom(16))
        if bytes(cache.get("doctor") or before) != before:  # perhaps another doctor's
            size, most = cache.size_bytes() / 1e6, cache.limit_bytes / 1e6
            return "ok", f"{cache.folder}, {size:,.1f} MB of at most {most:,.0f} MB"
        return "problem", f"{cache.folder} keeps nothing: is its disk full?"
    except UsageError as error:
        return "problem", str(error)


def _isolation() -> Found:
    process = WorkerProcess()
    try:
        if process.call(_is_isolated, timeout_s=_ISOLATED_S):
            return "ok", "functions on the CPU are called in a process of their own"
        return "note", "functions are called in the process that times them, as rows say"
    finally:
        process.kill()


def _is_isolated() -> bool:
    return isolated.started() is not None


def _opencl() -> Found:
    devices = opencl.devices()
    try_out()
    return "ok", "; ".join(info.label for info in devices)


def try_out(source: str = "kernel void nothing() {}") -> None:
    """Build an empty kernel for every OpenCL device; an error if one cannot."""
    for device in opencl.offered():
        with building.apart(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            opencl.cl.Program(opencl.cl.Context([device]), source).build(cache_dir=False)
