"""Memory for launches back to back: their buffers lie in random order at random places.

A kernel could otherwise compute all products of a batch in its first launch. It cannot know which
of the sets of buffers are launched, because there are decoys; and whatever it writes anywhere else
is noticed, because all other memory is hashed with a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import numpy as np

from matbench.bench.judge import OUTSIDE_WORKSPACE, Comparator, Guarded
from matbench.bench.launcher import Memory
from matbench.bench.layouts import Buffers

#: Matrices start at multiples of it, as large allocations do: caches look up the lower bits of an
#: address, and matrices at other places would collide less.
PAGE_BYTES = 2**18
_PAGE_WORDS = PAGE_BYTES // 4
#: What lies between matrices; its halves are NaN, too.
_BETWEEN = OUTSIDE_WORKSPACE


class Arena:
    """Memory for at most so many sets of buffers like a first one, laid out anew for each batch."""

    def __init__(self, memory: Memory, judge: Comparator, like: Buffers, most: int) -> None:
        self.memory = memory
        self.judge = judge
        self.like = like
        matrices = like.passed
        self._pages = [-(-matrix.data.nbytes // PAGE_BYTES) for matrix in matrices]
        self._gaps = [max(1, m.guard_words * m.word_bytes // PAGE_BYTES) for m in matrices]
        self.pages = most * self._pages_of_set
        self.buffer = memory.allocate(self.pages * PAGE_BYTES)
        self._left_out = memory.allocate(4 * self.pages)

    @property
    def _pages_of_set(self) -> int:
        return sum(self._pages) + 2 * sum(self._gaps)

    def release(self) -> None:
        for buffer in (self.buffer, self._left_out):
            self.memory.free(buffer)

    def lay_out(self, count: int, random: Random) -> list[Buffers]:
        """Sets whose matrices are at new places, in random order."""
        self.judge.fill(self.buffer, 0, self.pages * _PAGE_WORDS, _BETWEEN)
        pages, gaps = self._pages * count, self._gaps * count
        places = iter(drawn_places(pages, gaps, count * self._pages_of_set, random))
        return [
            self.like.moved([self._placed(matrix, next(places)) for matrix in self.like.passed])
            for _ in range(count)
        ]

    def _placed(self, matrix: Guarded, page: int) -> Guarded:
        data = self.buffer.view(page * PAGE_BYTES, matrix.data.nbytes)
        placed = matrix._replace(raw=data, data=data, guard_words=0, start=page)
        if matrix.pitch > matrix.width:
            self.judge.poison(placed, matrix.guard)
        return placed

    def hashed(self, key: int, without: Iterable[Guarded]) -> int:
        """The hash of the whole arena without these matrices.

        Afterwards, nothing on the device tells which these were.
        """
        words = np.zeros(self.pages, np.uint32)
        for matrix in without:
            count = -(-matrix.data.nbytes // 4)
            pages = -(-count // _PAGE_WORDS)
            words[matrix.start : matrix.start + pages] = _PAGE_WORDS
            words[matrix.start + pages - 1] -= pages * _PAGE_WORDS - count
        backend = self.judge.backend
        backend.write(self._left_out, words)
        found = self.judge.hashed_without(self.buffer, self._left_out, _PAGE_WORDS, key)
        backend.write(self._left_out, np.zeros_like(words))
        return found


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
