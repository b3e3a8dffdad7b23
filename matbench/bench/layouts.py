"""Converts matrices to a kernel's layout: column-major, transposed, padded, batched or 16-bit.

Checks and comparisons are row-major. For a kernel with another layout, inputs are copied to its
own matrices before a launch, and results copied back after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matbench.backends import Argument, Buffer
from matbench.bench.judge import UNWRITTEN, UNWRITTEN_NARROW, Comparator, Guarded
from matbench.errors import CaseError
from matbench.model import WORD_BYTES, Kernel, Launch, MatrixLayout, Problem, Storage

_THREADS = 256


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

    def place(self, judge: Comparator, item: int) -> None:
        """Copy op(A), op(B) and C to item `item` of the kernel's own matrices."""
        for index in range(3):
            self._copy(judge, item, index, "place")

    def place_scales(self, judge: Comparator, given: Sequence[Buffer]) -> None:
        """Copy scales to where the kernel takes them."""
        for source, target, place in zip(given, self.scales, self.scale_places, strict=True):
            _run(judge, "place", source, target.data, place, 0)

    def take(self, judge: Comparator, item: int) -> None:
        """Copy the kernel's own C back to C."""
        self._copy(judge, item, 2, "take")

    def take_inputs(self, judge: Comparator, item: int) -> None:
        """Copy the kernel's own inputs back, to check whether they changed."""
        for index in range(2):
            self._copy(judge, item, index, "take")

    def _copy(self, judge: Comparator, item: int, index: int, entry: str) -> None:
        if self.own is not None:
            matrix = (*self.inputs, self.C)[index]
            _copy(judge, matrix, self.own, item, index, entry)


def _copy(judge: Comparator, matrix: Guarded, own: Own, item: int, index: int, entry: str) -> None:
    target, place = own.matrices[index], own.places[index]
    params: dict[str, int] = {}
    if index == 2 and target.word_bytes == 2:
        params = {own.result.upper(): 1, "WORD_BYTES": 2}
        entry = f"{entry}_narrow"
        if judge.backend.info.backend != "cuda":
            raise CaseError(f"{own.result} results need CUDA")
    elif target.word_bytes != 4:
        params = {"WORD_BYTES": target.word_bytes}
    _run(judge, entry, matrix.data, target.data, place, item * place.lines * place.pitch, params)


def _run(
    judge: Comparator,
    entry: str,
    matrix: Buffer,
    own: Buffer,
    place: MatrixLayout,
    start: int,
    params: Mapping[str, int] | None = None,
) -> None:
    """Launch a kernel of `places.cu` on a row-major matrix and one that lies like this."""
    by_rows = place.column_step == 1
    rows, columns = (place.lines, place.width) if by_rows else (place.width, place.lines)
    arguments: dict[str, Argument] = {
        "matrix": matrix,
        "rows": rows,
        "columns": columns,
        "own": own,
        "start": start,
        "row_step": place.row_step,
        "column_step": place.column_step,
        "unwritten": UNWRITTEN,
        "narrow": UNWRITTEN_NARROW,
    }
    count = rows * columns
    blocks = min(8 * judge.backend.info.limits["multiprocessors"], -(-count // _THREADS))
    launch = Launch(grid=(blocks, 1, 1), block=(_THREADS, 1, 1))
    judge.run(entry, "places.cu", launch, arguments, params or {})
