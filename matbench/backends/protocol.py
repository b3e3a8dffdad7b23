"""The interface of every backend: an open device, its memory and its built kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from matbench.errors import MatbenchError, UsageError
from matbench.model import Conditions, DeviceInfo, Kernel, Launch, Resources, Storage

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class UnavailableError(MatbenchError):
    """A backend cannot be used here: what is `missing`, and the `fix` if there is one."""

    def __init__(self, missing: str, fix: str = "") -> None:
        super().__init__(missing, fix)
        self.missing = missing
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.missing}; {self.fix}" if self.fix else self.missing


class NoDeviceError(UsageError):
    """There is no device to run on; the message says why for each backend."""


class Buffer(Protocol):
    """Device memory; the type of `handle` depends on the backend."""

    handle: Any
    nbytes: int

    def view(self, offset_bytes: int, nbytes: int) -> Buffer:
        """A part of the buffer that shares its memory; the offset is a multiple of 4,096."""


class TensorMap(NamedTuple):
    """A row-major matrix, and the box that the Tensor Memory Accelerator copies at a time."""

    matrix: Buffer
    storage: Storage
    shape: tuple[int, int]
    box: tuple[int, int]


class CudaCode(NamedTuple):
    """A kernel's machine code: `entry` in a cubin for `architecture` (`sm_90a`)."""

    cubin: bytes
    entry: str
    architecture: str
    resources: Resources


Argument = Buffer | TensorMap | int | float
Variant = Literal["plain", "clocked", "staggered"]
VARIANTS: tuple[Variant, ...] = ("plain", "clocked", "staggered")

#: A block's stamp: start and end in ticks, start and end in ns, the multiprocessor.
STAMP_WORDS = 5
STAMP_BYTES = 8 * STAMP_WORDS


class Program(Protocol):
    """One built kernel."""

    resources: Resources
    #: Whether it allocates from the device's heap, which outlives a launch.
    allocates: bool
    #: The size of its source's variables, which outlive a launch.
    variable_bytes: int

    def restore(self) -> None:
        """Reset those variables to their initial values."""

    def launch(self, launch: Launch, arguments: Sequence[Argument]) -> None:
        """Start the kernel without waiting for it."""

    def resident_blocks(self, launch: Launch) -> int | None:
        """Resident blocks of such a launch per multiprocessor, according to the driver."""


class Backend(Protocol):
    """An open device. Errors are `CaseError`s, `fatal` if the device is lost."""

    info: DeviceInfo
    #: Whether the stamps' `start` and `end` count cycles of the multiprocessors' clock.
    clock_is_sm: bool
    #: The builds of a kernel that this backend can make.
    variants: tuple[Variant, ...]

    def allocate(self, nbytes: int) -> Buffer:
        """Allocate `nbytes`, on CUDA at a multiple of 1,024 bytes; `OutOfMemoryError` says how much
        was requested."""

    def release(self, buffer: Buffer) -> None: ...

    def memory_without(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """All allocated memory, and what rounding added to it, without these buffers."""

    def write(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        """Copy a contiguous array to the start of `buffer` and wait."""

    def read(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        """Fill a contiguous array from the start of `buffer` and wait."""

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy within the device, between buffers of equal size."""

    def build(
        self,
        kernel: Kernel,
        params: dict[str, int],
        variant: Variant = "plain",
        *,
        block_width: int = 32,
    ) -> Program:
        """Compile, or load from the cache, for blocks of `block_width` threads along x.

        A *clocked* build timestamps every block; it takes one more argument, a zeroed buffer of
        `STAMP_BYTES` per block. A *staggered* build makes warps drift apart wherever they may; it
        also takes one more argument, which it ignores.
        """

    def time_ns(
        self, program: Program, launch: Launch, arguments: Sequence[Argument], *, cold: bool
    ) -> float:
        """Time one launch with device events; `cold` overwrites the last-level cache before it."""

    def time_hot_ns(
        self,
        program: Program,
        launch: Launch,
        arguments: Sequence[Sequence[Argument]],
        *,
        graph: bool,
        hold: Callable[[], None],
    ) -> float:
        """The mean time of launches back to back, one with each set of arguments.

        If there are several, the first is not counted. `graph`: launch them as one CUDA graph.
        `hold` keeps the device busy while the host enqueues them.
        """

    def clock_agrees(self) -> bool:
        """Whether events are still timed by the host's clock; true if they never were, or if only
        the device's own clock times them."""

    def reset_cache(self) -> None:
        """Release data that a kernel made persist in the cache."""

    def conditions(self) -> Conditions:
        """Current clocks, temperature and load, as far as they are known."""

    def ticks_per_ns(self, stamps: npt.NDArray[np.uint64]) -> float:
        """The rate of the clock that took these stamps (blocks × 5), in ticks per nanosecond."""

    def synchronize(self) -> None:
        """Wait until the device is idle."""

    def close(self) -> None: ...
