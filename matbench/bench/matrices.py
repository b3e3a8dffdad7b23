"""Matrices in device memory, between guards, and what notices that memory has changed.

All memory of a launch but its results is hashed with a key before and after it. A kernel that
writes out of bounds, or to its inputs, changes the hash; where, is found on the host.

Launches back to back have their matrices in random order at random places: a kernel could otherwise
compute all products of a batch in its first launch. It cannot know which of the sets of buffers are
launched, because there are decoys.

Checks and comparisons are row-major. For a kernel with another layout (column-major, transposed,
padded, batched or 16-bit), inputs are copied to its own matrices before a launch, and results back.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from matbench.backends.protocol import Buffer
from matbench.bench.device_kernels import (
    GUARDS,
    OUTSIDE_WORKSPACE,
    UNWRITTEN,
    UNWRITTEN_NARROW,
    WORD_PARAMS,
    DeviceKernels,
)
from matbench.bench.kernel_arguments import Memory
from matbench.errors import CaseError, OutOfMemoryError
from matbench.model import WORKSPACE, MatrixLayout, Storage

#: Guards have so many rows that far out-of-bounds writes are noticed, and reach no other buffer.
GUARD_ROWS = 256
_LEAST_GUARD_WORDS = 2**16
_LARGEST_GUARD_WORDS = 2**22
_ALIGNMENT_BYTES = 4096  # views start at multiples of it
#: Matrices of a batch start at multiples of it, as large allocations do: caches look up the lower
#: bits of an address, and matrices at other places would collide less.
PAGE_BYTES = 2**18


@dataclass
class Extent:
    """A matrix that is to be allocated: its lines of `width` words, of 1, 2, 4 or 8 bytes, begin
    `pitch` words apart. `guard` is what the words around it are: by default as for inputs, or C."""

    name: str
    lines: int
    pitch: int
    width: int
    word_bytes: int
    guard: int = 0

    def __post_init__(self) -> None:
        of_C, of_inputs = GUARDS[self.word_bytes]
        self.guard = self.guard or (of_C if self.name == "C" else of_inputs)
        self.words = self.lines * self.pitch
        self.nbytes = self.word_bytes * max(self.words, 1)  # an empty workspace has an address, too
        #: A word of the guard; one of 8 bytes is the value twice.
        self.filled = self.guard << 32 | self.guard if self.word_bytes == 8 else self.guard


class Guarded(NamedTuple):
    """A matrix in an arena, from byte `start` on; `data` is what a kernel receives."""

    extent: Extent
    arena: Arena
    start: int
    data: Buffer

    def contents(self) -> npt.NDArray[Any]:
        """Its words, on the host, in lines."""
        shape = self.extent.lines, self.extent.pitch
        words = np.empty(shape, f"u{self.extent.word_bytes}")
        self.arena.kernels.backend.read(self.data, words)
        return words


class Guard(NamedTuple):
    """The guard before or after a matrix: bytes from `start` to `end`."""

    extent: Extent
    is_before: bool
    start: int
    end: int


class Arena:
    """An allocation for matrices."""

    def __init__(self, memory: Memory, kernels: DeviceKernels, nbytes: int) -> None:
        self.memory = memory
        self.kernels = kernels
        self.buffer = memory.allocate(nbytes, is_given=True)
        self.matrices: list[Guarded] = []
        self.guards: list[Guard] = []
        self._left_out: Buffer | None = None  # of each page, in bytes

    def release(self) -> None:
        for buffer in filter(None, (self.buffer, self._left_out)):
            self.memory.free(buffer)

    def put(self, extent: Extent, start: int) -> Guarded:
        """A matrix at this place, in bytes; words between its lines are guards."""
        data = self.buffer.view(start, extent.nbytes)
        self.matrices.append(Guarded(extent, self, start, data))
        if extent.pitch > extent.width:
            self.kernels.fill(data, 0, extent.words, extent.guard, extent.word_bytes)
        return self.matrices[-1]

    def hash(
        self, key: int, without: Sequence[Guarded], *, part: int, more: bool, also: Buffer | None
    ) -> None:
        """Start to hash all words but those of these matrices, which nothing on the device tells
        afterwards, and `also` another buffer's. Several matrices start at pages."""
        start, count = self.kernels.start, self.buffer.nbytes // 4
        result = key, self.kernels.partial, part
        other, other_count = (self.buffer, 0) if also is None else (also, also.nbytes // 4)
        rest = other, other_count, *result, int(more)
        if len(without) < 2:
            ends = [(m.start, m.start + m.extent.nbytes) for m in without] or [(0, 0)]
            start("memory.cu", "hash_words", self.buffer, count, *ends[0], *rest)
        else:
            pages = np.zeros(-(-self.buffer.nbytes // PAGE_BYTES), np.uint32)
            for matrix in without:
                first, nbytes = matrix.start // PAGE_BYTES, matrix.extent.nbytes
                whole = nbytes // PAGE_BYTES
                pages[first : first + whole] = PAGE_BYTES
                pages[first + whole :][:1] += nbytes % PAGE_BYTES
            self._left_out = self._left_out or self.memory.allocate(pages.nbytes)
            write, params = self.kernels.backend.write, {"PAGE_BYTES": PAGE_BYTES}
            write(self._left_out, pages)
            where = self.buffer, count, self._left_out
            start("memory.cu", "hash_pages", *where, *rest, params=params)
            write(self._left_out, np.zeros_like(pages))
        for extent, _, _, data in without:
            if extent.pitch > extent.width:
                double = 2 if extent.word_bytes == 8 else 1
                lines = [double * n for n in (extent.words, extent.width, extent.pitch)]
                of_words = WORD_PARAMS[extent.word_bytes]
                start("memory.cu", "hash_between", data, *lines, *result, 1, params=of_words)

    def damage(self) -> str | None:
        """Which guard was overwritten, and how far out of bounds; all are restored."""
        found = []
        content = np.empty(self.buffer.nbytes, np.uint8)
        self.kernels.backend.read(self.buffer, content)
        for extent, _, start, _ in self.matrices:
            lines = content[start : start + extent.nbytes].view(f"u{extent.word_bytes}")
            between = lines[: extent.words].reshape(extent.lines, -1)[:, extent.width :]
            if changed := np.count_nonzero(between != extent.filled):
                s = "s" if changed > 1 else ""
                found.append(f"wrote between the rows of {extent.name}: {changed:,} element{s}")
                between[:] = extent.filled
        for extent, is_before, start, end in self.guards:
            words = content[start:end].view(f"u{extent.word_bytes}")
            places = np.flatnonzero(words != extent.filled)
            if places.size:
                s, side, edge = ("s" if places.size > 1 else ""), "after", "end"
                distance = int(places[0]) + 1
                if is_before:
                    side, edge, distance = "before", "start", words.size - int(places[0])
                found.append(
                    f"wrote outside {extent.name}: {places.size:,} element{s}, starting "
                    f"{distance:,} {side} its {edge}"
                )
                words[:] = extent.filled
        if found:
            self.kernels.backend.write(self.buffer, content)
        return found[0] if found else None


def allocated(
    memory: Memory, kernels: DeviceKernels, extents: Sequence[Extent], guard_rows: int
) -> tuple[Guarded, ...]:
    """Matrices in one allocation or, if that is more than the device allows, in one each; between
    guards of at least so many rows, or without any."""
    starts, at = [], 0
    for extent in extents:
        guard = 0
        if guard_rows:
            words = max(guard_rows * extent.pitch, _LEAST_GUARD_WORDS)
            guard = aligned(extent.word_bytes * min(words, _LARGEST_GUARD_WORDS))
        starts.append((at, at + guard))
        at = aligned(at + guard + extent.nbytes) + guard
    try:
        arena = Arena(memory, kernels, at)
    except OutOfMemoryError:
        if len(extents) == 1:
            raise
        made: list[Guarded] = []
        with ExitStack() as unwind:
            for extent in extents:
                made += allocated(memory, kernels, [extent], guard_rows)
                unwind.callback(made[-1].arena.release)
            unwind.pop_all()
        return tuple(made)
    ends = [*(before for before, _ in starts[1:]), at]
    for extent, (before, start), after in zip(extents, starts, ends, strict=True):
        size, end = extent.word_bytes, start + extent.nbytes
        kernels.fill(arena.buffer, before // size, (after - before) // size, extent.guard, size)
        arena.put(extent, start)
        if guard_rows:
            arena.guards += [Guard(extent, True, before, start), Guard(extent, False, end, after)]
    return tuple(arena.matrices)


def aligned(nbytes: int) -> int:
    """At least so many bytes, after which a view can begin."""
    return -(-nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


class BatchArena(Arena):
    """Memory for at most so many sets of matrices, laid out anew for each batch of launches."""

    def __init__(
        self, memory: Memory, kernels: DeviceKernels, extents: Sequence[Extent], most: int
    ) -> None:
        self.extents, self.most = extents, most
        self._pages = [-(-extent.nbytes // PAGE_BYTES) for extent in extents]
        # A workspace is one line.
        gaps = (GUARD_ROWS * (e.lines > 1) * e.pitch * e.word_bytes for e in extents)
        self._gaps = [max(1, nbytes // PAGE_BYTES) for nbytes in gaps]
        self._pages_of_set = sum(self._pages) + 2 * sum(self._gaps)
        super().__init__(memory, kernels, most * self._pages_of_set * PAGE_BYTES)

    def lay_out(self, count: int, random: Random) -> list[list[Guarded]]:
        """Sets whose matrices are at new places, in random order."""
        # Between matrices, too, both halves of each word are NaN.
        self.kernels.fill(self.buffer, 0, self.buffer.nbytes // 4, OUTSIDE_WORKSPACE)
        pages, gaps = self._pages * count, self._gaps * count
        places = iter(drawn_places(pages, gaps, count * self._pages_of_set, random))
        self.matrices.clear()
        return [
            [self.put(extent, next(places) * PAGE_BYTES) for extent in self.extents]
            for _ in range(count)
        ]


def drawn_places(
    pages: Sequence[int], gaps: Sequence[int], total: int, random: Random
) -> list[int]:
    """The first page of each of some pieces in random order within `total` pages.

    Before each is at least its gap; after the last, at least that of the first.
    """
    order = random.sample(range(len(pages)), len(pages))
    spare = total - sum(pages) - sum(gaps) - gaps[order[0]]
    before = sorted(random.randint(0, spare) for _ in order)
    places, used = [0] * len(pages), 0
    for piece, extra in zip(order, before, strict=True):
        used += gaps[piece]
        places[piece] = used + extra
        used += pages[piece]
    return places


class Own(NamedTuple):
    """The layouts (`places`) of a kernel's own A, B and C, if they are not matbench's, and the
    `plain` ones that matbench fills and checks: inputs are copied from these, C to them. Products
    of a batch are stored one after the other. `result` is the type of C."""

    plain: tuple[Guarded, ...]
    places: tuple[MatrixLayout, ...]
    batch: int
    result: Storage


@dataclass(eq=False)
class Buffers:
    """The buffers of one launch: the guarded inputs and C that the kernel is `given`; their layout
    if it is its `own`; its workspace if it takes one; the scales of A and B with their layouts, if
    they have any.
    """

    given: tuple[Guarded, ...]
    own: Own | None = None
    workspace: Guarded | None = None
    scales: tuple[Guarded, ...] = ()
    scale_places: tuple[MatrixLayout, ...] = ()

    def __post_init__(self) -> None:
        own, workspace = self.own, () if self.workspace is None else (self.workspace,)
        #: Inputs and C in matbench's layout.
        *self.inputs, self.C = self.given if own is None else own.plain
        #: What the kernel may write to: its C and its workspace.
        self.results: tuple[Guarded, ...] = (self.given[-1], *workspace)
        #: Everything that it receives and could write to, and the allocations of that.
        self.passed: tuple[Guarded, ...] = (*self.given, *workspace, *self.scales)
        #: The memory of each, by the name of the kernel's argument.
        self.named = {matrix.extent.name: matrix.data for matrix in (*self.given, *self.scales)}
        if self.workspace is not None:
            self.named[WORKSPACE] = self.workspace.data
        self.arenas = list({id(matrix.arena): matrix.arena for matrix in self.passed}.values())
        #: The products of a batch.
        self.items = range(1 if own is None else own.batch)

    def moved(self, passed: Sequence[Guarded]) -> Buffers:
        """The same buffers with other matrices in place of `passed`."""
        count, first_scale = len(self.given), len(passed) - len(self.scales)
        given, scales = tuple(passed[:count]), tuple(passed[first_scale:])
        workspace = passed[count] if self.workspace is not None else None
        return replace(self, given=given, workspace=workspace, scales=scales)

    def copy(
        self, kernels: DeviceKernels, item: int, entry: Literal["place", "take"], index: int = 2
    ) -> None:
        """Copy op(A), op(B) or C, by its index, to item `item` of the kernel's own matrices, or
        back."""
        if self.own is None:
            return
        matrix, target = self.own.plain[index], self.given[index]
        place = self.own.places[index]
        params = {"WORD_BYTES": target.extent.word_bytes}
        if index == 2 and target.extent.word_bytes == 2:
            params[self.own.result.upper()] = 1
            if kernels.backend.info.backend != "cuda":
                raise CaseError(f"{self.own.result} results need CUDA")
        sides = place.lines, place.width
        rows, columns = sides if place.column_step == 1 else sides[::-1]
        first = item * place.lines * place.pitch
        kernels.start(
            "places.cu", "place", matrix.data, rows, columns, target.data, first,
            place.row_step, place.column_step, int(entry == "take"), UNWRITTEN, UNWRITTEN_NARROW,
            size=rows * columns, params=params,
        )  # fmt: skip
