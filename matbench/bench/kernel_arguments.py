"""Launches a kernel from the host: its arguments, and its matrices as they are in memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.backends.protocol import Argument, Array, Backend, Buffer, Handle, Program, TensorMap
from matbench.model import SCALE_OF, WORKSPACE, Box, Case, Kernel, MatrixLayout, Problem, Storage
from matbench.workloads import scaling

Float64 = npt.NDArray[np.float64]

OPERAND_OF = {scale: operand for operand, scale in SCALE_OF.items()}


class Matrix(NamedTuple):
    """A kernel's matrix as it is in memory; those of a batch are stored one after the other.

    `by_rows`: its lines are its rows.
    """

    storage: Storage
    place: MatrixLayout
    by_rows: bool
    batch: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """The lines of a batch, with the padding between them."""
        return self.batch, self.place.lines, self.place.pitch

    def turned(self, values: Float64) -> Float64:
        """The lines of a matrix, or the matrix of lines."""
        return values if self.by_rows else values.T


def matrix(kernel: Kernel, problem: Problem, name: str) -> Matrix:
    """A matrix of the problem as the kernel stores it; scales are stored as their matrix is."""
    rows, columns = _shape(kernel, problem, name)
    storage, placing = kernel.storage_of(name), kernel.placing
    if name in OPERAND_OF:
        placing, name = msgspec.structs.replace(placing, padding=0), OPERAND_OF[name]
    place = placing.place(name, rows, columns)
    by_rows = place.column_step == 1 and place.lines == rows  # lines of one element: both steps 1
    return Matrix(storage, place, by_rows, problem.batch)


def _shape(kernel: Kernel, problem: Problem, name: str) -> tuple[int, int]:
    """The rows and columns of op(A), op(B) or C, or of the scales of A or B."""
    if name not in OPERAND_OF:
        return workloads.workload_of(problem).shape(name, problem)
    assert kernel.scales is not None
    return scaling.shape(kernel.scales, OPERAND_OF[name], problem)


def arguments(case: Case, buffers: Mapping[str, Buffer]) -> list[Argument]:
    """The arguments of a case in their order; `buffers` are its matrices by name."""
    kernel, problem, is_raw = case.kernel, case.problem, case.kernel.kind.is_launched
    found: list[Argument] = []
    for given in case.arguments:
        if isinstance(given, Box):
            storage, place, _, batch = matrix(kernel, problem, given.matrix)
            shape: tuple[int, ...] = place.lines, place.width
            box: tuple[int, ...] = given.rows, given.columns
            if _is_batched(kernel, batch):
                shape, box = (batch, *shape), (1, *box)
            found.append(TensorMap(buffers[given.matrix], storage, shape, box))
        elif not isinstance(given, str):
            found.append(given)
        elif given not in buffers:
            found.append(Handle(given))
        else:
            buffer = buffers[given]
            found.append(buffer if is_raw else _array(kernel, problem, given, buffer))
    return found


def _is_batched(kernel: Kernel, batch: int) -> bool:
    """Whether a matrix has a dimension for the products of a batch, even if there is only one."""
    return kernel.batch != 1 or batch > 1


def _array(kernel: Kernel, problem: Problem, name: str, buffer: Buffer) -> Array:
    """A matrix as an array: as it is stored, so that a transposed B is N×K."""
    if name == WORKSPACE:
        return Array(buffer, "int32", (), ())  # of which only the address is used
    storage, place, _, batch = matrix(kernel, problem, name)
    shape = _shape(kernel, problem, name)
    steps = place.row_step, place.column_step
    if name != "C" and kernel.transpose["AB".index(OPERAND_OF.get(name, name))] == "T":
        shape, steps = shape[::-1], steps[::-1]
    if _is_batched(kernel, batch):
        return Array(buffer, storage, (batch, *shape), (place.lines * place.pitch, *steps))
    return Array(buffer, storage, shape, steps)


def launch(backend: Backend, program: Program, case: Case, buffers: Mapping[str, Buffer]) -> None:
    """Launch a case once, with its device variables as at first, and wait."""
    assert case.launch is not None
    program.restore()
    program.launch(case.launch, arguments(case, buffers))
    backend.synchronize()


class Memory(AbstractContextManager["Memory"]):
    """Buffers of a device that are released together."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._held: list[Buffer] = []

    def __exit__(self, *_: object) -> None:
        self.release()

    def allocate(self, nbytes: int, *, is_given: bool = False) -> Buffer:
        """A buffer of unknown contents, of whole words, perhaps for what kernels get."""
        self._held.append(self.backend.allocate(-(-nbytes // 4) * 4, is_given=is_given))
        return self._held[-1]

    def upload(self, array: npt.NDArray[Any], *, is_given: bool = False) -> Buffer:
        """A buffer with a copy of an array, perhaps for what kernels get."""
        buffer = self.allocate(array.nbytes, is_given=is_given)
        self.backend.write(buffer, array)
        return buffer

    def download(self, buffer: Buffer, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The contents of a buffer, in the shape and type of an array."""
        array = np.empty_like(like)
        self.backend.read(buffer, array)
        return array

    def free(self, buffer: Buffer) -> None:
        """Release one buffer before the others."""
        self._held.remove(buffer)
        self.backend.release(buffer)

    def release(self) -> None:
        while self._held:
            self.backend.release(self._held.pop())
