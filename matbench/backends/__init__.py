"""The devices that matbench can measure on, behind one small protocol; opened by name, lazily."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from matbench.errors import MatbenchError, UsageError
from matbench.model import Conditions, DeviceInfo, Kernel, Launch, Resources, Storage

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from matbench.cache import Cache

NAMES = ("cuda", "opencl")


class UnavailableError(MatbenchError):
    """A backend that cannot be used here; the message says what is missing, and what mends it."""


class NoDeviceError(UsageError):
    """There is nothing here to run on; says why for each backend."""


class Buffer(Protocol):
    """Memory of a device; `handle` is the backend's own."""

    handle: Any
    nbytes: int

    def view(self, offset_bytes: int, nbytes: int) -> Buffer:
        """A part of it that shares its memory; the offset is a multiple of 4,096."""


class TensorMap(NamedTuple):
    """A row-major matrix, and the box of it that the copy engine fetches at a time."""

    matrix: Buffer
    storage: Storage
    shape: tuple[int, int]
    box: tuple[int, int]


Argument = Buffer | TensorMap | int | float
Variant = Literal["plain", "clocked", "staggered"]
VARIANTS: tuple[Variant, ...] = ("plain", "clocked", "staggered")


class Program(Protocol):
    """One built kernel."""

    resources: Resources

    def launch(self, launch: Launch, arguments: Sequence[Argument]) -> None:
        """Start it, without waiting."""

    def resident_blocks(self, launch: Launch) -> int | None:
        """Blocks of such a launch that a multiprocessor holds at once, as the driver says it."""


class Backend(Protocol):
    """A device that is open for work. Errors are `CaseError`s, `fatal` when the device is lost."""

    info: DeviceInfo
    #: What a tick of the stamps' `start` and `end` is, for people.
    clock: str
    #: The builds of a kernel that this backend can make.
    variants: tuple[Variant, ...]

    def allocate(self, nbytes: int) -> Buffer:
        """Memory for `nbytes`; `OutOfMemoryError` says how much was asked for."""

    def release(self, buffer: Buffer) -> None: ...

    def write(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        """Copy a contiguous array to the start of `buffer`, and wait."""

    def read(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        """Fill a contiguous array from the start of `buffer`, and wait."""

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy within the device; sizes are equal."""

    def build(
        self,
        kernel: Kernel,
        params: dict[str, int],
        variant: Variant = "plain",
        *,
        block_width: int = 32,
    ) -> Program:
        """Compile, or load from the cache, for blocks of `block_width` threads along x.

        A *clocked* build stamps every block; it takes one more argument, a zeroed buffer of
        `STAMP_BYTES` a block. A *staggered* one lets warps drift apart where they may; it takes
        one more argument too, and leaves it alone.
        """

    def time_ns(
        self, program: Program, launch: Launch, arguments: Sequence[Argument], *, cold: bool
    ) -> float:
        """One launch by device events; `cold` overwrites the last-level cache before it."""

    def time_hot_ns(
        self,
        program: Program,
        launch: Launch,
        arguments: Sequence[Argument],
        *,
        count: int,
        graph: bool,
    ) -> float:
        """The mean of `count` launches back to back; `graph` launches them as one CUDA graph."""

    def conditions(self) -> Conditions:
        """Clocks, heat and load as of now, as far as they are told."""

    def ticks_per_ns(self, stamps: npt.NDArray[np.uint64]) -> float:
        """The rate of the clock that took these stamps (blocks × 5), in ticks per nanosecond."""

    def synchronize(self) -> None: ...

    def close(self) -> None: ...


#: A block's stamp: start and end in ticks, start and end in ns, the multiprocessor.
STAMP_WORDS = 5
STAMP_BYTES = 8 * STAMP_WORDS


def devices(name: str) -> list[DeviceInfo]:
    """Every device of one backend; `UnavailableError` when the backend cannot be used."""
    return _room(name).devices()  # type: ignore[no-any-return]


def _room(name: str) -> Any:
    return importlib.import_module(f"matbench.backends.{name}")


def choose(backend: str, device: str | None) -> DeviceInfo:
    """The device that `--backend` and `--device` mean.

    `auto` takes CUDA when PyCUDA and a device are there, then any OpenCL GPU, then the CPU.
    """
    found: list[DeviceInfo] = []
    missing = []
    for name in NAMES if backend == "auto" else (backend,):
        try:
            found += devices(name)
        except UnavailableError as error:
            missing.append(f"{name}: {error}")
        if found and device is None and found[0].kind == "gpu":
            break
    if not found:
        raise NoDeviceError(
            "no device to run on; " + "; ".join(missing or ["no backend found any"])
        )
    if device is None:
        return min(found, key=lambda info: info.kind != "gpu")
    wanted = device.lower()
    exact = [d for d in found if wanted in (str(d.index), f"{d.backend}:{d.index}")]
    named = exact or [d for d in found if wanted in d.name.lower()]
    if not named:
        known = "; ".join(info.label for info in found)
        raise UsageError(f"--device {device!r}: no such device; there are: {known}")
    return named[0]


def host_conditions() -> Conditions:
    """What this machine's CPU is like now: its load and its frequency governor."""
    from matbench.backends import host

    return host.conditions()


def host_device() -> DeviceInfo:
    """The CPU that host baselines run on: OpenCL's; `UnavailableError` when there is none."""
    for info in devices("opencl"):
        if info.kind == "cpu":
            return info
    raise UnavailableError("no OpenCL CPU device; pip install 'matbench-cuda[cpu]'")


def can_precompile(info: DeviceInfo) -> bool:
    """Whether kernels for this device can be compiled by processes beside the one that times.

    Never so for a CPU: there a compiler would take its time from the kernel.
    """
    return info.kind == "gpu" and hasattr(_room(info.backend), "precompile")


def precompile(
    info: DeviceInfo,
    kernel: Kernel,
    params: dict[str, int],
    cache: Cache,
    variants: Sequence[Variant],
) -> None:
    """Leave these builds of a kernel in the cache, without opening the device."""
    _room(info.backend).precompile(info, kernel, params, cache, variants)


def compiled_resources(
    capability: tuple[int, int], kernel: Kernel, params: dict[str, int], cache: Cache
) -> Resources | None:
    """What nvcc gives a kernel for a compute capability, with or without such a GPU.

    None where no nvcc is at hand, or none that builds for it. Errors of the source: `BuildError`.
    """
    try:
        return _room("cuda").compiled_resources(  # type: ignore[no-any-return]
            capability, kernel, params, cache
        )
    except UnavailableError:
        return None


def open_backend(info: DeviceInfo, cache: Cache) -> Backend:
    """Open a device for work in this process."""
    return _room(info.backend).open_device(info, cache)  # type: ignore[no-any-return]
