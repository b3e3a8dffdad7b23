"""Launches a kernel once on numbers that reveal what it computes, however it is called.

Inputs are small multiples of 1/8, so that sums are nearly exact in any type. C is compared with
every product of the matrices as they are in memory, times one factor plus the old C times another.
So one launch shows transposed operands, a column-major result, and the effect of alpha and beta.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.measure import arguments

if TYPE_CHECKING:
    from matbench.backends import Backend, Buffer, Program
    from matbench.model import Case, Kernel, Place, Problem

Array = npt.NDArray[np.float64]

#: NumPy's types for the types of pointers; bfloat16 is passed as 16 bits.
_TYPES: dict[str, str] = {
    "float": "f4", "float2": "f4", "float4": "f4", "double": "f8", "double2": "f8",
    "half": "f2", "__half": "f2", "half2": "f2", "__half2": "f2", "float16": "f2",
    "__nv_bfloat16": "u2", "nv_bfloat16": "u2", "__nv_bfloat162": "u2", "nv_bfloat162": "u2",
}  # fmt: skip
#: The minimum size of the guards on both sides of a matrix, which are as large as the matrix.
_GUARD_BYTES = 1 << 18
#: Views of buffers start at multiples of this.
_ALIGNMENT_BYTES = 4096
#: The values around C: not NaN, so that a NaN written there is noticed.
_OUTSIDE_C = 77.0


class Product(msgspec.Struct, frozen=True):
    """C is `alpha` times a product plus `beta` times the old C.

    `left` and `right` are its operands, row-major as in memory: `("A", "B")` is A·B, `("B'", "A'")`
    is Bᵀ·Aᵀ.
    """

    left: str
    right: str
    alpha: float
    beta: float


class Sighting(msgspec.Struct, frozen=True):
    """The effect of one launch: the product in C, what else was written to, and the share of C's
    elements that are right for the case."""

    product: Product | None
    spoiled: tuple[str, ...] = ()
    share: float = 0.0


def sight(backend: Backend, program: Program, case: Case, *, poisoned: bool = False) -> Sighting:
    """Launch a case once; `CaseError` if that fails. `poisoned`: C is NaN before the launch."""
    assert case.launch is not None
    kernel, problem = case.kernel, case.problem
    rng = np.random.default_rng(12345)
    kinds = {text: p.type for text, p in zip(kernel.args, kernel.parameters, strict=True)}
    given: dict[str, list[Array]] = {}
    held: dict[str, _Guarded] = {}
    try:
        for name in "ABC":
            place = _place(kernel, problem, name)
            drawn = rng.integers(-8, 9, (problem.batch, place.lines, place.width)) / 8
            given[name] = list(drawn)
            if name == "C" and poisoned:
                drawn = np.full_like(drawn, np.nan)
            outside = _OUTSIDE_C if name == "C" else np.nan
            held[name] = _Guarded(backend, _TYPES[kinds[name]], drawn, place.pitch, outside)
        matrices = {name: each.data for name, each in held.items()}
        program.launch(case.launch, arguments.of(case, matrices, backend.info.limits))
        backend.synchronize()
        spoiled = [f"its input {name}" for name in "AB" if held[name].is_changed()]
        spoiled += [f"memory outside {name}" for name in "ABC" if held[name].is_changed_outside()]
        found = held["C"].matrices()
    finally:
        for each in held.values():
            backend.release(each.raw)
    tolerance = 0.02 if _TYPES[kinds["C"]] in ("f2", "u2") else 1e-4
    products = {
        _product(tolerance, poisoned, *each) for each in zip(found, *given.values(), strict=True)
    }
    product = products.pop() if len(products) == 1 else None
    shares = [_share(case, tolerance, *each) for each in zip(found, *given.values(), strict=True)]
    return Sighting(product, tuple(spoiled), sum(shares) / len(shares))


def _place(kernel: Kernel, problem: Problem, name: str) -> Place:
    """The layout in memory of a matrix of the problem."""
    return kernel.placing.place(name, *workloads.of(problem).shape(name, problem))


class _Guarded:
    """The matrices of a batch on the device, with `outside` around them and in row padding."""

    def __init__(
        self, backend: Backend, kind: str, matrices: Array, pitch: int, outside: float
    ) -> None:
        self.backend = backend
        self.kind = np.dtype(kind)
        many, rows, self.columns = matrices.shape
        self.shape = many, rows, pitch
        count = many * rows * pitch
        guard_bytes = max(_GUARD_BYTES, count * self.kind.itemsize)
        guard_bytes += -guard_bytes % _ALIGNMENT_BYTES
        guard = guard_bytes // self.kind.itemsize
        self.inside = slice(guard, guard + count)
        numbers = np.full(count + 2 * guard, outside)
        numbers[self.inside].reshape(self.shape)[:, :, : self.columns] = matrices
        self.sent = self._encoded(numbers)
        self.raw: Buffer = backend.allocate(self.sent.nbytes)
        backend.write(self.raw, self.sent)
        self.data = self.raw.view(guard_bytes, count * self.kind.itemsize)

    def _encoded(self, numbers: Array) -> npt.NDArray[Any]:
        if self.kind != np.uint16:
            return numbers.astype(self.kind)
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)

    @functools.cached_property
    def now(self) -> npt.NDArray[Any]:
        """The whole buffer after the launch."""
        found = np.empty_like(self.sent)
        self.backend.read(self.raw, found)
        return found

    def matrices(self) -> list[Array]:
        """The matrices after the launch."""
        inside = self.now[self.inside]
        if self.kind == np.uint16:
            inside = (inside.astype(np.uint32) << 16).view(np.float32)
        numbers: Array = inside.astype(np.float64).reshape(self.shape)
        return list(numbers[:, :, : self.columns])

    def is_changed(self) -> bool:
        """Whether anything changed."""
        return self.now.tobytes() != self.sent.tobytes()

    def is_changed_outside(self) -> bool:
        """Whether the guards or the padding between rows changed."""

        def outside(array: npt.NDArray[Any]) -> bytes:
            left = array.copy()
            left[self.inside].reshape(self.shape)[:, :, : self.columns] = 0
            return bytes(left)

        return outside(self.now) != outside(self.sent)


def _product(
    tolerance: float, poisoned: bool, C: Array, A: Array, B: Array, before: Array
) -> Product | None:
    """The product, with its two factors, that C is; None if there is none."""
    if not np.isfinite(C).all():
        return None
    sides = {"A": A, "A'": A.T, "B": B, "B'": B.T}
    for left, right in itertools.permutations(sides, 2):
        a, b = sides[left], sides[right]
        if left[0] == right[0] or a.shape[1] != b.shape[0] or (a.shape[0], b.shape[1]) != C.shape:
            continue
        product = a @ b
        parts = [product.ravel()] if poisoned else [product.ravel(), before.ravel()]
        columns = np.stack(parts, axis=1)
        factors, *_ = np.linalg.lstsq(columns, C.ravel(), rcond=None)
        error = np.abs(columns @ factors - C.ravel()).max()
        if error <= tolerance * (np.abs(product).max() + 1):
            alpha, beta = (*(round(float(each), 2) + 0.0 for each in factors), 0.0)[:2]
            return Product(left, right, alpha, beta) if alpha else None
    return None


def _share(case: Case, tolerance: float, C: Array, A: Array, B: Array, before: Array) -> float:
    """The share of C's elements that are right for the case."""
    problem = case.problem

    def logical(name: str, matrix: Array) -> Array:
        return matrix if _place(case.kernel, problem, name).column_step == 1 else matrix.T

    product = logical("A", A) @ logical("B", B)
    meant = problem.alpha * product + problem.beta * logical("C", before)
    with np.errstate(invalid="ignore"):
        near = np.abs(logical("C", C) - meant) <= tolerance * (np.abs(product).max() + 1)
    return float(near.mean())
