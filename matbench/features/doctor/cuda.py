"""What `matbench doctor` finds about CUDA: what is installed, and the state of each GPU.

It reads only; nothing is set, and no context is created on a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import msgspec

from matbench import programs
from matbench.backends.cuda import compilation, cublas, device, libcuda, nvml
from matbench.backends.protocol import UnavailableError
from matbench.errors import BuildError, LackingError

Status = Literal["ok", "note", "problem"]
#: The status, what was seen, and the fix, if there is one.
Found = tuple[Status, str] | tuple[Status, str, str]
INSTALL = "matbench doctor --install"
_PCI_DEVICES = Path("/sys/bus/pci/devices")
_NVIDIA, _DISPLAY = "0x10de", "0x03"
_PARAMETERS = Path("/proc/driver/nvidia/params")
_UNRESTRICT = (
    "echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 | "
    "sudo tee /etc/modprobe.d/nvidia-profiling.conf, then reboot"
)


class DoctorFinding(msgspec.Struct, frozen=True):
    """What was found about one thing, and how to fix it.

    A *problem* keeps this machine's NVIDIA GPU, or its CPU if it has none, from being measured; a
    *note* does not.
    """

    name: str
    status: Status
    seen: str
    fix: str = ""


def findings() -> Iterator[DoctorFinding]:
    """One for each thing that measuring needs or that changes times; one alone without a GPU."""
    if not libcuda.gpu_is_present():
        yield guarded("driver", _no_gpu)
        return
    looks = {"driver": _driver, "nvcc": _nvcc, "PyCUDA": _pycuda}
    needed = [guarded(name, look, "problem") for name, look in looks.items()]
    yield from needed
    if all(finding.status == "ok" for finding in needed):  # otherwise it would only repeat them
        yield guarded("CUDA devices", _devices, "problem")
    yield guarded("cuBLAS", _cublas)
    yield guarded("nvdisasm", _nvdisasm)
    yield guarded("counters", _counters)
    yield from _gpus()


def guarded(name: str, look: Callable[[], Found], otherwise: Status = "note") -> DoctorFinding:
    """What `look` finds; a broken installation can raise anything, which has this status."""
    try:
        return DoctorFinding(name, *look())
    except UnavailableError as error:
        return DoctorFinding(name, otherwise, error.missing, error.fix)
    except Exception as error:
        return DoctorFinding(name, otherwise, f"{type(error).__name__}: {error}")


def _no_gpu() -> Found:
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if libcuda.version() is not None and hidden is not None:
        seen = f"no GPU is visible: CUDA_VISIBLE_DEVICES is {hidden!r}"
        return "note", seen, "unset CUDA_VISIBLE_DEVICES"
    for folder in sorted(_PCI_DEVICES.glob("*")):
        kind, vendor = ((folder / name).read_text().strip() for name in ("class", "vendor"))
        if vendor == _NVIDIA and kind.startswith(_DISPLAY):
            seen = f"none, but there is an NVIDIA GPU at {folder.name}"
            return "problem", seen, "install NVIDIA's driver; in a container: docker run --gpus all"
    return "ok", "none, and no NVIDIA GPU: kernels run through OpenCL"


def _driver() -> Found:
    if libcuda.loaded() is None:
        fix = "reinstall NVIDIA's driver; in a container: docker run --gpus all"
        return "problem", "libcuda cannot be loaded", fix
    supported = "{}.{}".format(*(libcuda.version() or (0, 0)))
    seen = f"{device.driver_release() or 'unknown release'} (CUDA {supported})"
    if trouble := libcuda.trouble():
        seen += f" does not start: {trouble}"
        return "problem", seen, "nvidia-smi; if the driver was updated: sudo reboot"
    return "ok", seen


def _nvcc() -> Found:
    path, supported = compilation.find(), libcuda.version()
    if path is None:
        return "problem", "not found", f"{INSTALL}; or put a CUDA toolkit's bin folder on PATH"
    try:
        compiler = compilation.nvcc()
        compilation.try_out()
    except (UnavailableError, BuildError) as error:
        return "problem", f"{path} does not compile: {error}"
    is_wheels = compilation.is_from_wheels(path)
    seen = f"{compiler.release} {'from wheels' if is_wheels else 'of a toolkit'}, {path}"
    major = compiler.release.split(".")[0]
    if supported is not None and major.isdigit() and int(major) > supported[0]:
        limit = "{}.{}".format(*supported)
        fix = f"update the driver, or install CUDA toolkit {limit}"
        return "problem", f"{seen}: the driver supports CUDA {limit}", fix
    return "ok", seen


def _pycuda() -> Found:
    try:
        import pycuda.driver  # noqa: F401
    except ImportError as error:
        return "problem", f"cannot be imported ({error})", INSTALL
    return "ok", version("pycuda")


def _devices() -> Found:
    return "ok", "; ".join(info.label for info in device.devices())


def _cublas() -> Found:
    try:
        return "ok", cublas.version()
    except LackingError as error:
        missing, _, fix = error.reason.partition("; ")
        return "note", missing, fix


def _nvdisasm() -> Found:
    """For the machine code that `explain` reads."""
    path = compilation.find("nvdisasm")
    if path is None:
        return "note", "not found", "pip install nvidia-cuda-nvdisasm"
    return "ok", str(path)


def _counters() -> Found:
    """For `explain --counters`."""
    path = programs.which("ncu") or programs.which("ncu", path="/usr/local/cuda/bin")
    if path is None:
        return "note", "ncu not found", "install Nsight Compute and put ncu on PATH"
    restricted = False
    with suppress(OSError):
        restricted = "RmProfilingAdminOnly: 1" in _PARAMETERS.read_text(encoding="utf-8")
    if restricted and os.name == "posix" and os.geteuid() != 0:
        return "note", "only root may read them", _UNRESTRICT
    return "ok", f"{path}{', as root' if restricted else ''}"


# -- The state of each GPU, through NVML -----------------------------------------------------------


def _gpus() -> Iterator[DoctorFinding]:
    try:
        import pynvml

        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except ImportError as error:
        yield DoctorFinding("NVML", "note", f"clocks cannot be monitored ({error})", INSTALL)
        return
    except Exception as error:  # NVML's own
        fix = "nvidia-smi; in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        yield DoctorFinding("NVML", "note", f"clocks cannot be monitored ({error})", fix)
        return
    yield DoctorFinding("NVML", "ok", f"{count} GPU{'s' if count != 1 else ''}")
    for index in range(count):
        for what, look in _OF_EACH.items():
            name = f"GPU {index} {what}"
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                yield DoctorFinding(name, *look(pynvml, handle, index))
            except pynvml.NVMLError as error:
                yield DoctorFinding(name, "ok", f"unknown ({error})")
            except Exception as error:
                yield DoctorFinding(name, "note", f"{type(error).__name__}: {error}")


def _clocks(api: Any, handle: Any, index: int) -> Found:
    bus = api.nvmlDeviceGetPciInfo(handle).busId
    watch = nvml.ClockMonitor(bus.decode() if isinstance(bus, bytes) else bus)
    now, most = watch.read(), api.nvmlDeviceGetMaxClockInfo(handle, api.NVML_CLOCK_SM)
    if now is None:
        return "note", "cannot be read"
    limits = api.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    is_set = limits & api.nvmlClocksThrottleReasonApplicationsClocksSetting
    by_owner = ", limited by its owner" if is_set else ""
    seen = f"SM at {now.sm_mhz:,} of at most {most:,} MHz{by_owner}"
    if now.throttled:
        reasons = ", ".join(now.throttled)
        fix = f"nvidia-smi -i {index} -q -d PERFORMANCE,TEMPERATURE,POWER"
        return "note", f"{seen}; throttled: {reasons}", fix
    return "ok", f"{seen}, not throttled"


def _ecc(api: Any, handle: Any, index: int) -> Found:
    current, pending = api.nvmlDeviceGetEccMode(handle)
    seen = "on" if current else "off"
    if current != pending:
        return "note", f"{seen} until the next reboot", "sudo reboot"
    if current:
        kinds = api.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, api.NVML_VOLATILE_ECC
        if errors := api.nvmlDeviceGetTotalEccErrors(handle, *kinds):
            seen = f"{errors} uncorrected errors since the last boot"
            return "note", seen, f"nvidia-smi -i {index} -q -d ECC"
    return "ok", seen


def _mig(api: Any, handle: Any, index: int) -> Found:
    if api.nvmlDeviceGetMigMode(handle)[0]:
        return "note", "on: kernels run on a part of the GPU", f"sudo nvidia-smi -i {index} -mig 0"
    return "ok", "off"


def _processes(api: Any, handle: Any, index: int) -> Found:
    import psutil

    running = api.nvmlDeviceGetComputeRunningProcesses(handle)
    running += api.nvmlDeviceGetGraphicsRunningProcesses(handle)
    others = {process.pid for process in running} - {os.getpid()}
    names = {process.pid: process.info["name"] for process in psutil.process_iter(["name"])}
    shown = [f"{names.get(pid) or 'unknown'} ({pid})" for pid in sorted(others)]
    busy = api.nvmlDeviceGetUtilizationRates(handle).gpu
    if not shown and busy > _IDLE_PERCENT:
        shown = ["none visible, perhaps in another container"]
    if shown:
        seen = f"{', '.join(shown)}; the GPU is {busy}% busy"
        return "note", seen, "end them, or wait until they have ended"
    return "ok", "no others"


#: Usage that a sample of NVML's may show on an idle GPU.
_IDLE_PERCENT = 5
_OF_EACH = {"clocks": _clocks, "ECC": _ecc, "MIG": _mig, "processes": _processes}
