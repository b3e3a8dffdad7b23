"""Arrays of several libraries over a device's memory, without copies."""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from matbench.backends.cuda.program import Bindings
from matbench.backends.protocol import Address, Array
from matbench.errors import BuildError, CaseError
from matbench.model import WORD_BYTES, Storage

#: How the types of elements are written in array interfaces; bfloat16 has no code there.
_CODES: dict[Storage, str] = {
    "float32": "<f4", "float64": "<f8", "float16": "<f2", "bfloat16": "<i2"
}  # fmt: skip


#: CU_EVENT_DISABLE_TIMING
_NO_TIMING = 2


def _interface(array: Array, address: int) -> dict[str, Any]:
    """An array for whatever reads version 3 of an array interface, NumPy's or CUDA's."""
    item_bytes = WORD_BYTES[array.storage]
    return {
        "shape": array.shape,
        "typestr": _CODES[array.storage],
        "data": (address, False),
        "strides": tuple(step * item_bytes for step in array.steps),
        "version": 3,
    }


class _OnCuda:
    def __init__(self, array: Array, address: int, stream: int | None = None) -> None:
        self.__cuda_array_interface__ = _interface(array, address)
        if stream is not None:
            self.__cuda_array_interface__["stream"] = stream


class _OnHost:
    def __init__(self, array: Array, address: int) -> None:
        self.__array_interface__ = _interface(array, address)


class Arrays:
    """Arrays of one library. `BuildError`: it is not installed."""

    module = ""
    #: Whether its arrays must be made when the function is called.
    is_late = False

    def __init__(self) -> None:
        try:
            self.library: Any = importlib.import_module(self.module)
        except ImportError as error:
            raise BuildError(f"{self.module} cannot be imported: {error}") from None

    def array(self, array: Array, address: int) -> Any:
        """An array over memory."""
        raise NotImplementedError

    def result(self, returned: Any, wanted: Array) -> Address:
        """The memory of a returned array, row by row; it is copied if its layout is another.

        Work on matbench's stream that is enqueued later waits for it.
        """
        raise NotImplementedError

    def running(self) -> AbstractContextManager[Any]:
        """Within, the library works on matbench's stream."""
        return contextlib.nullcontext()

    def used_bytes(self) -> int | None:
        """What its arrays use of the device's memory, or on a CPU its process; None if it does not
        say."""
        return None

    @property
    def version(self) -> str:
        return f"{self.module.partition('.')[0]} {getattr(self.library, '__version__', '')}".strip()


class HostArrays(Arrays):
    """Arrays of the host: NumPy's, or what another library makes of them."""

    def __init__(self, module: str) -> None:
        self.module, self.make = {
            "torch": ("torch", "from_numpy"), "jax": ("jax.numpy", "asarray")
        }.get(module, ("numpy", "asarray"))  # fmt: skip
        super().__init__()
        self.numpy = importlib.import_module("numpy")

    def array(self, array: Array, address: int) -> Any:
        _require_numpy_type(array, "NumPy")
        return getattr(self.library, self.make)(self.numpy.asarray(_OnHost(array, address)))

    def result(self, returned: Any, wanted: Array) -> Address:
        if not hasattr(returned, "__array__"):
            raise _unlike(returned, None, "an array")
        returned = self.numpy.asarray(returned)
        _require(str(returned.dtype), returned.shape, wanted)
        returned = self.numpy.ascontiguousarray(returned)
        return Address(returned.ctypes.data, returned)

    def used_bytes(self) -> int | None:
        return process_bytes()

    @property
    def version(self) -> str:
        return f"Python {platform.python_version()}"


def process_bytes() -> int:
    """The memory that this process uses."""
    import psutil

    return int(psutil.Process().memory_info().rss)


class CudaArrays(Arrays):
    """Arrays on one device and stream."""

    def __init__(self, device: int, stream: int) -> None:
        super().__init__()
        self.device, self.stream = device, stream


class Torch(CudaArrays):
    module = "torch"

    def __init__(self, device: int, stream: int) -> None:
        super().__init__(device, stream)
        if not self.library.cuda.is_available():
            raise BuildError("this PyTorch cannot use CUDA; install one that can")
        self.library.cuda.set_device(device)
        self.place = self.library.device("cuda", device)
        self.external = self.library.cuda.ExternalStream(stream, self.place)

    def array(self, array: Array, address: int) -> Any:
        tensor = self.library.as_tensor(_OnCuda(array, address), device=self.place)
        return tensor.view(self.library.bfloat16) if array.storage == "bfloat16" else tensor

    def running(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = self.library.cuda.stream(self.external)
        return context

    def result(self, returned: Any, wanted: Array) -> Address:
        if not isinstance(returned, self.library.Tensor) or returned.device != self.place:
            raise _unlike(returned, getattr(returned, "device", None), f"a tensor on {self.place}")
        kind = str(returned.dtype).removeprefix("torch.")
        _require(kind, tuple(returned.shape), wanted)
        returned = returned.contiguous()
        return Address(returned.data_ptr(), returned)

    def used_bytes(self) -> int | None:
        return int(self.library.cuda.memory_allocated(self.place))


class CuPy(CudaArrays):
    module = "cupy"

    def __init__(self, device: int, stream: int) -> None:
        super().__init__(device, stream)
        self.library.cuda.Device(device).use()
        self.external = self.library.cuda.ExternalStream(stream, device)

    def array(self, array: Array, address: int) -> Any:
        _require_numpy_type(array, "CuPy")
        return self.library.asarray(_OnCuda(array, address))

    def running(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = self.external
        return context

    def result(self, returned: Any, wanted: Array) -> Address:
        if not isinstance(returned, self.library.ndarray):
            raise _unlike(returned, None, "an array of CuPy")
        _require(str(returned.dtype), returned.shape, wanted)
        returned = self.library.ascontiguousarray(returned)
        return Address(int(returned.data.ptr), returned)

    def used_bytes(self) -> int | None:
        return int(self.library.get_default_memory_pool().used_bytes())


class Numba(CudaArrays):
    """Numba launches on CUDA's default stream, which waits for matbench's, and it for that."""

    module = "numba.cuda"

    def __init__(self, device: int, stream: int) -> None:
        super().__init__(device, stream)
        self.library.select_device(device)

    def array(self, array: Array, address: int) -> Any:
        _require_numpy_type(array, "Numba")
        return self.library.as_cuda_array(_OnCuda(array, address))

    def result(self, returned: Any, wanted: Array) -> Address:
        if not self.library.is_cuda_array(returned):
            raise _unlike(returned, None, "an array of numba.cuda")
        returned = self.library.as_cuda_array(returned, sync=False)
        _require(str(returned.dtype), returned.shape, wanted)
        if not returned.is_c_contiguous():
            raise CaseError("returned an array whose rows are not one after the other")
        return Address(int(returned.__cuda_array_interface__["data"][0]), returned)


class Jax(CudaArrays):
    """JAX has streams of its own: one of them waits for matbench's, and matbench's for the result.

    An array is only ordered after what matbench's stream was asked for when it is made.
    """

    module = "jax"
    is_late = True

    def __init__(self, device: int, stream: int) -> None:
        # By default it takes three quarters of the device's memory.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        super().__init__(device, stream)
        self.place = self.library.devices("gpu")[device]
        self.library.config.update("jax_default_device", self.place)
        self.numpy = importlib.import_module("jax.numpy")

    def array(self, array: Array, address: int) -> Any:
        _require_numpy_type(array, "JAX")
        waiting = self.place.get_stream_for_external_ready_events()
        driver = Bindings("JAX")
        event = driver.call("cuEventCreate", _NO_TIMING)
        driver.call("cuEventRecord", event, self.stream)
        driver.call("cuStreamWaitEvent", waiting, event, 0)
        driver.call("cuEventDestroy", event)
        return self.numpy.asarray(_OnCuda(array, address, waiting))

    def result(self, returned: Any, wanted: Array) -> Address:
        if not isinstance(returned, self.library.Array):
            raise _unlike(returned, None, "an array of JAX")
        _require(str(returned.dtype), returned.shape, wanted)
        returned.__dlpack__(stream=self.stream)  # matbench's stream waits for it
        return Address(int(returned.unsafe_buffer_pointer()), returned)

    def used_bytes(self) -> int | None:
        statistics = self.place.memory_stats()
        return None if statistics is None else int(statistics["bytes_in_use"])


LIBRARIES: dict[str, type[CudaArrays]] = {"torch": Torch, "cupy": CuPy, "numba": Numba, "jax": Jax}


def _require(kind: str, shape: Sequence[int], wanted: Array) -> None:
    if (kind, tuple(shape)) != (wanted.storage, wanted.shape):
        sides, asked = ("×".join(map(str, s)) for s in (shape, wanted.shape))
        raise CaseError(f"returned {kind}, {sides}, instead of {wanted.storage}, {asked}")


def _require_numpy_type(array: Array, library: str) -> None:
    if array.storage == "bfloat16":
        raise CaseError(f"matbench cannot pass bfloat16 to {library}; a function of PyTorch can")


def _unlike(returned: Any, where: object, wanted: str) -> CaseError:
    kind = "nothing" if returned is None else type(returned).__name__
    return CaseError(f"returned {kind}{f' on {where}' if where else ''} instead of {wanted}")
