"""What one memory instruction of a warp costs, from the addresses of its lanes.

Shared memory has 32 banks of 4 bytes; a cycle serves one word of each bank (*CUDA Programming
Guide*, "Shared Memory"). Wide accesses go in parts: 8 bytes by half warps, 16 bytes by quarters.
Two parts go together if lanes that differ in bit 0 of their number, or lanes that differ in bit 1,
read the same place, as measured for docs/ladder.md.

The L1 cache is the same memory, so global accesses take as many cycles as one bank has different
words. It finds at most four lines of 128 bytes per cycle: Z. Jia et al., *Dissecting the NVIDIA
Volta GPU Architecture via Microbenchmarking*, 2018, found four sets. Sectors, in which the L2 cache
is asked, have 32 bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matbench.features.explain.sass.integers import Numbers

LINE_BYTES = 128
SECTOR_BYTES = 32
_BANKS = 32
_LINES_PER_CYCLE = 4
_WORD = 4


class Cost(NamedTuple):
    """One execution by a warp, or the sum of several.

    `cycles` of the multiprocessor's memory pipe; `least` without bank conflicts, or if neighbouring
    lanes accessed neighbouring places. `sectors` are those of global memory, `requested_bytes`
    those of all lanes.
    """

    cycles: float = 0.0
    least: float = 0.0
    sectors: float = 0.0
    requested_bytes: float = 0.0

    def plus(self, more: Cost, times: float) -> Cost:
        return Cost(*(mine + times * other for mine, other in zip(self, more, strict=True)))


def shared(addresses: Numbers, active: Numbers, nbytes: int) -> Cost:
    """An access to shared memory of `nbytes` by each active lane."""
    parts = _parts(addresses, active, nbytes // _WORD) if nbytes > _WORD else [active]
    cycles = [_conflicts(addresses[part], nbytes) for part in parts if part.any()]
    return Cost(sum(cycles), len(cycles), 0, int(active.sum()) * nbytes)


def _parts(addresses: Numbers, active: Numbers, count: int) -> list[Numbers]:
    """The lanes served together: 2 or 4 parts, or half as many if neighbours agree."""
    lane = np.arange(len(addresses))
    agree = any(
        bool((~active | ~active[lane ^ bit] | (addresses == addresses[lane ^ bit])).all())
        for bit in (1, 2)
    )
    count = count // 2 if agree else count
    size = len(addresses) // count
    return [active & (lane // size == part) for part in range(count)]


def _conflicts(addresses: Numbers, nbytes: int) -> int:
    """Cycles for lanes served together: the most different words in one bank."""
    words = addresses[:, None] // _WORD + np.arange(max(1, nbytes // _WORD), dtype=np.uint64)
    return int(np.bincount((np.unique(words) % _BANKS).astype(np.int64)).max())


def matrices(addresses: Numbers, count: int) -> Cost:
    """`LDSM`, which loads `count` matrices of eight rows of 16 bytes; lane i gives row i."""
    cycles = sum(_conflicts(row, 16) for row in addresses[: 8 * count].reshape(count, 8))
    return Cost(cycles, count, 0, 128 * count)


def global_(addresses: Numbers, active: Numbers, nbytes: int) -> Cost:
    """An access to global or local memory of `nbytes` by each active lane."""
    where = addresses[active]
    if not len(where):
        return Cost()
    # Accesses are aligned, so none is in two lines or sectors.
    lines, sectors = (len(np.unique(where // np.uint64(n))) for n in (LINE_BYTES, SECTOR_BYTES))
    least = -(-len(np.unique(where)) * nbytes // LINE_BYTES)
    cycles = max(_conflicts(where, nbytes), -(-lines // _LINES_PER_CYCLE), least)
    return Cost(cycles, least, sectors, len(where) * nbytes)
