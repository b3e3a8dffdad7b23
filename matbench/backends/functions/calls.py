"""A function as a program, and one call of it on a CUDA device or on a CPU."""

from __future__ import annotations

import functools
import importlib
import inspect
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from matbench.backends.functions.arrays import LIBRARIES, Arrays, Result
from matbench.backends.functions.loading import blaming, loaded
from matbench.backends.functions.originals import Originals
from matbench.backends.protocol import Argument, Array, Buffer, Call
from matbench.errors import BuildError, CaseError
from matbench.kernelfile.python_file import RETURNED
from matbench.model import WORD_BYTES, Kernel, Launch, Resources, Storage

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_clock_ns = time.perf_counter_ns
#: Of this process, before it loads a function.
_originals = functools.cache(Originals)
TRUSTED = "trusted host code; blocks are not timed, and `explain` needs a kernel file"
#: What makes arrays of a library from NumPy's, if not NumPy.
_HOST_ARRAYS = {"torch": ("torch", "from_numpy"), "jax": ("jax.numpy", "asarray")}


class Function:
    """A function that computes a product; see `protocol.Function`."""

    def __init__(self, kernel: Kernel, params: dict[str, int]) -> None:
        self.replaced = _originals().replaced
        self.kernel = kernel
        self.allocates, self.variable_bytes = False, 0
        self.first_call_s: float | None = None
        self.function = loaded(kernel)
        #: Where C is among its matrices, and whether that is a parameter.
        self.index_of_C = kernel.args.index("C")
        self.fills_C = kernel.parameters[self.index_of_C].name != RETURNED
        with blaming(kernel, BuildError):
            taken = inspect.signature(self.function).parameters
        #: The numbers among its arguments that it takes by name, and its constants.
        self.names = [(i, n) for i, n in enumerate(kernel.args) if i > 2 and n in taken]
        self.constants = params
        self.resources = Resources(library=f"Python {platform.python_version()}")

    @property
    def notes(self) -> tuple[str, ...]:
        """What it is, and the time of its first call."""
        first = self.first_call_s
        return (TRUSTED,) if first is None else (TRUSTED, f"first call {first:.2g} s")

    def restore(self) -> None:
        pass  # what it keeps is its own

    def call(self, arguments: Sequence[Argument]) -> Call:
        raise NotImplementedError

    def launch(self, launch: Launch, arguments: Sequence[Argument]) -> None:
        call = self.call(arguments)
        call.run()
        call.take()
        call.give()

    def bound(self, launch: Launch, arguments: Sequence[Argument]) -> Callable[[], None]:
        return lambda: self.launch(launch, arguments)

    def resident_blocks(self, launch: Launch) -> int | None:
        return None  # it chooses its launches

    def used_bytes(self) -> int | None:
        raise NotImplementedError

    def matrices(self, arguments: Sequence[Argument]) -> list[Array]:
        return [argument for argument in arguments[:3] if isinstance(argument, Array)]

    def __call__(self, arrays: Sequence[Any], arguments: Sequence[Argument]) -> Any:
        """Call the function; an error names the line of its file."""
        named = {name: arguments[index] for index, name in self.names}
        passed = arrays if self.fills_C else arrays[:2]
        started = _clock_ns()
        with blaming(self.kernel):
            returned = self.function(*passed, **named, **self.constants)
        sys.setprofile(None)  # what it left there would be called after the timed interval
        sys.settrace(None)
        if self.first_call_s is None:
            self.first_call_s = (_clock_ns() - started) / 1e9
        return returned


class Copies(Protocol):
    """Copies of a result within a CUDA device."""

    def copy_apart(self, address: int, nbytes: int) -> None:
        """Copy memory to a place that the function does not know, when the device gets there."""

    def copy_back(self, target: Buffer) -> None:
        """Write what was last copied apart."""


class CudaFunction(Function):
    """A function that takes arrays of a CUDA device, on a stream."""

    def __init__(
        self, kernel: Kernel, params: dict[str, int], copies: Copies, *, device: int, stream: int
    ) -> None:
        super().__init__(kernel, params)
        self.copies = copies
        of = LIBRARIES.get(kernel.arrays)
        if of is None:
            raise BuildError(
                f"{kernel.path} imports no library with arrays of a GPU: torch, cupy, numba or jax"
            )
        with blaming(kernel, BuildError):
            self.arrays: Arrays = of(device, stream)
        self.resources = Resources(library=self.arrays.version)

    def call(self, arguments: Sequence[Argument]) -> Call:
        return _CudaCall(self, arguments)

    def used_bytes(self) -> int | None:
        return self.arrays.used_bytes()


class _CudaCall:
    def __init__(self, function: CudaFunction, arguments: Sequence[Argument]) -> None:
        self.function = function
        self.arguments = arguments
        matrices = function.matrices(arguments)
        self.C = matrices[function.index_of_C]
        self.matrices = matrices if function.fills_C else matrices[:2]
        self.passed: list[Any] = [] if function.arrays.is_late else self._arrays()
        self.result = Result(self.C.matrix.handle, None)

    def _arrays(self) -> list[Any]:
        with blaming(self.function.kernel):
            return [self.function.arrays.array(matrix) for matrix in self.matrices]

    def run(self) -> None:
        function = self.function
        with function.arrays.running():
            returned = function(self.passed or self._arrays(), self.arguments)
            if not function.fills_C:
                with blaming(function.kernel):
                    self.result = function.arrays.result(returned, self.C)

    def take(self) -> None:
        self.function.copies.copy_apart(self.result.address, self.C.matrix.nbytes)

    def give(self) -> None:
        self.function.copies.copy_back(self.C.matrix)
        self.passed, self.result = [], Result(0, None)


class HostMemory(Protocol):
    """Memory of a CPU device, which the host can use while it is mapped."""

    def mapped(self, buffer: Buffer) -> npt.NDArray[np.uint8]: ...
    def unmap(self, words: npt.NDArray[np.uint8]) -> None: ...


class HostFunction(Function):
    """A function that takes arrays of the host."""

    def __init__(self, kernel: Kernel, params: dict[str, int], memory: HostMemory) -> None:
        super().__init__(kernel, params)
        self.memory = memory

    def call(self, arguments: Sequence[Argument]) -> Call:
        return _HostCall(self, arguments)

    def used_bytes(self) -> int | None:
        import psutil

        return int(psutil.Process().memory_info().rss)


class _HostCall:
    def __init__(self, function: HostFunction, arguments: Sequence[Argument]) -> None:
        self.function = function
        self.arguments = arguments
        matrices = function.matrices(arguments)
        self.mapped = [function.memory.mapped(matrix.matrix) for matrix in matrices]
        views = [_view(*both) for both in zip(self.mapped, matrices, strict=True)]
        self.C = views[function.index_of_C]
        with blaming(function.kernel):
            self.passed = list(self._passed(views))
        self.result: npt.NDArray[Any] = self.C

    def _passed(self, views: Sequence[Any]) -> Iterator[Any]:
        """The arrays, of the library that the function's file imports."""
        of, how = _HOST_ARRAYS.get(self.function.kernel.arrays, ("numpy", "asarray"))
        make = getattr(importlib.import_module(of), how)
        return map(make, views)

    def run(self) -> None:
        returned = self.function(self.passed, self.arguments)
        if not self.function.fills_C:
            self.result = self._as_numpy(returned)

    def _as_numpy(self, returned: Any) -> npt.NDArray[Any]:
        import numpy as np

        if not hasattr(returned, "__array__"):
            kind = "nothing" if returned is None else type(returned).__name__
            raise CaseError(f"returned {kind} instead of an array")
        with blaming(self.function.kernel):
            array = np.asarray(returned)
        if (array.dtype, array.shape) != (self.C.dtype, self.C.shape):
            sides, asked = ("×".join(map(str, a.shape)) for a in (array, self.C))
            wanted = f"{self.C.dtype}, {asked}"
            raise CaseError(f"returned {array.dtype}, {sides}, instead of {wanted}")
        return array

    def take(self) -> None:
        self.taken = self.result.copy()

    def give(self) -> None:
        self.C[...] = self.taken
        self.passed = []
        del self.C, self.result, self.taken
        for mapped in self.mapped:
            self.function.memory.unmap(mapped)


def _view(mapped: npt.NDArray[np.uint8], array: Array) -> npt.NDArray[Any]:
    import numpy as np

    kinds: dict[Storage, str] = {"float32": "f4", "float64": "f8", "float16": "f2"}
    if array.storage not in kinds:
        raise CaseError(f"NumPy has no {array.storage}; such functions need CUDA")
    item_bytes = WORD_BYTES[array.storage]
    usable = mapped[: mapped.nbytes // item_bytes * item_bytes].view(kinds[array.storage])
    strides = tuple(step * item_bytes for step in array.steps)
    return np.lib.stride_tricks.as_strided(usable, array.shape, strides)
