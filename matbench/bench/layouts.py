"""Converts matrices to a kernel's layout: column-major, transposed, padded, batched or 16-bit.

Checks and comparisons are row-major. For a kernel with another layout, inputs are copied to its
own matrices before a launch, and results copied back after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matbench.backends import Buffer
from matbench.bench.arena import Arena, Guarded
from matbench.bench.device_kernels import UNWRITTEN, UNWRITTEN_NARROW, DeviceKernels
from matbench.errors import CaseError
from matbench.model import WORD_BYTES, Kernel, MatrixLayout, Problem, Storage


class Own(NamedTuple):
    """A kernel's own matrices A, B and C, and their layouts; those of a batch are stored one after
    the other. `result` is the type of C."""

    matrices: tuple[Guarded, ...]
    places: tuple[MatrixLayout, ...]
    batch: int
    result: Storage


def needed(kernel: Kernel, problem: Problem) -> bool:
    """Whether a kernel's layout or type of C differs from matbench's."""
    if problem.workload != "matmul":
        return False
    plain = kernel.placing == type(kernel.placing)()
    return not plain or problem.batch > 1 or WORD_BYTES[kernel.contract.result] == 2


class Buffers(NamedTuple):
    """The buffers of one launch: guarded inputs and C, in matbench's layout; the kernel's own
    matrices if its layout is another; the kernel's workspace if it takes one; the scales of A and
    B with their layouts, if they have any.
    """

    inputs: tuple[Guarded, ...]
    C: Guarded
    own: Own | None = None
    workspace: Guarded | None = None
    scales: tuple[Guarded, ...] = ()
    scale_places: tuple[MatrixLayout, ...] = ()

    @property
    def given(self) -> tuple[Guarded, ...]:
        """The matrices that the kernel receives."""
        return self.own.matrices if self.own is not None else (*self.inputs, self.C)

    @property
    def passed(self) -> tuple[Guarded, ...]:
        """Everything that the kernel receives and may write to."""
        workspace = () if self.workspace is None else (self.workspace,)
        return *self.given, *workspace, *self.scales

    def moved(self, passed: Sequence[Guarded]) -> Buffers:
        """The same buffers with other matrices in place of `passed`."""
        given, scales = tuple(passed[: len(self.given)]), tuple(passed[-len(self.scales) :])
        workspace = passed[len(given)] if self.workspace is not None else None
        moved = self._replace(workspace=workspace, scales=scales if self.scales else ())
        if self.own is not None:
            return moved._replace(own=self.own._replace(matrices=given))
        return moved._replace(inputs=given[:-1], C=given[-1])

    @property
    def results(self) -> tuple[Guarded, ...]:
        """What the kernel may write to: its C and its workspace."""
        return self.passed[len(self.inputs) : len(self.passed) - len(self.scales)]

    @property
    def items(self) -> range:
        """The products of a batch."""
        return range(self.own.batch if self.own is not None else 1)

    @property
    def arenas(self) -> list[Arena]:
        """The allocations of all that the kernel receives."""
        return list({id(matrix.arena): matrix.arena for matrix in self.passed}.values())

    def place(self, kernels: DeviceKernels, item: int) -> None:
        """Copy op(A), op(B) and C to item `item` of the kernel's own matrices."""
        for index in range(3):
            self._copy(kernels, item, index, "place")

    def place_scales(self, kernels: DeviceKernels, given: Sequence[Buffer]) -> None:
        """Copy scales to where the kernel takes them."""
        for source, target, place in zip(given, self.scales, self.scale_places, strict=True):
            _start(kernels, "place", source, target.data, place)

    def take(self, kernels: DeviceKernels, item: int) -> None:
        """Copy the kernel's own C back to C."""
        self._copy(kernels, item, 2, "take")

    def take_inputs(self, kernels: DeviceKernels, item: int) -> None:
        """Copy the kernel's own inputs back, to check whether they changed."""
        for index in range(2):
            self._copy(kernels, item, index, "take")

    def _copy(self, kernels: DeviceKernels, item: int, index: int, entry: str) -> None:
        if self.own is None:
            return
        matrix = (*self.inputs, self.C)[index]
        target, place = self.own.matrices[index], self.own.places[index]
        params: dict[str, int] = {}
        if index == 2 and target.word_bytes == 2:
            params = {self.own.result.upper(): 1, "WORD_BYTES": 2}
            entry = f"{entry}_narrow"
            if kernels.backend.info.backend != "cuda":
                raise CaseError(f"{self.own.result} results need CUDA")
        elif target.word_bytes != 4:
            params = {"WORD_BYTES": target.word_bytes}
        first = item * place.lines * place.pitch
        _start(kernels, entry, matrix.data, target.data, place, first, params)


def _start(
    kernels: DeviceKernels,
    entry: str,
    matrix: Buffer,
    own: Buffer,
    place: MatrixLayout,
    first: int = 0,
    params: dict[str, int] = {},  # noqa: B006
) -> None:
    """Launch a kernel of `places.cu` on a row-major matrix and one that lies like this."""
    by_rows = place.column_step == 1
    rows, columns = (place.lines, place.width) if by_rows else (place.width, place.lines)
    where = matrix, rows, columns, own, first, place.row_step, place.column_step
    narrow = (UNWRITTEN, UNWRITTEN_NARROW) if entry.endswith("_narrow") else ()
    kernels.start("places.cu", entry, *where, *narrow, size=rows * columns, params=params)
