"""An error map is small, and still shows the worst element of every cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import records

from matbench.analysis import error_map
from matbench.records import encoding
from matbench.records.outcome import MOST_CELLS


@given(
    st.integers(1, 20), st.integers(1, 20), st.integers(1, 9), st.integers(0, 2**32), st.booleans()
)
def test_a_cell_is_the_worst(rows: int, columns: int, step: int, seed: int, exact: bool) -> None:
    random = np.random.default_rng(seed)
    R = random.integers(-3, 4, (rows, columns)).astype(np.float64)
    C = R.astype(np.float32)
    C[random.random(C.shape) < 0.1] += 1
    C[random.random(C.shape) < 0.02] = np.nan
    bound = None if exact else np.abs(R)  # zero where R is
    wrong = ~(C == R) if bound is None else ~(np.abs(C - R) <= bound)
    worst, bad = error_map.reduced(C, R, wrong, bound, step)
    for i, j in np.ndindex(worst.shape):
        cell = (slice(i * step, (i + 1) * step), slice(j * step, (j + 1) * step))
        assert bad[i, j] == wrong[cell].any()
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.abs(C[cell] - R[cell])
            shares = error if bound is None else np.where(error == 0, 0, error / bound[cell])
        assert worst[i, j] == np.nan_to_num(shares, nan=np.inf, posinf=np.inf).max()


@pytest.mark.parametrize(
    ("shape", "step"), [((1, 1), 1), ((100, 3), 1), ((101, 3), 2), ((2, 3000), 30)]
)
def test_a_map_is_small_however_large_c_is(shape: tuple[int, int], step: int) -> None:
    C = np.ones(shape, np.float32)
    C[-1, -1] = np.nan
    R = np.ones(shape)
    found = error_map.make_error_map(C, R, ~(C == R))
    assert (found.step, found.shape, found.wrong_elements) == (step, shape, 1)
    assert found.exact
    assert max(len(found.rows), len(found.rows[0])) <= MOST_CELLS
    assert "".join(found.rows).rstrip("!").strip(".") == ""
    assert found.rows[-1].endswith("!")


def test_a_record_has_the_power_of_ten_of_each_wrong_cell() -> None:
    R, bound = np.ones((200, 130)), np.full((200, 130), 1e-6)
    C = R.astype(np.float32)
    C[0, 0] += np.float32(3e-6)
    C[199, 129] += 5
    C[100, 64] = np.nan
    wrong = ~(np.abs(C - R) <= bound)
    found = error_map.make_error_map(C, R, wrong, bound=bound)
    assert (found.shape, found.step, found.wrong_elements) == ((200, 130), 2, 3)
    assert (found.exact, found.least_power) == (False, 0)
    assert (found.rows[0][0], found.rows[99][64], found.rows[50][32]) == ("0", "6", "!")
    assert sum(len(row) - row.count(".") for row in found.rows) == 3
    outcome = records.outcome(status="wrong", error_map=found)
    assert encoding.decode(encoding.line(outcome).encode(), "outcome") == outcome


def test_errors_36_powers_of_ten_below_the_worst_are_told_apart_no_more() -> None:
    C = np.array([[1e-40, 1e-36, 1e-34, 1.0, 0.0]], np.float32)
    found = error_map.make_error_map(C, np.zeros_like(C), C != 0)
    assert (found.least_power, found.rows) == (-35, ("001z.",))
