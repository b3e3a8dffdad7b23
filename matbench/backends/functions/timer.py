"""Times calls by CUDA events that no object of Python refers to: only native code knows them."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matbench import files
from matbench.backends.cuda import libcuda
from matbench.cache import Cache
from matbench.errors import CaseError

_SOURCE = Path(__file__).with_name("timer.cpp")


def timed_ns(cache: Cache, stream: int, *calls: Callable[[], object]) -> float:
    """The device's time for what the second of three calls enqueues on a stream, after what the
    first does; the third waits for it."""
    ms = float(loaded(cache)(stream, *calls))
    if ms < 0:
        raise CaseError(f"CUDA: {libcuda.explained(round(-ms))}", fatal=True)
    return 1e6 * ms


@functools.cache
def loaded(cache: Cache) -> Any:
    """What times calls. `BuildError` if it cannot be built."""
    from matbench.backends.functions import libraries

    driver = libcuda.path()
    assert driver is not None
    links = [f"-L{driver.parent}", f"-l:{driver.name}"]
    text = _SOURCE.read_text(encoding="utf-8")
    with files.temporary_folder() as folder:
        path = folder / "timer.so"
        path.write_bytes(libraries.made(libraries.host_target(), [], links, text, path.name, cache))
        # Unlike a `CDLL`, it keeps the interpreter's lock, and passes on exceptions.
        time = ctypes.PyDLL(str(path)).matbench_time
    time.argtypes = (ctypes.c_void_p, *[ctypes.py_object] * 3)
    time.restype = ctypes.c_double
    return time
