"""Launches a kernel once on numbers that reveal what it computes, however it is called.

Inputs are small multiples of 1/8, so that sums are nearly exact in any type. C is compared with
every product of the matrices as they are in memory, times one factor plus the old C times another.
So one launch shows transposed operands, a column-major result, and the effect of alpha and beta.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from matbench.bench import kernel_arguments
from matbench.bench.kernel_arguments import Float64 as Array
from matbench.bench.kernel_arguments import Matrix, Memory
from matbench.bench.session import Session
from matbench.model import INTEGERS, WORD_BYTES, Case
from matbench.workloads.rounding import decoded, encoded

#: The minimum size of the guards on both sides of a matrix, which are as large as the matrix.
_GUARD_BYTES = 1 << 18
#: Views of buffers start at multiples of this.
_ALIGNMENT_BYTES = 4096
#: The values around C: not NaN, so that a NaN written there is noticed.
_OUTSIDE_C = 77.0
#: What stands for NaN among whole numbers.
_NO_NUMBER = {"int8": 111.0, "int32": 2.0**30}
#: Of a C with more elements than that, so many rows are compared.
_LARGE, _MOST_ROWS = 2048 * 2048, 64


class ProductForm(msgspec.Struct, frozen=True):
    """C is `alpha` times a product plus `beta` times the old C.

    `left` and `right` are its operands, row-major as in memory: `("A", "B")` is A·B, `("B'", "A'")`
    is Bᵀ·Aᵀ.
    """

    left: str
    right: str
    alpha: float
    beta: float


class ProbeResult(msgspec.Struct, frozen=True):
    """The effect of one launch: the product in C, what else was written to, the share of C's
    elements that are right for the case, whether some are no numbers, how many elements outside of
    C were written, and the shares that are right for cases alike."""

    product: ProductForm | None
    spoiled: tuple[str, ...] = ()
    share: float = 0.0
    has_nan: bool = False
    beyond_C: int = 0
    alike: tuple[float, ...] = ()


def probed(
    session: Session, case: Case, poisoned: bool = False, alike: tuple[Case, ...] = ()
) -> ProbeResult:
    """What one launch computes on an open device, ignoring its front matter; `CaseError` if it
    fails.

    `poisoned`: C is NaN before the launch. `alike`: cases with the same arguments, whose matrices
    have the same elements in other orders.
    """
    backend, program = session.backend, session.program(case)
    kernel, problem = case.kernel, case.problem
    rng = np.random.default_rng(12345)
    given: dict[str, Array] = {}
    held: dict[str, _Guarded] = {}
    unit = 1 if kernel.contract.storage in INTEGERS else 8
    with Memory(backend) as memory:
        for name in "ABC":
            matrix = kernel_arguments.matrix(kernel, problem, name)
            batch, lines, _ = matrix.shape
            given[name] = rng.integers(-8, 9, (batch, lines, matrix.place.width)) / unit
            none = _NO_NUMBER.get(matrix.storage, np.nan)
            drawn = given[name] if name != "C" or not poisoned else np.full_like(given[name], none)
            held[name] = _Guarded(memory, matrix, drawn, _OUTSIDE_C if name == "C" else none)
        buffers = {name: guarded.data for name, guarded in held.items()}
        kernel_arguments.launch(backend, program, case, buffers)
        after = {name: memory.download(one.raw, one.sent) for name, one in held.items()}
    changed = {name: _bits(after[name]) != _bits(held[name].sent) for name in "ABC"}
    spoiled = [f"its input {name}" for name in "AB" if changed[name].any()]
    outside = {name: int(changed[name][held[name].is_outside].sum()) for name in "ABC"}
    spoiled += (f"memory outside {name}" for name, count in outside.items() if count)
    numbers = decoded(after["C"][~held["C"].is_outside], held["C"].matrix.storage)
    results = numbers.reshape(given["C"].shape)
    tolerance = 0.02 if held["C"].sent.itemsize == 2 else 1e-4
    launches = [*zip(results, *given.values(), strict=True)]
    products = {_product(tolerance, poisoned, *matrices) for matrices in launches}
    product = products.pop() if len(products) == 1 else None
    shares = [_share(case, tolerance, *matrices) for matrices in launches]
    has_nan = not np.isfinite(results).all()
    share = sum(shares) / len(shares)
    others = tuple(_share(other, tolerance, *launches[0]) for other in alike)
    return ProbeResult(product, tuple(spoiled), share, has_nan, outside["C"], others)


def _bits(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return words.view(f"u{words.itemsize}")


class _Guarded:
    """The matrices of a batch on the device, with other numbers around them and in row padding.

    `sent` is the whole buffer before the launch, `raw`; the kernel receives `data`.
    """

    def __init__(self, memory: Memory, matrix: Matrix, drawn: Array, outside: float) -> None:
        count, item_bytes = math.prod(matrix.shape), WORD_BYTES[matrix.storage]
        guard_bytes = max(_GUARD_BYTES, count * item_bytes)
        guard_bytes += -guard_bytes % _ALIGNMENT_BYTES
        guard = guard_bytes // item_bytes
        [none] = encoded(np.full(1, outside), matrix.storage)
        self.sent = np.full(count + 2 * guard, none)
        self.is_outside = np.ones(len(self.sent), dtype=bool)
        inside = encoded(drawn, matrix.storage)
        for array, words in ((self.sent, inside), (self.is_outside, False)):
            array[guard:-guard].reshape(matrix.shape)[:, :, : matrix.place.width] = words
        self.matrix = matrix
        self.raw = memory.upload(self.sent, is_given=True)
        self.data = self.raw.view(guard_bytes, count * item_bytes)


def _product(
    tolerance: float, poisoned: bool, C: Array, A: Array, B: Array, before: Array
) -> ProductForm | None:
    """The product, with its two factors, that C is; None if there is none."""
    if not np.isfinite(C).all():
        return None
    sides = {"A": A, "A'": A.T, "B": B, "B'": B.T}
    for left, right in itertools.permutations(sides, 2):
        a, b = sides[left], sides[right]
        if left[0] == right[0] or a.shape[1] != b.shape[0] or (a.shape[0], b.shape[1]) != C.shape:
            continue
        rows = _compared(C)
        product, wanted = a[rows] @ b, C[rows].ravel()
        parts = [product.ravel()] if poisoned else [product.ravel(), before[rows].ravel()]
        columns = np.stack(parts, axis=1)
        factors, *_ = np.linalg.lstsq(columns, wanted, rcond=None)
        error = np.abs(columns @ factors - wanted).max()
        if error <= tolerance * (np.abs(product).max() + 1):
            alpha, beta = (*(round(float(factor), 2) + 0.0 for factor in factors), 0.0)[:2]
            return ProductForm(left, right, alpha, beta) if alpha else None
    return None


def _compared(C: Array) -> npt.NDArray[np.intp]:
    """The rows that the host computes: of a large C, some; a right call is checked later."""
    if C.size <= _LARGE or len(C) <= _MOST_ROWS:
        return np.arange(len(C))
    return np.random.default_rng(1).choice(len(C), _MOST_ROWS, replace=False)


def _share(case: Case, tolerance: float, C: Array, A: Array, B: Array, before: Array) -> float:
    """The share of C's elements that are right for the case."""
    kernel, problem = case.kernel, case.problem
    places = {name: kernel_arguments.matrix(kernel, problem, name) for name in "ABC"}
    a, b, c, before = (
        places[name].turned(values.reshape(places[name].place.lines, -1))
        for name, values in (("A", A), ("B", B), ("C", C), ("C", before))
    )
    rows = _compared(c)
    product = a[rows] @ b
    meant = problem.alpha * product + problem.beta * before[rows]
    with np.errstate(invalid="ignore"):
        near = np.abs(c[rows] - meant) <= tolerance * (np.abs(product).max() + 1)
    return float(near.mean())
