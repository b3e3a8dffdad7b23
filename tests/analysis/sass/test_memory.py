"""Cycles of shared memory and the L1 cache, from addresses alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matbench.analysis.sass import memory

LANE = np.arange(32, dtype=np.uint64)
ALL = np.ones(32, dtype=bool)


@pytest.mark.parametrize(
    ("piece", "cycles"),
    [
        (LANE, 4),  # every lane its own 16 bytes
        (LANE // 2, 2),  # lanes that differ in bit 0 read the same
        (LANE // 4, 2),
        (LANE % 8, 4),  # only lanes that differ in bits 3 and 4 read the same
        (LANE // 4 * 2 + LANE % 2, 2),  # lanes that differ in bit 1 read the same
        (LANE * 8, 32),  # all in the same four banks
    ],
)
def test_fetches_of_16_bytes_as_measured_on_an_h200(piece: np.ndarray, cycles: int) -> None:
    """docs/ladder.md, "What can be reached"."""
    assert memory.shared(piece * 16, ALL, 16).cycles == cycles


@pytest.mark.parametrize(
    ("row_bytes", "cycles"),
    [
        (16384, 32),  # all words in one bank
        (4000, 8),  # in one of four banks each
        (16380, 8),  # in different banks, but in 32 lines
        (4, 1),
    ],
)
def test_a_column_of_a_matrix(row_bytes: int, cycles: int) -> None:
    assert memory.global_(LANE * row_bytes, ALL, 4).cycles == cycles


def test_a_transposed_matrix_fetch() -> None:
    assert memory.matrices(LANE * 16, 4) == memory.Cost(4, 4, 0, 512)
    assert memory.matrices(LANE * 128, 4).cycles == 32


@given(st.lists(st.integers(0, 2**16), min_size=32, max_size=32), st.sampled_from([4, 8, 16]))
def test_no_access_beats_the_least(places: list[int], nbytes: int) -> None:
    addresses = np.array(places, dtype=np.uint64) * np.uint64(nbytes)
    for cost in (memory.shared(addresses, ALL, nbytes), memory.global_(addresses, ALL, nbytes)):
        assert 1 <= cost.least <= cost.cycles
        assert cost.requested_bytes == 32 * nbytes


def test_inactive_lanes_cost_nothing() -> None:
    assert memory.shared(LANE * 4, ~ALL, 4).cycles == 0
    assert memory.global_(LANE * 128, LANE < 3, 4).cycles == 3
