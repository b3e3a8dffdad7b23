"""cuBLASLt on the host: bindings like nvmath-python's that compute with NumPy.

Descriptors are kept by handle. Matrices are column-major, as in the library, and at addresses of
this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from matbench.backends.cuda.cublaslt import CublasLtProduct
from matbench.model import Kernel

HANDLE, STREAM, WORKSPACE = 11, 22, 33
#: The bytes of an algorithm in the list of those suggested.
_ENTRY_BYTES = 96


class Kind(enum.Enum):
    CUDA_R_32F = "f4"
    CUDA_R_64F = "f8"
    CUDA_R_32I = "i4"
    CUDA_R_8I = "i1"
    CUDA_R_8F_E4M3 = "e4m3"
    CUDA_R_16BF = "bfloat16"
    CUDA_R_16F = "f2"


Attribute = enum.Enum(
    "Attribute",
    "TRANSA FAST_ACCUM A_SCALE_MODE B_SCALE_MODE A_SCALE_POINTER B_SCALE_POINTER "
    "BATCH_COUNT STRIDED_BATCH_OFFSET MAX_WORKSPACE_BYTES REDUCTION_SCHEME_MASK",
)


class cuBLASLtError(Exception):  # noqa: N801
    pass


def at(address: int, kind: str, *shape: int) -> npt.NDArray[Any]:
    """An array over the memory at an address."""
    dtype = np.dtype({"e4m3": "u1", "bfloat16": "u2"}.get(kind, kind))
    count = int(np.prod(shape))
    memory: Any = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    array: npt.NDArray[Any] = np.frombuffer(memory, dtype).reshape(shape)
    return array


def from_e4m3(stored: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """The numbers of these bits, none of which is NaN."""
    sign = np.where(stored >> 7, -1.0, 1.0)
    exponent, fraction = (stored >> 3 & 15).astype(int), (stored & 7) / 8.0
    subnormal = np.ldexp(fraction, -6)
    return np.asarray(sign * np.where(exponent, np.ldexp(1 + fraction, exponent - 7), subnormal))


class Results:
    """The list of suggested algorithms, each with its number."""

    def __init__(self, count: int, unusable: tuple[int, ...]) -> None:
        self.memory = np.zeros((count, _ENTRY_BYTES // 8), np.int64)
        self.memory[:, 0] = np.arange(count)
        self.ptr = self.memory.ctypes.data
        self.states = [15 if number in unusable else 0 for number in range(count)]

    def __getitem__(self, number: int) -> SimpleNamespace:
        place = self.ptr + number * _ENTRY_BYTES
        return SimpleNamespace(ptr=place, state=self.states[number], keeps=self)


class HostLt:
    """The bindings, and what they were asked for. `taken_ns` has the time of each algorithm."""

    cuBLASLtError = cuBLASLtError
    MatmulDescAttribute = MatrixLayoutAttribute = MatmulPreferenceAttribute = Attribute
    MatmulMatrixScale = enum.IntEnum("MatmulMatrixScale", {"OUTER_VEC_32F": 3})
    ReductionScheme = enum.IntEnum("ReductionScheme", {"COMPUTE_TYPE": 2, "MASK": 7})

    def __init__(self, taken_ns: list[float], unusable: tuple[int, ...] = ()) -> None:
        self.taken_ns = taken_ns
        self.made: dict[int, dict[Any, Any]] = {}
        self.launched: list[int] = []
        self.asked: list[dict[Any, Any]] = []
        self.MatmulHeuristicResult = lambda count: Results(count, unusable)

    def _create(self, **about: Any) -> int:
        self.made[handle := len(self.made) + 100] = about
        return handle

    def _destroy(self, handle: int) -> None:
        self.made[handle] = {"destroyed": True}

    matmul_desc_destroy = matrix_layout_destroy = matmul_preference_destroy = _destroy

    def matmul_desc_create(self, compute: Any, sums: Kind) -> int:
        return self._create(compute=compute, sums=sums)

    def matrix_layout_create(self, kind: Kind, rows: int, columns: int, leading: int) -> int:
        return self._create(kind=kind, rows=rows, columns=columns, leading=leading)

    def matmul_preference_create(self) -> int:
        return self._create()

    @staticmethod
    def _dtype(_: Attribute) -> type[np.int64]:
        return np.int64

    get_matmul_desc_attribute_dtype = get_matrix_layout_attribute_dtype = _dtype
    get_matmul_preference_attribute_dtype = _dtype

    def _set(self, handle: int, which: Attribute, address: int, nbytes: int) -> None:
        assert nbytes == 8
        self.made[handle][which] = int(at(address, "i8", 1)[0])

    matmul_desc_set_attribute = matrix_layout_set_attribute = _set
    matmul_preference_set_attribute = _set

    def matmul_algo_get_heuristic(self, *asked: int) -> None:
        handle, description, *_, preference, wanted, _, count = asked
        assert handle == HANDLE
        self.asked.append({"wanted": wanted, **self.made[description], **self.made[preference]})
        at(count, "i4", 1)[0] = min(wanted, len(self.taken_ns))

    def matmul(self, *asked: int) -> None:
        handle, description, at_alpha, A, of_A, B, of_B, at_beta, C, of_C, D, of_D, *rest = asked
        algorithm, workspace, nbytes, stream = rest
        assert (handle, workspace, stream) == (HANDLE, WORKSPACE, STREAM)
        assert (nbytes, D, of_D) == (32 * 1024**2, C, of_C)
        self.launched.append(int(at(algorithm, "i8", 1)[0]))
        about = self.made[description]
        alpha, beta = (at(place, about["sums"].value, 1)[0] for place in (at_alpha, at_beta))
        turned = about.get(Attribute.TRANSA) == 1
        for number in range(self.made[of_C].get(Attribute.BATCH_COUNT, 1)):
            first, second = self._matrix(A, of_A, number), self._matrix(B, of_B, number)
            product = self._scaled(about, first.T if turned else first, second)
            old = self._matrix(C, of_C, number) if beta else 0.0
            self._write(C, of_C, number, alpha * product + beta * old)

    def _scaled(self, about: dict[Any, Any], first: Any, second: Any) -> Any:
        by_rows = Attribute.A_SCALE_MODE in about
        rows, columns = (len(first), second.shape[1]) if by_rows else (1, 1)
        if place := about.get(Attribute.A_SCALE_POINTER):
            first = first * at(place, "f4", rows)[:, None]
        if place := about.get(Attribute.B_SCALE_POINTER):
            second = second * at(place, "f4", columns)
        return first @ second

    def _stored(self, address: int, layout: int, number: int) -> Any:
        about = self.made[layout]
        rows, columns, kind = about["rows"], about["columns"], about["kind"].value
        assert about["leading"] == rows
        size = {"e4m3": 1, "bfloat16": 2}.get(kind) or np.dtype(kind).itemsize
        offset = number * about.get(Attribute.STRIDED_BATCH_OFFSET, 0) * size
        return at(address + offset, kind, columns, rows).T

    def _matrix(self, address: int, layout: int, number: int) -> Any:
        stored = self._stored(address, layout, number)
        is_e4m3 = self.made[layout]["kind"] is Kind.CUDA_R_8F_E4M3
        return from_e4m3(stored) if is_e4m3 else stored.astype(float)

    def _write(self, address: int, layout: int, number: int, values: Any) -> None:
        stored = self._stored(address, layout, number)
        if self.made[layout]["kind"] is Kind.CUDA_R_16BF:
            values = values.astype(np.float32).view(np.uint32) >> 16
        stored[...] = values


class HostBuffer:
    """Memory of this process."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = np.ascontiguousarray(array)
        self.handle, self.nbytes = self.array.ctypes.data, self.array.nbytes


class HostBackend:
    """What a product needs of a backend; its clock reads the times of the algorithms."""

    def __init__(self, lt: HostLt) -> None:
        self.lt = lt
        self.held: list[HostBuffer] = []

    def allocate(self, nbytes: int) -> HostBuffer:
        self.held.append(HostBuffer(np.zeros(nbytes, np.uint8)))
        return self.held[-1]

    def release(self, buffer: HostBuffer) -> None:
        self.held.remove(buffer)

    def copy(self, target: HostBuffer, source: HostBuffer) -> None:
        ctypes.memmove(target.handle, source.handle, source.nbytes)

    def synchronize(self) -> None:
        pass

    def cold_ns(self, enqueue: Callable[[], None]) -> float:
        enqueue()
        return self.lt.taken_ns[self.lt.launched[-1]]


def product(
    kernel: Kernel, lt: HostLt, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, contextlib.ExitStack]:
    """The program of a baseline with these bindings, and what its library holds until it closes."""
    bindings = ModuleType("nvmath.bindings")
    bindings.cublasLt = lt  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nvmath", ModuleType("nvmath"))
    monkeypatch.setitem(sys.modules, "nvmath.bindings", bindings)
    names = "COMPUTE_32F COMPUTE_32F_FAST_TF32 COMPUTE_64F COMPUTE_32I"
    library: Any = SimpleNamespace(
        cublas=SimpleNamespace(
            ComputeType=enum.Enum("ComputeType", names),
            Operation=enum.IntEnum("Operation", {"N": 0, "T": 1}),
        ),
        types=Kind,
        held=contextlib.ExitStack(),
        handle=HANDLE,
        stream=STREAM,
        workspace=WORKSPACE,
        version="cuBLAS 13.0.0",
    )
    backend: Any = HostBackend(lt)
    return CublasLtProduct(library, kernel, backend, backend.cold_ns), library.held
