"""Loads OpenCL's runtimes: Intel's from wheels, and those of the system."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from matbench import temporary
from matbench.backends.protocol import UnavailableError

# Libraries of Intel's runtime; its wheel does not say where they are.
_INTEL_NEEDS = (
    "libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so", "libtbb.so.12", "libtbbmalloc.so.2",
)  # fmt: skip
_SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
_VENDORS = "OCL_ICD_VENDORS"
_INSTALL = "pip install 'matbench-cuda[cpu]'"


@cache
def pyopencl() -> Any:
    """The package; `UnavailableError` if it is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pyopencl
    except ImportError as error:
        raise UnavailableError(f"pyopencl is missing ({error})", _INSTALL) from None
    return pyopencl


@cache
def platforms() -> list[Any]:
    """All runtimes: those in `OCL_ICD_VENDORS`, or else Intel's from wheels and the system's."""
    cl = pyopencl()
    # A worker process has the environment of the main one, which may not have imported it.
    os.environ["PYOPENCL_NO_CACHE"] = "1"  # it would unpickle what others may have written
    os.environ["PYOPENCL_HOME"] = str(Path(cl.__file__).parent)  # its loader needs it
    library, given = Path(sys.prefix, "lib"), os.environ.get(_VENDORS)
    intel = library / "libintelocl.so"
    trouble, fix = "no OpenCL runtime is installed", _INSTALL
    if given is not None:
        trouble, fix = f"no OpenCL runtime in {_VENDORS} = {given} starts", f"unset {_VENDORS}"
    with temporary.folder() as folder:
        if given is None and intel.exists():
            trouble, fix = "Intel's OpenCL runtime is installed but does not start", ""
            try:
                for name in (*_INTEL_NEEDS, intel.name):
                    ctypes.CDLL(str(library / name), mode=ctypes.RTLD_GLOBAL)
            except OSError as error:  # the system's runtimes may still start
                trouble = f"Intel's OpenCL runtime cannot be loaded ({error})"
            else:
                (folder / "intel.icd").write_text(f"{intel}\n")
                for path in _SYSTEM_VENDORS.glob("*.icd"):
                    shutil.copyfile(path, folder / f"system-{path.name}")
                os.environ[_VENDORS] = str(folder)
        try:
            return list(cl.get_platforms())
        except cl.Error as error:
            is_known = error.code == cl.status_code.PLATFORM_NOT_FOUND_KHR
            raise UnavailableError(trouble if is_known else f"{trouble} ({error})", fix) from None
        finally:
            if given is None:
                os.environ.pop(_VENDORS, None)


def devices() -> list[Any]:
    """GPUs first; for CPUs, Intel's runtime first, by far the fastest for these kernels."""
    cl = pyopencl()
    offered, failed = [], []
    for platform in platforms():
        try:
            offered += platform.get_devices()
        except cl.Error as error:
            failed.append(f"{platform.name.strip()}: {error}")
    if not offered:
        raise UnavailableError("; ".join(["no OpenCL runtime offers a device", *failed]))
    gpu = cl.device_type.GPU
    return sorted(offered, key=lambda d: (not d.type & gpu, "Intel" not in d.platform.name))
