"""Stand-ins for what a machine with an NVIDIA GPU has: driver, nvcc, NVML."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.kernels import text_of

#: Tests change PATH.
_PATH, _GCC = os.environ.get("PATH", os.defpath), shutil.which("gcc")
_DRIVER = text_of("driver.c")


def shared_library(path: Path, code: str, *options: str, name: str | None = None) -> Path:
    """A library compiled from C; a process that has loaded it finds it by its name."""
    if _GCC is None:
        pytest.skip("needs gcc")
    path.parent.mkdir(parents=True, exist_ok=True)
    name = f"-Wl,-soname,{name or path.name}"
    command = [_GCC, "-shared", "-fPIC", "-x", "c", "-", name, *options, "-o", str(path)]
    subprocess.run(command, input=code, text=True, check=True, env=os.environ | {"PATH": _PATH})
    return path


def driver(folder: Path, *, version: int = 13000, status: int = 0, name: str | None = None) -> Path:
    """The driver's library: it supports CUDA `version` / 1000, and `cuInit` returns `status`."""
    code = _DRIVER.replace("VERSION", str(version)).replace("STATUS", str(status))
    return shared_library(folder / "libcuda.so.1", code, name=name)


def loaded(folder: Path, **said: int) -> ctypes.CDLL:
    """That library in this process, under another name: later tests have no driver."""
    return ctypes.CDLL(str(driver(folder / "loaded", name="stand-in", **said)))


def program(path: Path, script: str = "") -> Path:
    """A shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def nvcc(path: Path, *, release: str = "13.0.88", compiles: bool = True) -> Path:
    """An nvcc that says its release and architectures, and compiles anything or nothing."""
    fails = "" if compiles else "echo 'host.h(1): error: unsupported GNU version!'; exit 1"
    return program(
        path,
        f"""case "$*" in
          *--version*) echo "Cuda compilation tools, release 13.0, V{release}";;
          *--list-gpu-arch*) echo compute_90;;
          *--dryrun*) echo '#$ TOP={path.parent.parent}' >&2;;
          *) cat > made.cubin; {fails}
        esac""",
    )


class NVMLError(Exception):
    """What NVML's functions raise."""


class Nvml(SimpleNamespace):
    """The module `pynvml` on a machine with one idle GPU; values can be set, or be errors."""

    NVMLError = NVMLError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 1, 0
    nvmlClocksThrottleReasonGpuIdle = 1
    nvmlClocksThrottleReasonApplicationsClocksSetting = 2
    nvmlClocksThrottleReasonHwThermalSlowdown = 64

    VALUES = {  # noqa: RUF012 - never changed
        "Init": None, "DeviceGetCount": 1, "DeviceGetHandleByIndex": "gpu",
        "DeviceGetHandleByPciBusId": "gpu", "DeviceGetPciInfo": SimpleNamespace(busId="0:1:0"),
        "DeviceGetMaxClockInfo": 1980, "DeviceGetClockInfo": 345, "DeviceGetTemperature": 36,
        "DeviceGetPowerUsage": 70_000, "DeviceGetCurrentClocksThrottleReasons": 1,
        "DeviceGetEccMode": [1, 1], "DeviceGetTotalEccErrors": 0, "DeviceGetMigMode": [0, 0],
        "DeviceGetComputeRunningProcesses": [], "DeviceGetGraphicsRunningProcesses": [],
        "DeviceGetUtilizationRates": SimpleNamespace(gpu=0, memory=0),
    }  # fmt: skip

    def __init__(self, **values: Any) -> None:
        super().__init__(**type(self).__dict__)
        assert values.keys() <= self.VALUES.keys()
        for name, value in {**self.VALUES, **values}.items():
            setattr(self, f"nvml{name}", self._function(value))

    @staticmethod
    def _function(value: Any) -> Any:
        def call(*_: Any) -> Any:
            if isinstance(value, Exception):
                raise value
            return value

        return call
