"""Multiplies chosen matrices with a kernel: one launch, and C as float64.

Matrices are given and returned in the usual sense, op(A) times op(B); the kernel's own layout and
types are hidden. If the kernel does not accept a size, zeros are added up to one that it does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.analysis.accuracy import nearest
from matbench.backends import Backend, Buffer, Program
from matbench.errors import CaseError, UsageError
from matbench.kernelfile import products, sweep
from matbench.measure import arguments
from matbench.measure.judge import UNWORKED
from matbench.model import WORKSPACE, Case, DeviceInfo, Kernel, Place, Problem, Storage

Float64 = npt.NDArray[np.float64]

_TYPES: dict[Storage, str] = {
    "float32": "f4", "float64": "f8", "float16": "f2", "bfloat16": "u2", "int32": "i4"
}  # fmt: skip


def problem_of(kernel: Kernel, M: int, N: int, K: int) -> Problem:
    """C = A·B as this kernel can compute it; `UsageError` if it cannot.

    Any beta will do, because C is zero before a launch.
    """
    if kernel.workload != workloads.DEFAULT:
        raise UsageError(
            f"{kernel.name} computes the {workloads.get(kernel.workload).title.split(' ·')[0]}; "
            "only matrix products can be graded"
        )
    found = Problem(M, N, K)
    for name in sweep.SCALINGS:
        known = products.numbers(getattr(kernel, name))
        wanted = getattr(found, name)
        passed = kernel.library is not None or name in kernel.args
        if wanted not in known and not passed:
            if name == "alpha":
                raise UsageError(f"{kernel.name} needs alpha = {known[0]:g}; it must be 1 to grade")
            found = msgspec.structs.replace(found, **{name: min(known)})
    return found


def encoded(values: Float64, storage: Storage) -> npt.NDArray[Any]:
    """Numbers as they are stored; those between two are rounded to nearest."""
    if storage == "bfloat16":
        bits = nearest(values, "bfloat16").astype(np.float32).view(np.uint32)
        return (bits >> 16).astype(np.uint16)
    with np.errstate(over="ignore"):
        return values.astype(_TYPES[storage])


def decoded(stored: npt.NDArray[Any], storage: Storage) -> Float64:
    """Stored numbers as float64."""
    if storage == "bfloat16":
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    found: Float64 = stored.astype(np.float64)
    return found


def _is_by_rows(place: Place, rows: int) -> bool:
    """Whether the lines of a matrix are its rows; both steps are 1 if lines have one element."""
    return place.column_step == 1 and place.lines == rows


class Multiplier:
    """One kernel with one set of parameters on an open device; `multiply` launches it.

    `build` gives the program for a case.
    """

    def __init__(
        self,
        backend: Backend,
        build: Callable[[Case], Program],
        kernel: Kernel,
        params: dict[str, int],
    ) -> None:
        self.backend = backend
        self.info: DeviceInfo = backend.info
        self.build = build
        self.kernel = kernel
        self.params = params
        reading = kernel.reading
        self.storage, self.result = reading.storage, reading.result
        self.sums_in, self.exponents = reading.sums_in, reading.exponents
        self._buffers: dict[tuple[str, int], Buffer] = {}

    def with_params(self, params: dict[str, int]) -> Multiplier:
        """The same kernel with other parameters."""
        return Multiplier(self.backend, self.build, self.kernel, params)

    def case(self, M: int, N: int, K: int) -> Case:
        """The case of this size, or of the next that the kernel accepts; `CaseError` if none."""
        size = sweep.allowed(self.kernel, (M, N, K), self.params, self.info) or (M, N, K)
        case = sweep.case(self.kernel, problem_of(self.kernel, *size), self.params, self.info)
        if case.skip is not None:
            raise CaseError(case.skip)
        return case

    def stored(self, values: Float64) -> Float64:
        """Numbers that A and B can hold: each rounded to nearest."""
        return decoded(encoded(values, self.storage), self.storage)

    def multiply(self, A: Float64, B: Float64) -> Float64:
        """C = A·B by one launch; `CaseError` if it fails."""
        (M, K), N = A.shape, B.shape[1]
        case = self.case(M, N, K)
        problem, kernel = case.problem, case.kernel
        assert case.launch is not None
        buffers: dict[str, Buffer] = {}
        for name, values in (("A", A), ("B", B), ("C", None)):
            rows, columns = workloads.of(problem).shape(name, problem)
            storage = self.result if name == "C" else self.storage
            place = kernel.placing.place(name, rows, columns)
            memory = np.zeros((problem.batch, place.lines, place.pitch), _TYPES[storage])
            if values is not None:
                ours = encoded(values, storage)
                ours = ours if _is_by_rows(place, rows) else ours.T
                memory[:, : ours.shape[0], : ours.shape[1]] = ours
            buffers[name] = self._buffer(name, memory.nbytes)
            self.backend.write(buffers[name], memory)
        if WORKSPACE in kernel.args:
            scratch = np.full(max(1, -(-case.launch.workspace_bytes // 4)), UNWORKED, np.uint32)
            buffers[WORKSPACE] = self._buffer(WORKSPACE, scratch.nbytes)
            self.backend.write(buffers[WORKSPACE], scratch)
        program = self.build(case)
        program.restore()
        program.launch(case.launch, arguments.of(case, buffers, self.info.limits))
        self.backend.synchronize()
        self.backend.read(buffers["C"], memory)
        found = memory[0, :, : place.width]
        found = found if _is_by_rows(place, rows) else found.T
        return decoded(found[:M, :N], self.result)

    def _buffer(self, name: str, nbytes: int) -> Buffer:
        key = name, nbytes
        if key not in self._buffers:
            for old in [other for other in self._buffers if other[0] == name]:
                self.backend.release(self._buffers.pop(old))
            self._buffers[key] = self.backend.allocate(nbytes)
        return self._buffers[key]

    def release(self) -> None:
        """Give the memory back."""
        while self._buffers:
            self.backend.release(self._buffers.popitem()[1])


class LibraryMultiplier(Multiplier):
    """NumPy's product on the host."""

    def __init__(self, device: DeviceInfo, kernel: Kernel) -> None:
        self.info = device
        self.kernel = kernel
        self.params = {}
        reading = kernel.reading
        self.storage, self.result = reading.storage, reading.result
        self.sums_in, self.exponents = reading.sums_in, reading.exponents

    def multiply(self, A: Float64, B: Float64) -> Float64:
        with np.errstate(all="ignore"):
            C = encoded(A, self.storage) @ encoded(B, self.storage)
        return decoded(C, self.result)

    def release(self) -> None:
        pass
