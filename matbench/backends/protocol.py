"""The interface of every backend: an open device, its memory and its built kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from matbench.errors import MatbenchError, UsageError
from matbench.model import Conditions, DeviceInfo, Kernel, Launch, Params, Resources, Storage

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from matbench.cache import Cache


class UnavailableError(MatbenchError):
    """A backend cannot be used here: what is `missing`, and the `fix` if there is one."""

    def __init__(self, missing: str, fix: str = "") -> None:
        super().__init__(f"{missing}; {fix}" if fix else missing)
        self.missing, self.fix = missing, fix


class NoDeviceError(UsageError):
    """There is no device to run on; the message says why for each backend."""


class Buffer(Protocol):
    """Device memory; the type of `handle` depends on the backend."""

    handle: Any
    nbytes: int

    def view(self, offset_bytes: int, nbytes: int) -> Buffer:
        """A part of the buffer that shares its memory; the offset is a multiple of 4,096."""


class TensorMap(NamedTuple):
    """A row-major matrix, and the box that the Tensor Memory Accelerator copies at a time. The
    first of three dimensions is that of a batch."""

    matrix: Buffer
    storage: Storage
    shape: tuple[int, ...]
    box: tuple[int, ...]


class Array(NamedTuple):
    """A matrix as a function in Python takes it; `steps` are in elements. The first of three
    dimensions is that of a batch."""

    matrix: Buffer
    storage: Storage
    shape: tuple[int, ...]
    steps: tuple[int, ...]


class Handle(NamedTuple):
    """What a function on the host takes of matbench's: its `stream`, or its handle of `cublas`."""

    name: str


class Address(NamedTuple):
    """An address that a function on the host may use, and what keeps its memory."""

    value: int
    keeper: Any


Argument = Buffer | TensorMap | Array | Handle | int | float
Variant = Literal["plain", "clocked", "staggered", "reordered"]
Variants = tuple[Variant, ...]
VARIANTS: Variants = ("plain", "clocked", "staggered", "reordered")

#: A block's stamp in 64-bit words: start and end in ticks, and in ns, and the multiprocessor.
STAMP_WORDS = 5


class Program:
    """One built kernel. Most keep nothing from one launch to the next."""

    resources: Resources
    #: Whether it allocates from the device's heap, which outlives a launch.
    allocates: bool = False
    #: The size of its source's variables, which outlive a launch.
    variable_bytes: int = 0
    #: What its compiler warned of, also if the build was kept from another time.
    warnings: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say of all its results."""
        return ()

    def restore(self) -> None:
        """Reset those variables to their initial values."""
        if self.variable_bytes:
            self.reload()

    def reload(self) -> None:
        """Load the same machine code again, which may place it elsewhere."""

    def prepare(self, arguments: Sequence[Argument]) -> None:
        """Get ready for a call with these arguments, before its inputs are written."""

    def call(self, launch: Launch, arguments: Sequence[Argument]) -> Call:
        """A call with these arguments, which is not made yet."""
        raise NotImplementedError

    def launch(self, launch: Launch, arguments: Sequence[Argument]) -> None:
        """Make such a call, without waiting for the device."""
        call = self.call(launch, arguments)
        call.run()
        call.take()
        call.give()

    def resident_blocks(self, launch: Launch) -> int | None:
        """Resident blocks of such a launch per multiprocessor, according to the driver."""
        return None


class Call(NamedTuple):
    """One launch of a kernel, or of several, or one call of a function on the host."""

    #: Start it; a GPU may still be computing C afterwards. It may return its own time, in ns.
    run: Callable[[], object]
    #: Copy what C is now, as soon as the device has done what the call asked of it.
    take: Callable[[], None] = lambda: None
    #: Write that copy to C, and let go of all arrays.
    give: Callable[[], None] = lambda: None
    #: Whether a function runs on the host, which no other call may share a timing with.
    runs_on_host: bool = False
    program: Program | None = None
    arguments: Sequence[Argument] = ()


class Work(NamedTuple):
    """Calls to time, one after the other.

    `hold` keeps the device busy until the host has made them all, and `ready` is enqueued right
    before them; neither counts. `is_cold`: the last-level cache is overwritten before `ready`.
    `is_graph`: they are launched as one CUDA graph.
    """

    calls: Sequence[Call]
    hold: Callable[[], object] = lambda: None
    ready: Callable[[], object] = lambda: None
    is_cold: bool = False
    is_graph: bool = False


class Function(Program):
    """A function on the host that computes a product with whatever it calls."""

    #: The name of a function that matbench measures with, if code of this one replaced it.
    replaced: Callable[[], str | None]
    #: The memory that its arrays use, or on a CPU its process; None if nothing says so.
    used_bytes: Callable[[], int | None]


class Backend(Protocol):
    """An open device. Errors are `CaseError`s, `fatal` if the device is lost. What has a body here
    is so for most devices."""

    info: DeviceInfo
    cache: Cache
    #: Whether the stamps' `start` and `end` count cycles of the multiprocessors' clock.
    clock_is_sm: bool = False
    #: The builds of a kernel that this backend can make.
    variants: tuple[Variant, ...]

    def allocate(self, nbytes: int, *, is_given: bool = False) -> Buffer:
        """Allocate `nbytes`, on CUDA at a multiple of 1,024 bytes; `OutOfMemoryError` says how much
        was requested. `is_given`: kernels get matrices in it."""

    def release(self, buffer: Buffer) -> None: ...

    def memory_without(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """All allocated memory, and what rounding added to it, without these buffers."""

    def write(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        """Copy a contiguous array to the start of `buffer` and wait."""

    def read(self, buffer: Buffer, array: npt.NDArray[Any]) -> None:
        """Fill a contiguous array from the start of `buffer` and wait."""

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy within the device, between buffers of equal size."""

    def mapped(self, buffer: Buffer) -> Address:
        """Where a function on the host may read and write it, until `unmap`."""

    def unmap(self, place: Address) -> None:
        return

    def copy_apart(self, address: int, nbytes: int) -> None:
        """Copy memory to a place that no function knows, as soon as the device gets there."""

    def copy_back(self, target: Buffer) -> None:
        """Write what was last copied apart."""

    def build(
        self, kernel: Kernel, params: Params, variant: Variant = "plain", *, block_width: int = 32
    ) -> Program:
        """Compile, or load from the cache, for blocks of `block_width` threads along x.

        A *clocked* build timestamps every block; it takes one more argument, a zeroed buffer of
        `STAMP_WORDS` per block. A *staggered* build makes warps drift apart wherever they may; it
        also takes one more argument, which it ignores. A *reordered* build runs a single block; its
        last four arguments are the order of the threads (0: as they are, 1: mirrored, 2: with a
        stride) and the block's x, y and z.
        """

    def timed_ns(self, work: Work) -> float:
        """The mean time of these calls: between two events of the device or, of a function on a
        CPU, between two readings of the clock. What functions return is taken after it."""

    def clock_agrees(self) -> bool:
        """Whether events are still timed by the host's clock; true if they never were, or if only
        the device's own clock times them."""
        return True

    def reset_cache(self) -> None:
        """Release data that a kernel made persist in the cache, if it can."""
        return

    def conditions(self) -> Conditions:
        """Current clocks, temperature and load, as far as they are known."""

    def energy_j(self) -> float | None:
        """The joules used since its driver was loaded, by its own counter; None if it has none."""
        return None

    def ticks_per_ns(self, stamps: npt.NDArray[np.uint64]) -> float:
        """The rate of the clock that took these stamps (blocks × 5), in ticks per nanosecond."""

    def synchronize(self) -> None:
        """Wait until the device is idle."""

    def close(self) -> None:
        """Let go of the device; memory and programs go with most."""
        return
