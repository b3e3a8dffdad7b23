"""No clock and no event that times a call can be found from within it, or recorded again."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import drivers
from support.kernels import text_of

from matbench.backends.cuda import libcuda
from matbench.backends.functions import timer
from matbench.cache import Cache
from matbench.errors import CaseError

#: Stands for CUDA's driver: its clock goes on only when it is told to.
DRIVER = text_of("timer-driver.c")


@pytest.fixture(scope="session")  # a process loads one library of a name
def driver(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("driver")
    file = drivers.shared_library(folder / "libdriver.so.1", DRIVER)
    library = ctypes.CDLL(str(file))
    library.nth.restype = ctypes.c_void_p
    library.go_on.argtypes = (ctypes.c_float,)
    return library


def found() -> Iterator[Any]:
    """All that frames, the collector, the modules, and what they refer to lead to."""
    frames = [frame for top in sys._current_frames().values() for frame in above(top)]
    pending: list[Any] = [*gc.get_objects(), *frames, *map(vars, [*sys.modules.values()])]
    pending += [value for frame in frames for value in frame.f_locals.values()]
    for one in pending:
        yield one
        yield from (inner for inner in gc.get_referents(one) if not gc.is_tracked(inner))


def above(frame: Any) -> Iterator[Any]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def numbers(one: Any) -> Iterator[int]:
    """The numbers that an object of Python or of C may be."""
    if isinstance(one, int):
        yield one
    elif isinstance(one, ctypes._SimpleCData) and isinstance(one.value, int):
        yield one.value
    elif isinstance(one, ctypes.Array | bytearray | bytes):
        raw = bytes(one)
        yield from (
            int.from_bytes(raw[i : i + 8], sys.byteorder) for i in range(0, min(len(raw), 256), 8)
        )


def timed(driver: Any, call: Callable[[], None], stream: int = 1) -> float:
    def before() -> None:
        driver.go_on(500)

    def finish() -> None:
        driver.go_on(1000)

    file = Path(driver._name)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(libcuda, "path", lambda: file)
        return timer.timed_ns(Cache(file.parent / "cache"), stream, before, call, finish)


def test_a_call_is_timed_without_what_comes_before_and_after_it(driver: Any) -> None:
    assert timed(driver, lambda: driver.go_on(0.25)) == 0.25e6
    assert driver.live() == 0


def events_found(driver: Any, first: int = 0, last: int = 62) -> list[Any]:
    """The objects that are the address of one of these events, or hold one."""
    first, last = ~driver.nth(first), ~driver.nth(last)  # which are no addresses themselves
    return [one for one in found() if any(~first <= n <= ~last for n in numbers(one))]


def test_no_event_can_be_found_from_within_the_call(driver: Any) -> None:
    known: list[Any] = []

    def call() -> None:
        assert driver.live() == 2
        known.extend(events_found(driver))
        driver.go_on(64)

    assert timed(driver, call) == 64e6
    assert known == []


def test_an_event_that_python_knows_is_found(driver: Any) -> None:
    """As a number, in an object of C, or in bytes."""
    event = driver.nth(63)  # which the driver has not given to anyone
    known = event, ctypes.c_void_p(event), event.to_bytes(8, sys.byteorder)
    found = events_found(driver, 63, 63)
    assert all(any(one is each for one in found) for each in known)


def test_what_goes_wrong_in_a_call_or_in_the_driver_is_said(driver: Any) -> None:
    def fails() -> None:
        raise ZeroDivisionError("in the call")

    with pytest.raises(ZeroDivisionError, match="in the call"):
        timed(driver, fails)
    with pytest.raises(CaseError, match="CUDA: error 400"):
        timed(driver, lambda: None, stream=0)
    assert driver.live() == 0
