"""Cycles of shared memory and the L1 cache, from addresses alone."""

from __future__ import annotations

import numpy as np
import pytest

from matbench.features.explain.sass import memory

LANE = np.arange(32, dtype=np.uint64)
ALL = np.ones(32, dtype=bool)


@pytest.mark.parametrize(
    ("addresses", "active", "nbytes", "cycles", "least"),
    [
        (LANE * 4, ALL, 4, 1, 1),
        (LANE * 8, ALL, 4, 2, 1),  # every other word
        (LANE * 16, ALL, 4, 4, 1),
        (LANE * 128, ALL, 4, 32, 1),  # all in one bank
        (LANE * 132, ALL, 4, 1, 1),  # the same with padding
        (LANE * 0, ALL, 4, 1, 1),
        (LANE, ALL, 1, 1, 1),
        (LANE * 128, LANE < 3, 4, 3, 1),
        (LANE * 4, LANE == 9, 4, 1, 1),
        (LANE * 8, ALL, 8, 2, 2),  # by half warps
        (LANE * 8, LANE < 16, 8, 1, 1),
        (LANE * 16, ALL, 8, 4, 2),
        (LANE // 2 * 8, ALL, 8, 1, 1),
        (LANE * 8, ~ALL, 8, 0, 0),
        # 16 bytes, as measured on an H200: docs/ladder.md, "What can be reached".
        (LANE * 16, ALL, 16, 4, 4),
        (LANE * 16, LANE >= 8, 16, 3, 3),
        (LANE // 2 * 16, ALL, 16, 2, 2),  # lanes that differ in bit 0 read the same
        (LANE // 4 * 16, ALL, 16, 2, 2),
        (LANE % 8 * 16, ALL, 16, 4, 4),  # only lanes that differ in bits 3 and 4 read the same
        ((LANE // 4 * 2 + LANE % 2) * 16, ALL, 16, 2, 2),  # lanes that differ in bit 1 do
        (LANE * 128, ALL, 16, 32, 4),  # all in the same four banks
    ],
)
def test_shared_memory(
    addresses: np.ndarray, active: np.ndarray, nbytes: int, cycles: int, least: int
) -> None:
    found = memory.shared(addresses, active, nbytes)
    assert found == memory.Cost(cycles, least, 0, nbytes * active.sum())


@pytest.mark.parametrize(
    ("addresses", "active", "nbytes", "cycles", "least", "sectors"),
    [
        (LANE * 4, ALL, 4, 1, 1, 4),
        (LANE * 4, LANE < 16, 4, 1, 1, 2),
        (LANE * 4, LANE == 9, 4, 1, 1, 1),
        (LANE * 4, ~ALL, 4, 0, 0, 0),
        (LANE * 4 + 4, ALL, 4, 1, 1, 5),  # from the second word of a sector on
        (LANE * 8, ALL, 4, 2, 1, 8),
        (LANE * 0, ALL, 4, 1, 1, 1),
        (LANE * 2, ALL, 2, 1, 1, 2),
        (LANE * 8, ALL, 8, 2, 2, 8),
        (LANE * 16, ALL, 16, 4, 4, 16),
        (LANE * 16, LANE < 9, 16, 2, 2, 5),  # one line and 16 bytes
        # A column of a matrix: one word of each row.
        (LANE * 128, LANE < 3, 4, 3, 1, 3),
        (LANE * 16384, ALL, 4, 32, 1, 32),  # all words in one bank
        (LANE * 4000, ALL, 4, 8, 1, 32),  # in one of four banks each
        (LANE * 16380, ALL, 4, 8, 1, 32),  # in different banks, but in 32 lines
        (LANE * 132, LANE < 9, 4, 3, 1, 9),  # in nine lines
    ],
)
def test_global_memory(
    addresses: np.ndarray, active: np.ndarray, nbytes: int, cycles: int, least: int, sectors: int
) -> None:
    found = memory.global_(addresses, active, nbytes)
    assert found == memory.Cost(cycles, least, sectors, nbytes * active.sum())


@pytest.mark.parametrize(
    ("addresses", "count", "cycles"),
    [
        (LANE * 16, 1, 1),
        (LANE * 16, 2, 2),
        (LANE * 16, 4, 4),
        (LANE * 144, 4, 4),
        (LANE * 128, 4, 32),  # eight rows in the same four banks
        (np.where(LANE < 8, LANE * 64, LANE * 128), 1, 4),  # only the first eight lanes count
    ],
)
def test_matrices(addresses: np.ndarray, count: int, cycles: int) -> None:
    assert memory.matrices(addresses, count) == memory.Cost(cycles, count, 0, 128 * count)


def test_a_cost_is_added_several_times() -> None:
    assert memory.Cost().plus(memory.Cost(1, 2, 3, 4), 5) == memory.Cost(5, 10, 15, 20)
    assert memory.Cost(1, 2, 3, 4).plus(memory.Cost(1, 1, 1, 1), 2) == memory.Cost(3, 4, 5, 6)
