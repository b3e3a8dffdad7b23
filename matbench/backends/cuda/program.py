"""Launches a compiled kernel; what PyCUDA lacks comes from cuda-bindings, in the same context."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from matbench.backends.building import warnings_of
from matbench.backends.cuda.compilation import Compiled
from matbench.backends.cuda.device import driver, errors
from matbench.backends.protocol import Argument, Call, Program, TensorMap
from matbench.errors import BuildError, CaseError
from matbench.kernelfile import signature
from matbench.model import EIGHT_BITS, WORD_BYTES, Kernel, Launch, Parameter, Resources

#: Static and dynamic shared memory that a block may use without opting in to more.
_SHARED_BYTES = 48 * 1024


class Bindings:
    """Driver calls of cuda-bindings; error messages name the `purpose`."""

    def __init__(self, purpose: str, *, fatal: bool = False) -> None:
        try:
            from cuda.bindings import driver as cu
        except ImportError:
            raise CaseError(
                f"{purpose} needs cuda-bindings; pip install 'matbench-cuda[cuda]'"
            ) from None
        self.cu: Any = cu
        self.purpose = purpose
        self.fatal = fatal

    def call(self, name: str, *arguments: Any) -> Any:
        """The result of a call, or the tuple of its results; a failure is a `CaseError`."""
        status, *results = getattr(self.cu, name)(*arguments)
        if status != self.cu.CUresult.CUDA_SUCCESS:
            raise CaseError(f"{self.purpose}: {status.name}", fatal=self.fatal)
        return results[0] if len(results) == 1 else tuple(results)

    @contextmanager
    def function(self, code: Compiled) -> Iterator[Any]:
        """The kernel's handle, from a second copy of its code, because PyCUDA hides its own."""
        module = self.call("cuModuleLoadData", code.cubin)
        try:
            yield self.call("cuModuleGetFunction", module, code.entry.encode())
        finally:
            self.cu.cuModuleUnload(module)

    def parameters(self, code: Compiled) -> list[tuple[int, int]]:
        """The offset and the size of each parameter in bytes; none if the driver does not tell."""
        ask: Any = getattr(self.cu, "cuFuncGetParamInfo", None)  # since CUDA 12.4
        results, found = self.cu.CUresult, list[tuple[int, int]]()
        with self.function(code) as function:
            for index in range(1024) if ask else ():
                status, *place = ask(function, index)
                if status == results.CUDA_ERROR_INVALID_VALUE:  # there are no more
                    break
                if status != results.CUDA_SUCCESS:
                    return []
                found.append((int(place[0]), int(place[1])))
        return found


@contextmanager
def captured(stream: Any, enqueue: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Capture launches on PyCUDA's stream as a graph; yields a function that starts it."""
    bindings = Bindings("--method graph", fatal=True)
    cu, call = bindings.cu, bindings.call
    handle = cu.CUstream(stream.handle)
    mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    call("cuStreamBeginCapture", handle, mode)
    enqueue()
    graph = call("cuStreamEndCapture", handle)
    instance = call("cuGraphInstantiate", graph, 0)
    call("cuGraphDestroy", graph)
    call("cuGraphUpload", instance, handle)  # so that the first launch need not
    yield partial(call, "cuGraphLaunch", instance, handle)
    call("cuGraphExecDestroy", instance)


def _encoded(tensor: TensorMap) -> bytes:
    """A `CUtensorMap`, or zeros if the matrix's rows do not start at multiples of 16 bytes.

    A box with rows of 32, 64 or 128 bytes is swizzled by that length.
    """
    shape, box = tensor.shape[::-1], tensor.box[::-1]  # fastest dimension first
    item_bytes = WORD_BYTES[tensor.storage]
    pitches = [math.prod(shape[:i]) * item_bytes for i in range(1, len(shape))]
    box_bytes = box[0] * item_bytes
    if pitches[0] % 16:
        return bytes(128)
    sides, box_sides = ("×".join(map(str, of)) for of in (tensor.shape, tensor.box))
    bindings = Bindings(f"a tensor map of {sides} by {box_sides}")
    cu = bindings.cu
    wide, short = cu.cuuint64_t, cu.cuuint32_t
    named = "uint8" if tensor.storage in EIGHT_BITS else tensor.storage
    kind = f"CU_TENSOR_MAP_DATA_TYPE_{named.upper()}"
    swizzle = f"CU_TENSOR_MAP_SWIZZLE_{f'{box_bytes}B' if box_bytes in (32, 64, 128) else 'NONE'}"
    encoded = bindings.call(
        "cuTensorMapEncodeTiled",
        getattr(cu.CUtensorMapDataType, kind),
        len(shape),
        tensor.matrix.handle,
        [*map(wide, shape)],
        [*map(wide, pitches)],
        [*map(short, box)],
        [short(1)] * len(shape),
        cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cu.CUtensorMapSwizzle, swizzle),
        cu.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    return ctypes.string_at(encoded.getPtr(), 128)


def _maker(parameter: Parameter) -> Any:
    """What converts an argument for PyCUDA: a NumPy type, or a function."""
    if parameter.pointer:
        return np.uintp
    if parameter.type == signature.TENSOR_MAP:
        return _encoded
    kind = signature.SCALARS[parameter.type]
    if kind == "bool":  # PyCUDA would pass NumPy's bool as a pointer
        return np.uint8
    if kind in ("float16", "bfloat16"):
        return partial(signature.bits_of_16, parameter.type)
    return np.dtype(kind).type


class CudaProgram(Program):
    """One build of a kernel: a function of a module that PyCUDA loaded, and reloads to reset it."""

    def __init__(self, kernel: Kernel, function: Any, code: Compiled, stream: Any) -> None:
        self.code = code
        self.stream = stream
        self.allocates = b"\0malloc\0" in code.cubin
        self.variable_bytes = code.variable_bytes
        self.warnings = warnings_of(code.said, kernel)
        self.make: list[Any] = [_maker(parameter) for parameter in kernel.parameters]
        if code.entry == "matbench_entry":  # instrumented: it takes one more buffer
            self.make.append(np.uintp)
        self.types = self._types()
        self._use(function)
        self.resources = Resources(
            registers=function.num_regs,
            static_shared_bytes=function.shared_size_bytes,
            local_bytes=function.local_size_bytes,
            spilled_bytes=code.resources.spilled_bytes,
            max_threads_per_block=function.max_threads_per_block,
        )

    def _types(self) -> list[Any]:
        """The parameters for PyCUDA, after a check of the sizes read from the source against the
        compiler's: NumPy types or, for kernels with tensor maps, one `struct` format.

        Tensor maps are aligned in constant memory, and only the driver knows where the parameters
        begin there, and so the offset of each one.
        """
        has_maps = _encoded in self.make
        passed = [np.uint16 if isinstance(make, partial) else make for make in self.make]
        formats = ["128s" if kind is _encoded else np.dtype(kind).char for kind in passed]
        purpose = "a kernel with tensor maps" if has_maps else "the entry's parameters"
        try:
            actual = Bindings(purpose).parameters(self.code)
        except CaseError:  # no cuda-bindings, or a bad module, which loading reports
            if has_maps:
                raise
            actual = []
        sizes = [size for _, size in actual]
        wanted = [struct.calcsize(letter) for letter in formats]
        if actual and sizes != wanted:
            shown = [", ".join(map(str, listed)) for listed in (sizes, wanted)]
            raise BuildError(
                f"{self.code.entry} has parameters of {shown[0]} bytes, but its source declares "
                f"{shown[1]}; use parameter types that do not depend on `#if`"
            )
        if not has_maps:
            return passed
        if not actual:
            raise CaseError(f"{purpose}: the driver does not tell where its parameters are")
        layout = ""
        for (offset, _), letter in zip(actual, formats, strict=True):
            layout += f"{offset - struct.calcsize(layout)}x{letter}"
        return [layout]

    def _use(self, function: Any) -> None:
        self.function = function
        function.prepare(self.types)
        self.allowed_shared_bytes = _SHARED_BYTES - function.shared_size_bytes

    def reload(self) -> None:
        with errors():  # for `SourceModule`, nvcc would read the included files again
            module = driver().module_from_buffer(self.code.cubin)
            self._use(module.get_function(self.code.entry))

    def call(self, launch: Launch, arguments: Sequence[Argument]) -> Call:
        """The launch with converted arguments, so that calling it costs the host little time."""
        if launch.shared_bytes > self.allowed_shared_bytes:
            attribute = driver().function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            with errors():
                self.function.set_attribute(attribute, launch.shared_bytes)
            self.allowed_shared_bytes = launch.shared_bytes
        values = [
            make(getattr(argument, "handle", argument))
            for make, argument in zip(self.make, arguments, strict=True)
        ]
        run = partial(
            self.function.prepared_async_call,
            *(launch.grid, launch.block, self.stream, *values),
            shared_size=launch.shared_bytes,
        )
        return Call(run, program=self, arguments=arguments)

    def launch(self, launch: Launch, arguments: Sequence[Argument]) -> None:
        with errors(
            f"launching {launch.blocks:,} blocks of {launch.threads_per_block:,} threads "
            f"with {launch.shared_bytes:,} bytes of dynamic shared memory"
        ):
            super().launch(launch, arguments)

    def resident_blocks(self, launch: Launch) -> int | None:
        """By the driver's occupancy call; None without cuda-bindings, or if the call fails."""
        try:
            bindings = Bindings("occupancy")
            with bindings.function(self.code) as function:
                # Without this, the call fails for more than 48 KiB of dynamic shared memory.
                attribute = bindings.cu.CUfunction_attribute
                largest = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                bindings.call("cuFuncSetAttribute", function, largest, launch.shared_bytes)
                blocks = bindings.call(
                    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                    *(function, launch.threads_per_block, launch.shared_bytes),
                )
                return int(blocks)
        except CaseError:
            return None
