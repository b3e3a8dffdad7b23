"""Arrays of several packages over a device's memory, without copies."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from matbench.backends.cuda.program import Bindings
from matbench.backends.protocol import Address, Array
from matbench.errors import BuildError, CaseError, ResultError
from matbench.model import FOREIGN, Kernel

#: Types that array interfaces have no code for, and those of their bits.
_BITS = {"bfloat16": "int16", "e4m3": "uint8", "e5m2": "uint8"}
#: CU_EVENT_DISABLE_TIMING
_NO_TIMING = 2


class Arrays(NamedTuple):
    """How a function takes matrices, and returns one: as arrays of one package, or as addresses."""

    version: str
    #: An array over memory.
    array: Callable[[Array, int], Any]
    #: The memory of a returned array, row by row; it is copied if its layout is another. Work on
    #: matbench's stream that is enqueued later waits for it.
    result: Callable[[Any, Array], Address]
    #: What its arrays use of the device's memory, or on a CPU its process; None if it does not say.
    used_bytes: Callable[[], int | None] = lambda: None
    #: Within, the package works on matbench's stream.
    running: Callable[[], AbstractContextManager[Any]] = nullcontext
    #: Whether its arrays must be made when the function is called.
    is_late: bool = False


def on_host(kernel: Kernel) -> Arrays:
    """Arrays of the host: NumPy's, or what another package makes of them."""
    module, name = {"torch": ("torch", "from_numpy"), "jax": ("jax.numpy", "asarray")}.get(
        kernel.arrays, ("numpy", "asarray")
    )
    make, numpy = getattr(_imported(module), name), _imported("numpy")

    def array(array: Array, address: int) -> Any:
        return make(numpy.asarray(_over(array, address, "NumPy", "__array_interface__")))

    def result(returned: Any, wanted: Array) -> Address:
        _require_own(hasattr(returned, "__array__"), returned, "an array")
        returned = numpy.asarray(returned)
        _require(returned, wanted)
        returned = numpy.ascontiguousarray(returned)
        return Address(returned.ctypes.data, returned)

    return Arrays(f"Python {platform.python_version()}", array, result, process_bytes)


def process_bytes() -> int:
    """The memory that this process uses."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def on_cuda(device: int, stream: int, kernel: Kernel) -> Arrays:
    """Arrays on a device and stream. `BuildError`: the kernel's package is not installed."""
    if kernel.arrays not in _PACKAGES:
        raise BuildError(
            f"{kernel.path} imports no library with arrays of a GPU: torch, cupy, numba or jax"
        )
    return _PACKAGES[kernel.arrays](device, stream)


def _torch(device: int, stream: int) -> Arrays:
    torch = _imported("torch")
    if not torch.cuda.is_available():
        raise BuildError("this PyTorch cannot use CUDA; install one that can")
    torch.cuda.set_device(device)
    place = torch.device("cuda", device)

    def array(array: Array, address: int) -> Any:
        tensor = torch.as_tensor(_over(array, address), device=place)
        name = FOREIGN.get(array.storage)
        return tensor if name is None else tensor.view(getattr(torch, name))

    def result(returned: Any, wanted: Array) -> Address:
        where = getattr(returned, "device", None)
        is_own = isinstance(returned, torch.Tensor) and where == place
        _require_own(is_own, returned, f"a tensor on {place}", where)
        _require(returned, wanted)
        returned = returned.contiguous()
        return Address(returned.data_ptr(), returned)

    used_bytes = partial(torch.cuda.memory_allocated, place)
    running = partial(torch.cuda.stream, torch.cuda.ExternalStream(stream, place))
    return Arrays(_version("torch", torch), array, result, used_bytes, running)


def _cupy(device: int, stream: int) -> Arrays:
    cupy = _imported("cupy")
    cupy.cuda.Device(device).use()
    external = cupy.cuda.ExternalStream(stream, device)

    def array(array: Array, address: int) -> Any:
        return cupy.asarray(_over(array, address, "CuPy"))

    def result(returned: Any, wanted: Array) -> Address:
        _require_own(isinstance(returned, cupy.ndarray), returned, "an array of CuPy")
        _require(returned, wanted)
        returned = cupy.ascontiguousarray(returned)
        return Address(int(returned.data.ptr), returned)

    def used_bytes() -> int:
        return int(cupy.get_default_memory_pool().used_bytes())

    return Arrays(_version("cupy", cupy), array, result, used_bytes, lambda: external)


def _numba(device: int, stream: int) -> Arrays:
    """Numba launches on CUDA's default stream, which waits for matbench's, and it for that."""
    numba = _imported("numba.cuda")
    numba.select_device(device)

    def array(array: Array, address: int) -> Any:
        return numba.as_cuda_array(_over(array, address, "Numba"))

    def result(returned: Any, wanted: Array) -> Address:
        _require_own(numba.is_cuda_array(returned), returned, "an array of numba.cuda")
        returned = numba.as_cuda_array(returned, sync=False)
        _require(returned, wanted)
        if not returned.is_c_contiguous():
            raise CaseError("returned an array whose rows are not one after the other")
        return Address(int(returned.__cuda_array_interface__["data"][0]), returned)

    return Arrays(_version("numba", numba), array, result)


def _jax(device: int, stream: int) -> Arrays:
    """JAX has streams of its own: one of them waits for matbench's, and matbench's for the result.
    An array is only ordered after what matbench's stream was asked for when it is made."""
    # By default it takes three quarters of the device's memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = _imported("jax")
    place = jax.devices("gpu")[device]
    jax.config.update("jax_default_device", place)
    numpy = _imported("jax.numpy")

    def array(array: Array, address: int) -> Any:
        over = _over(array, address, "JAX")
        waiting = place.get_stream_for_external_ready_events()
        driver = Bindings("JAX")
        event = driver.call("cuEventCreate", _NO_TIMING)
        driver.call("cuEventRecord", event, stream)
        driver.call("cuStreamWaitEvent", waiting, event, 0)
        driver.call("cuEventDestroy", event)
        over.__cuda_array_interface__["stream"] = waiting
        return numpy.asarray(over)

    def result(returned: Any, wanted: Array) -> Address:
        _require_own(isinstance(returned, jax.Array), returned, "an array of JAX")
        _require(returned, wanted)
        returned.__dlpack__(stream=stream)  # matbench's stream waits for it
        return Address(int(returned.unsafe_buffer_pointer()), returned)

    def used_bytes() -> int | None:
        statistics = place.memory_stats()
        return None if statistics is None else int(statistics["bytes_in_use"])

    return Arrays(_version("jax", jax), array, result, used_bytes, is_late=True)


_PACKAGES = {"torch": _torch, "cupy": _cupy, "numba": _numba, "jax": _jax}


def _imported(module: str) -> Any:
    """`BuildError`: it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise BuildError(f"{module} cannot be imported: {error}") from None


def _version(name: str, package: Any) -> str:
    return f"{name} {getattr(package, '__version__', '')}".strip()


def _over(
    array: Array, address: int, lacking: str = "", interface: str = "__cuda_array_interface__"
) -> SimpleNamespace:
    """An array for whatever reads version 3 of an array interface, NumPy's or CUDA's; `CaseError`
    if the package is `lacking` a type that these have no code for."""
    import numpy as np

    if lacking and array.storage in FOREIGN:
        raise CaseError(
            f"matbench cannot pass {array.storage} to {lacking}; a function of PyTorch can"
        )
    dtype = np.dtype(_BITS.get(array.storage, array.storage))
    strides = tuple(step * dtype.itemsize for step in array.steps)
    told = {"shape": array.shape, "typestr": dtype.str, "strides": strides, "version": 3}
    return SimpleNamespace(**{interface: {**told, "data": (address, False)}})


def _require_own(is_own: bool, returned: Any, wanted: str, where: object = None) -> None:
    if not is_own:
        kind = "nothing" if returned is None else type(returned).__name__
        on = f" on {where}" if where else ""
        raise ResultError(f"returned {kind}{on} instead of {wanted}")


def _require(returned: Any, wanted: Array) -> None:
    kind, shape = str(returned.dtype).removeprefix("torch."), tuple(returned.shape)
    if (kind, shape) != (wanted.storage, wanted.shape):
        sides, asked = ("×".join(map(str, s)) for s in (shape, wanted.shape))
        raise ResultError(f"returned {kind}, {sides}, instead of {wanted.storage}, {asked}")
