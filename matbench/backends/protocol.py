"""What every backend offers: a device that is open for work, its memory and its built kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from matbench.errors import MatbenchError, UsageError
from matbench.model import Conditions, DeviceInfo, Kernel, Launch, Resources, Storage

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class UnavailableError(MatbenchError):
    """A backend that cannot be used here; the message says what is missing and how to fix it."""


class NoDeviceError(UsageError):
    """There is no device to run on; the message says why for each backend."""


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

#: A block's stamp: start and end in ticks, start and end in ns, the multiprocessor.
STAMP_WORDS = 5
STAMP_BYTES = 8 * STAMP_WORDS


class Program(Protocol):
    """One built kernel."""

    resources: Resources
    #: Whether it takes memory from the device's own heap, which outlives a launch.
    allocates: bool
    #: Whether its source has variables that outlive a launch.
    has_variables: bool

    def restore(self) -> None:
        """Give those variables their first values again."""

    def launch(self, launch: Launch, arguments: Sequence[Argument]) -> None:
        """Start it, without waiting."""

    def resident_blocks(self, launch: Launch) -> int | None:
        """Blocks of such a launch that a multiprocessor holds at once, according to the driver."""


class Backend(Protocol):
    """A device that is open for work. Errors are `CaseError`s, `fatal` when the device is lost."""

    info: DeviceInfo
    #: Whether the stamps' `start` and `end` count cycles of the multiprocessors' clock.
    clock_is_sm: bool
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
        `STAMP_BYTES` a block. A *staggered* build lets warps drift apart where they may; it takes
        one more argument too, and ignores it.
        """

    def time_ns(
        self, program: Program, launch: Launch, arguments: Sequence[Argument], *, cold: bool
    ) -> float:
        """One launch by device events; `cold` overwrites the last-level cache before it."""

    def time_hot_ns(
        self,
        program: Program,
        launch: Launch,
        arguments: Sequence[Sequence[Argument]],
        *,
        graph: bool,
        hold: Callable[[], None],
    ) -> float:
        """The mean of launches back to back, one with each set of arguments.

        If there are more than one, the first is not counted. `graph`: they are one CUDA graph.
        `hold` keeps the device busy while the host enqueues them.
        """

    def reset_cache(self) -> None:
        """Let go of what a kernel asked the cache to keep."""

    def conditions(self) -> Conditions:
        """Clocks, temperature and load as of now, as far as they are known."""

    def ticks_per_ns(self, stamps: npt.NDArray[np.uint64]) -> float:
        """The rate of the clock that took these stamps (blocks × 5), in ticks per nanosecond."""

    def synchronize(self) -> None:
        """Wait until the device is idle, whoever gave it work."""

    def close(self) -> None: ...
