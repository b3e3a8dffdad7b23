"""The devices that matbench can measure on, behind one small protocol; imported on demand.

Must never know a workload, or import anything but `kernelfile` and the base modules.
"""

from __future__ import annotations

import importlib
import logging
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matbench import files
from matbench.backends.protocol import Backend, NoDeviceError, UnavailableError
from matbench.errors import UsageError
from matbench.model import DeviceInfo

if TYPE_CHECKING:
    from matbench.backends.functions.isolated import Judged
    from matbench.cache import Cache

NAMES = ("cuda", "opencl")
#: Where Linux describes the devices of the PCI bus, by their addresses.
_PCI = Path("/sys/bus/pci/devices")


def devices(name: str) -> list[DeviceInfo]:
    """Every device of one backend; `UnavailableError` if the backend cannot be used."""
    return _module(name).devices()  # type: ignore[no-any-return]


def preload() -> None:
    """Import the libraries of the backends, for processes to be forked; looks at no device."""
    for name in NAMES:
        with suppress(ImportError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(_module(name).LIBRARY)


def _module(name: str) -> Any:
    return importlib.import_module(f"matbench.backends.{name}")


def choose_all(backend: str, wanted: str | None) -> list[DeviceInfo]:
    """The devices that `--device` lists, in its order; `all` are those like the default one."""
    if wanted is None or wanted.strip().lower() != "all":
        named = [choose(backend, device) for device in (wanted.split(",") if wanted else [None])]
        return list({info.label: info for info in named}.values())
    first = choose(backend, None)
    if first.kind == "cpu":
        return [first]  # others, if any, are the same processor
    return [info for info in devices(first.backend) if info.kind == first.kind]


def choose(backend: str, device: str | None) -> DeviceInfo:
    """The device that `--backend` and `--device` select.

    `auto` prefers CUDA, if PyCUDA and a device are available, then any OpenCL GPU, then the CPU.
    If it takes the CPU although there is an NVIDIA GPU, it logs the reason.
    """
    infos: list[DeviceInfo] = []
    missing: dict[str, UnavailableError] = {}
    for name in NAMES if backend == "auto" else (backend,):
        try:
            infos += devices(name)
        except UnavailableError as error:
            missing[name] = error
        if infos and device is None and infos[0].kind == "gpu":
            break
    if not infos:
        reasons = "; ".join(f"{name}: {error}" for name, error in missing.items())
        raise NoDeviceError(f"no device to run on; {reasons or 'no backend found one'}")
    if device is None:
        best = min(infos, key=lambda info: info.kind != "gpu")
        reason = missing.get("cuda")
        if best.kind == "cpu" and reason is not None and _module("cuda").gpu_is_present():
            more = "" if reason.fix else " (see matbench doctor)"
            instead = f"the CPU is used instead of the NVIDIA GPU: {reason}{more}"
            logging.getLogger(__name__).warning("%s", instead)
        return best
    wanted = device.strip().lower()
    exact = [d for d in infos if wanted in (str(d.index), d.place)]
    alike = [d for d in infos if wanted and wanted in d.name.lower()]
    named = exact or [d for d in alike if wanted == d.name.lower()] or alike
    if not named:
        known = "; ".join(info.label for info in infos)
        raise UsageError(f"--device {device!r}: no such device; available: {known}")
    same = [] if exact else [d for d in named if d.backend == named[0].backend]
    if len(same) > 1:
        which = "; ".join(info.label for info in same)
        places = ",".join(info.place for info in same)
        raise UsageError(f"--device {device!r}: which one? {which} (or several: {places})")
    return named[0]


def host_device(backend: str = "opencl") -> DeviceInfo:
    """The CPU that kernels of the host run on, through this backend; `UnavailableError`: none."""
    for info in devices(backend):
        if info.kind == "cpu":
            return info
    raise UnavailableError("no OpenCL CPU device", "pip install 'matbench-cuda[cpu]'")


def precompiler(info: DeviceInfo) -> Callable[..., None] | None:
    """What puts builds of a kernel into the cache without opening the device, so that other
    processes can do it while one is being timed: of this device, the kernel, its parameters, the
    cache and the builds. None for OpenCL, because on a CPU that would slow down what is timed.
    """
    return getattr(_module(info.backend), "precompile", None)


def isolated(info: DeviceInfo) -> Judged | None:
    """A process in which the functions of a CPU are called, forked from this one; None where that
    is impossible. This process must know nothing yet that they are not to know."""
    if info.kind != "cpu":
        return None
    from matbench.backends.functions import isolated

    return isolated.started()


def bind_to(info: DeviceInfo) -> None:
    """From now on, run this process on the processors next to a GPU, if Linux says which."""
    address = str(info.properties.get("PCI address") or "").lower()
    if not address or not hasattr(os, "sched_setaffinity"):
        return
    with suppress(OSError, ValueError):
        if nearby := near(files.told(_PCI / address / "local_cpulist")) & os.sched_getaffinity(0):
            os.sched_setaffinity(0, nearby)


def near(listed: str) -> set[int]:
    """The numbers in a list as Linux writes it: `0-3,8`."""
    ranges = (part.partition("-") for part in listed.strip().split(",") if part)
    return {n for low, _, high in ranges for n in range(int(low), int(high or low) + 1)}


def open_backend(info: DeviceInfo, cache: Cache, judged: Judged | None = None) -> Backend:
    """Open a device for work in this process; on a CPU, functions are called in a `judged` one.

    What the CPU itself computes is compared by the default device; `NoDeviceError`: there is none.
    """
    if info.backend == "host":
        judging = open_backend(choose("auto", None), cache)
        return _module("host").HostBackend(info, judging)  # type: ignore[no-any-return]
    apart = () if judged is None else (judged,)
    return _module(info.backend).open_device(info, cache, *apart)  # type: ignore[no-any-return]
