"""What `matbench doctor` finds on this machine, backend by backend; it prints nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from matbench import programs
from matbench.backends import opencl
from matbench.backends.cuda import libcuda
from matbench.backends.protocol import UnavailableError
from matbench.features.doctor import cuda, installing
from matbench.features.doctor.finding import DoctorFinding, Status


def findings() -> Iterator[DoctorFinding]:
    """Everything that measuring needs here; a *problem* means that it cannot be done."""
    yield from cuda.findings()
    yield cuda.guarded("C++ compiler", _compiler)
    yield cuda.guarded("OpenCL", _opencl)


def _compiler() -> DoctorFinding:
    path = programs.which("g++")
    if path is None:
        status: Status = "problem" if libcuda.gpu_is_present() else "note"
        fix = installing.system_package("g++", "gcc-c++")
        return DoctorFinding("C++ compiler", status, "no g++, which nvcc needs", fix)
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return DoctorFinding("C++ compiler", "ok", (done.stdout.splitlines() or [path])[0])


def _opencl() -> DoctorFinding:
    try:
        devices = opencl.devices()
    except UnavailableError as error:
        status: Status = "note" if libcuda.gpu_is_present() else "problem"
        return DoctorFinding("OpenCL", status, error.missing, error.fix)
    return DoctorFinding("OpenCL", "ok", "; ".join(info.label for info in devices))
