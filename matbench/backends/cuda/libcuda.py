"""The NVIDIA driver's own library, called through ctypes: works before PyCUDA is installed."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from uuid import UUID

#: The device file of the driver's kernel module on Linux.
_DEVICE_FILE = Path("/dev/nvidiactl")
#: Results of `cuInit` that mean: there is no GPU, or only a stub to link with.
_NO_GPU = (100, 34)


@cache
def loaded() -> ctypes.CDLL | None:
    """The library; None if there is no driver."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def path() -> Path | None:
    """Where Linux found the library; None if there is none."""
    if loaded() is None:
        return None
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    places = (line.split(maxsplit=5)[-1] for line in mapped if "/libcuda.so" in line)
    return next(map(Path, places), None)


def version() -> tuple[int, int] | None:
    """The newest CUDA version that the driver supports, such as (13, 0); None without a driver."""
    driver, number = loaded(), ctypes.c_int()
    if driver is None or driver.cuDriverGetVersion(ctypes.byref(number)) != 0:
        return None
    return number.value // 1000, number.value % 1000 // 10


def trouble() -> str | None:
    """Why the driver cannot be used; None if it can."""
    driver = loaded()
    if driver is None:
        return "its library libcuda cannot be loaded"
    status = driver.cuInit(0)
    return explained(status) if status else None


def explained(status: int) -> str:
    """What a result of the driver's that is an error means."""
    driver, text = loaded(), ctypes.c_char_p()
    if driver is not None:
        driver.cuGetErrorString(status, ctypes.byref(text))
    return (text.value or b"error %d" % status).decode()


def gpu_is_present() -> bool:
    """Whether an NVIDIA driver runs here with a GPU, usable or not."""
    driver = loaded()
    status = None if driver is None else driver.cuInit(0)
    return status == 0 or (status not in _NO_GPU and _DEVICE_FILE.exists())


def uuid(index: int) -> str | None:
    """A device's UUID, `GPU-…`, as nvidia-smi shows it; None if the driver does not say."""
    driver, device, octets = loaded(), ctypes.c_int(), (ctypes.c_ubyte * 16)()
    if driver is None or not hasattr(driver, "cuDeviceGetUuid_v2"):  # before CUDA 11.4
        return None
    status = driver.cuDeviceGet(ctypes.byref(device), index)
    status = status or driver.cuDeviceGetUuid_v2(octets, device)  # also of a part that MIG made
    return None if status else f"GPU-{UUID(bytes=bytes(octets))}"
