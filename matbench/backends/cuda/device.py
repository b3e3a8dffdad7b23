"""Finds and describes CUDA devices, and translates driver errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from matbench import files
from matbench.backends.cuda import compilation, libcuda
from matbench.backends.protocol import UnavailableError
from matbench.errors import CaseError, OutOfMemoryError
from matbench.model import DeviceInfo


@cache
def driver() -> Any:
    """`pycuda.driver`, initialised."""
    try:
        import pycuda.driver as cuda
    except ImportError as error:
        raise UnavailableError(
            f"PyCUDA cannot be imported ({error})",
            "with an NVIDIA driver: matbench doctor --install",
        ) from None
    try:
        cuda.init()
    except cuda.Error as error:
        raise UnavailableError(f"no usable NVIDIA driver ({message(error)})") from None
    return cuda


def message(error: BaseException) -> str:
    """The driver's message, without the name of the failed call."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return re.sub(r"^cu\w+ failed: ", "", text)


@contextmanager
def errors(doing: str = "CUDA", asked_bytes: int | None = None) -> Iterator[None]:
    """Turn the driver's errors into `CaseError`s; after most of them the context is lost."""
    try:
        yield
    except (driver().MemoryError, MemoryError):
        asked = f"; {asked_bytes:,} bytes requested" if asked_bytes else ""
        raise OutOfMemoryError(f"out of device memory{asked}") from None
    except driver().Error as error:
        raise CaseError(f"{doing}: {message(error)}", fatal=True) from None


def devices() -> list[DeviceInfo]:
    """Every CUDA device that the installed toolkit can compile for and the driver can run."""
    version = driver().get_driver_version()
    supported = f"{version // 1000}.{version % 1000 // 10}"
    toolkit = compilation.nvcc().release
    major = toolkit.split(".")[0]
    if major.isdigit() and int(major) > version // 1000:
        raise UnavailableError(
            f"the CUDA toolkit {toolkit} is too new for the driver, which supports "
            f"CUDA {supported}",
            "update the driver or install an older toolkit",
        )
    try:
        infos = [describe(index, toolkit, supported) for index in range(driver().Device.count())]
    except driver().Error as error:  # a GPU that has failed, for example
        raise UnavailableError(f"the driver cannot use its devices ({message(error)})") from None
    if not infos:
        raise UnavailableError("the driver reports no CUDA device")
    known = compilation.architectures()
    for info in infos:
        number = "{}{}".format(*info.compute_capability or (0, 0))
        if known and number not in known:
            raise UnavailableError(
                f"the CUDA toolkit {toolkit} does not support {info.name} (sm_{number})",
                f"install one that does (the driver supports CUDA {supported})",
            )
    return infos


def describe(index: int, toolkit: str, supported: str) -> DeviceInfo:
    """One device, with the release of nvcc and the CUDA version that the driver supports."""
    device = driver().Device(index)

    def get(name: str) -> int:
        return int(device.get_attribute(getattr(driver().device_attribute, name)))

    static_shared, clock_mhz = get("MAX_SHARED_MEMORY_PER_BLOCK"), get("CLOCK_RATE") // 1000
    most_shared = get("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
    return DeviceInfo(
        backend="cuda",
        index=index,
        name=device.name(),
        kind="gpu",
        driver=f"{driver_release() or 'unknown'} (CUDA {supported})",
        toolkit=", ".join((f"nvcc {toolkit}", *compilation.settings_in_force())),
        compute_capability=device.compute_capability(),
        limits={
            "max_threads_per_block": get("MAX_THREADS_PER_BLOCK"),
            **{f"max_block_{axis.lower()}": get(f"MAX_BLOCK_DIM_{axis}") for axis in "XYZ"},
            **{f"max_grid_{axis.lower()}": get(f"MAX_GRID_DIM_{axis}") for axis in "XYZ"},
            "max_shared_bytes_per_block": max(most_shared, static_shared),
            "max_static_shared_bytes": static_shared,
            "warp_size": get("WARP_SIZE"),
            "multiprocessors": get("MULTIPROCESSOR_COUNT"),
        },
        properties={
            "global memory (bytes)": device.total_memory(),
            "last-level cache (bytes)": get("L2_CACHE_SIZE"),
            "shared memory per block (bytes)": static_shared,
            "shared memory per block, opted in (bytes)": most_shared,
            "shared memory per multiprocessor (bytes)": get("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
            "registers per block": get("MAX_REGISTERS_PER_BLOCK"),
            "warp size": get("WARP_SIZE"),
            "memory pitch (bytes)": get("MAX_PITCH"),
            "largest block (threads)": get("MAX_THREADS_PER_BLOCK"),
            "largest block (x, y, z)": " × ".join(str(get(f"MAX_BLOCK_DIM_{a}")) for a in "XYZ"),
            "largest grid (x, y, z)": " × ".join(str(get(f"MAX_GRID_DIM_{a}")) for a in "XYZ"),
            "constant memory (bytes)": get("TOTAL_CONSTANT_MEMORY"),
            "compute capability": ".".join(map(str, device.compute_capability())),
            "clock rate (MHz)": clock_mhz,
            "memory clock rate (MHz)": get("MEMORY_CLOCK_RATE") // 1000,
            "texture alignment (bytes)": get("TEXTURE_ALIGNMENT"),
            "copy and compute overlap": "yes" if get("GPU_OVERLAP") else "no",
            "multiprocessors": get("MULTIPROCESSOR_COUNT"),
            "double precision": "yes",
            "UUID": libcuda.uuid(index),
            "PCI address": device.pci_bus_id(),
            # A hint for the GPU's owner; matbench never changes clocks.
            "to lock its clock": f"sudo nvidia-smi -i {index} --lock-gpu-clocks={clock_mhz} "
            "(undo: --reset-gpu-clocks)",
        },
    )


def driver_release() -> str | None:
    """The driver's release, such as `580.159.04`, if Linux shows it."""
    text = files.told(Path("/proc/driver/nvidia/version"))
    match = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", text)
    return match[1] if match else None
