"""Chosen matrices through kernels with any layout, type and condition give their product."""

from __future__ import annotations

import numpy as np
import pytest
from support.kernels import GOOD_BODY, PRODUCT, STORED, KernelWriter, changed

from matbench.bench.session import Session
from matbench.errors import CaseError
from matbench.features.grade.multiplier import Multiplier
from matbench.kernelfile import catalogue, sweep
from matbench.model import Kernel
from matbench.workloads import rounding

RANDOM = np.random.default_rng(3)


def multiplier(session: Session, kernel: Kernel) -> Multiplier:
    params = next(iter(sweep.parameter_sets(kernel, {})))
    return Multiplier(
        session.backend, lambda case: session._build(case, ("plain",)).program, kernel, params
    )


def whole(*shape: int) -> np.ndarray:
    return RANDOM.integers(-8, 9, shape).astype(np.float64)


@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 1, 1), (48, 48, 1), (1, 9, 4), (7, 1, 2)])
@pytest.mark.parametrize(
    "front",
    [
        "",
        'layout = "column-major"',
        'transpose = "TN"',
        'transpose = "NT"',
        'layout = "column-major"\ntranspose = "TT"',
    ],
)
def test_every_layout_gives_the_product(
    front: str, shape: tuple[int, int, int], session: Session, write_kernel: KernelWriter
) -> None:
    M, N, K = shape
    column = "column-major" in front
    transpose = front.partition('transpose = "')[2][:2] or "NN"

    def at(rows: str, columns: str, i: str, j: str, *, by_columns: bool) -> str:
        return f"{j} * {rows} + {i}" if by_columns else f"{i} * {columns} + {j}"

    a = at("M", "K", "row", "k", by_columns=column != (transpose[0] == "T"))
    b = at("K", "N", "k", "column", by_columns=column != (transpose[1] == "T"))
    c = at("M", "N", "row", "column", by_columns=column)
    body = changed(GOOD_BODY, (PRODUCT, f"A[{a}] * B[{b}]"), (STORED, f"C[{c}] = sum;"))
    kernel = catalogue.load(write_kernel("layout", front=front, body=body))
    A, B = whole(M, K), whole(K, N)
    np.testing.assert_array_equal(multiplier(session, kernel).multiply(A, B), A @ B)


def test_zeros_are_added_up_to_a_size_that_the_kernel_accepts(
    session: Session, write_kernel: KernelWriter
) -> None:
    launch = """where = ["M % 8 == 0", "N % 8 == 0", "K == 32"]
block = ["TILE", "TILE"]
grid = ["N // TILE", "M // TILE"]"""
    made = multiplier(session, catalogue.load(write_kernel("tiles", launch=launch)))
    A, B = whole(3, 5), whole(5, 9)
    assert made.case(3, 9, 5).problem.size == "8x16x32"
    np.testing.assert_array_equal(made.multiply(A, B), A @ B)
    with pytest.raises(CaseError, match=r"needs K == 32"):
        made.case(8, 8, 64)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1 + 2.0**-8, 1 + 3 * 2.0**-8, 1.0, -(2.0**-120)], [1.0, 1 + 2.0**-6, 1.0, -(2.0**-120)]),
        ([np.inf, -np.inf, 0.0, 2.0**-133], [np.inf, -np.inf, 0.0, 2.0**-133]),
        ([1 + 2.0**-8 + 2.0**-40], [1 + 2.0**-7]),  # not to a float32 first
    ],
)
def test_bfloat16_is_rounded_to_nearest(values: list[float], wanted: list[float]) -> None:
    stored = rounding.encoded(np.array(values), "bfloat16")
    assert stored.dtype == np.uint16
    np.testing.assert_array_equal(rounding.decoded(stored, "bfloat16"), wanted)
    assert np.isnan(rounding.decoded(rounding.encoded(np.array([np.nan]), "bfloat16"), "bfloat16"))


def test_C_is_zero_before_each_launch(session: Session, write_kernel: KernelWriter) -> None:
    body = changed(GOOD_BODY, ("= sum;", "+= sum;"))
    front = 'beta = 1.0\nreads = ["C"]'
    made = multiplier(session, catalogue.load(write_kernel("adds", front=front, body=body)))
    A, B = whole(4, 1), whole(1, 4)
    for _ in range(2):
        np.testing.assert_array_equal(made.multiply(A, B), A @ B)
