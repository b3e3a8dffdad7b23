"""`matbench.verify`: whether C is a product of given arrays, on the host and without a kernel.

The reference, its bound and the words for a mistake are those of `workloads.oracle` and
`diagnosis`. docs/verify.md derives what is compared where the reference would take too long.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, NamedTuple

import msgspec
import numpy as np

from matbench import model, workloads
from matbench.bench import diagnosis
from matbench.errors import UsageError, listed, refusing
from matbench.kernelfile.front_matter import unsuitable
from matbench.model import Kernel, Problem
from matbench.workloads import doubled, oracle, scaling
from matbench.workloads.matmul import trials
from matbench.workloads.oracle import Array, Bound, Float64, Trial

#: Multiplications of the reference that take about a second on two cores.
_MOST = 2**34
#: How many products `doubled.product` multiplies.
_DOUBLED = 12
#: So many rows are drawn at most, and so many that seem to be wrong are compared, too.
_ROWS = 64
#: A sum of errors with random signs exceeds so many roots of the sum of their squares with a
#: probability of at most 5·10⁻¹¹ (Hoeffding, 1963).
_DEVIATIONS = 7
#: By what other libraries call them; what a kernel's pointers to each type are called.
_FOREIGN = {name: storage for storage, name in model.FOREIGN.items()}
_POINTERS = {storage: text for text, storage in reversed(model.STORAGE.items())}


class Verification(msgspec.Struct, frozen=True):
    """What `verify` found; it is true if C is right.

    `multiple` is the largest error as a multiple of what is allowed, at most 1 if C is right, `at`
    its place (row and column, in a batch after the indices of the product), where `expected` and
    `found` are. Of the `elements`, so many were `compared` one by one, and of these are `wrong`;
    the others by C·x = A·(B·x) if it `is_sampled`. `reason` says what C looks like, if not right.
    """

    ok: bool
    multiple: float
    at: tuple[int, ...]
    expected: float
    found: float
    wrong: int
    compared: int
    elements: int
    is_sampled: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        of = f"{self.compared:,} of {self.elements:,} elements"
        parts = (
            f"{'right' if self.ok else 'wrong'}: largest error {self.multiple:.3g} × the bound, at "
            f"C{[*self.at]}: expected {self.expected:.9g}, found {self.found:.9g}",
            "" if self.ok else f"{self.wrong:,} of {self.compared:,} elements wrong",
            self.reason,
            f"{of} compared one by one, the others by C·x = A·(B·x)" if self.is_sampled else "",
        )
        return "; ".join(filter(None, parts))


def verify(
    A: Any, B: Any, C: Any, *,
    precision: model.Precision | None = None, accumulator: model.Accumulator | None = None,
    error_constant: float = 0.0, promotes: int | None = None, transpose: model.Transpose = "NN",
    alpha: float = 1.0, beta: float = 0.0, old_C: Any = None,
    scales: model.Scales | None = None, scale_a: Any = None, scale_b: Any = None,
    random_signs: bool = False,
) -> Verification:  # fmt: skip
    """Whether C is alpha·op(A)·op(B) + beta·old_C, as exact as its types and claims let expect.

    op(A) is M×K, op(B) K×N and C M×N, in a batch with more dimensions before, as of
    `numpy.matmul`: arrays of NumPy, PyTorch, CuPy, JAX, Numba, …, which are copied to the host.
    Claims have the names and values of front matter; `scale_a` and `scale_b` are the factors of
    what `scales` names, for a whole batch. `random_signs`: the elements of A and of B were drawn
    around 0, each independently, so that a tighter bound holds for float32 and 8-bit operands.

    `UsageError`: an argument is not allowed, or A or B are not finite.
    """
    (a, kind), (b, of_B), (c, result) = map(_on_host, (A, B, C), "ABC")
    kernel = _kernel(
        (kind, of_B, result), precision=precision or kind, accumulator=accumulator,
        error_constant=error_constant, promotes=promotes, transpose=transpose, scales=scales,
    )  # fmt: skip
    if (beta != 0) != (old_C is not None):
        raise UsageError("old_C: C before, which beta multiplies; give both, or neither")
    shapes = f"A is {a.shape}, B {b.shape} and C {c.shape} with transpose = {transpose!r}"
    with refusing(shapes):
        a, b = (
            X if letter == "N" else np.swapaxes(X, -1, -2)
            for X, letter in zip((a, b), transpose, strict=True)
        )
        (M, K), (inner, N) = a.shape[-2:], b.shape[-2:]
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        if inner != K or c.shape != (*batch, M, N) or 0 in (K, *c.shape):
            raise UsageError(f"{shapes}: C is no product of these, or empty")
    with refusing("alpha, beta and old_C"):
        problem = Problem(M, N, K, alpha=float(alpha), beta=float(beta))
        old = np.zeros(1) if old_C is None else _on_host(old_C, "old_C")[0].astype(np.float64)
        old = np.broadcast_to(old, c.shape)
    a = np.broadcast_to(_read(a, "A", kernel, problem, scale_a), (*batch, M, K))
    b = np.broadcast_to(_read(b, "B", kernel, problem, scale_b), (*batch, K, N))
    bound, found = oracle.bound(kernel, problem), list[Verification]()
    for at in np.ndindex(*batch):
        one = _Product(a[at], b[at], c[at], old[at], kernel, problem, bound, random_signs)
        found.append(one.verified(_MOST // math.prod(batch), at))
    wrong, compared = sum(one.wrong for one in found), sum(one.compared for one in found)
    counts = {"wrong": wrong, "elements": c.size, "is_sampled": compared < c.size}
    worst = max(found, key=lambda one: one.multiple)
    return msgspec.structs.replace(worst, compared=compared, **counts)


def _on_host(X: Any, name: str) -> tuple[Array, model.Storage]:
    """An array's numbers in the host's memory, and the type that they had."""
    kind = str(getattr(X, "dtype", "")).rpartition(".")[2]
    with refusing(name):
        for copy in ("detach", "cpu", "get", "copy_to_host"):  # PyTorch; CuPy, PyCUDA; Numba
            X = getattr(X, copy)() if kind and hasattr(X, copy) else X
        if kind in _FOREIGN and hasattr(X, "float"):
            X = X.float()  # types of PyTorch that NumPy does not have
        if not hasattr(X, "__array__") and hasattr(X, "__cuda_array_interface__"):
            X = importlib.import_module("cupy").asarray(X).get()
        if not hasattr(X, "__array__") and not hasattr(X, "__dlpack__"):
            raise UsageError(f"{name} is of type {type(X).__name__}; pass an array, as of NumPy")
        array = np.asarray(X) if hasattr(X, "__array__") else np.from_dlpack(X)
    kind = _FOREIGN.get(kind, kind) or array.dtype.name
    if kind not in model.WORD_BYTES:
        raise UsageError(f"{name} is {kind}; convert it to {listed(model.WORD_BYTES)}")
    wide = array.dtype in (np.float32, np.float64, np.int32)
    return array if wide else array.astype(np.float32), kind


def _kernel(kinds: tuple[model.Storage, ...], **claims: Any) -> Kernel:
    """A kernel with such arrays that makes these claims; `UsageError` if there can be none."""
    kind, of_B, result = kinds
    pointers = [model.Parameter(_POINTERS[of], of, pointer=True) for of in kinds]
    table = {"name": "verify", "launch": {"block": (1,), "grid": (1,)}, "parameters": pointers}
    try:
        kernel = msgspec.convert(table | {k: v for k, v in claims.items() if v is not None}, Kernel)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$.")
        raise UsageError(f"{where.rstrip('`')}: {reason}") from None
    usual = ("float32", "tf32", "float16", "bfloat16") if kind == "float32" else (kind,)
    if of_B != kind:
        raise UsageError(f"A is {kind} and B is {of_B}; convert one of them")
    if result not in (results := workloads.MATMUL.storages("C", kind)):
        raise UsageError(f"C is {result}; of {kind} products it is {listed(results)}")
    if kernel.precision not in usual:
        raise UsageError(f"precision: {kernel.precision}; of {kind} arrays {listed(usual)}")
    for reason, _ in unsuitable(kernel):
        raise UsageError(reason)
    return kernel


def _read(X: Array, name: str, kernel: Kernel, problem: Problem, scale: Any) -> Array:
    """op(A) or op(B) as a kernel reads it: rounded to the precision, and scaled."""
    contract, called = kernel.contract, model.SCALE_OF[name]
    if not np.isfinite(X).all():
        raise UsageError(f"{name} has NaN or infinity; verify needs finite operands")
    if contract.storage in model.INTEGERS:
        X = X.astype(np.float64)
        if np.abs(X).max() ** 2 * problem.K * problem.N >= 2**53:
            raise UsageError(f"{name} has numbers so large that float64 sums are not exact")
    if contract.precision != contract.storage:
        X = oracle.read_as(X, contract)
    if (contract.scales is None) != (scale is None):
        raise UsageError(f"{called}: the factors of {name}, if `scales` says what has them")
    if contract.scales is None:
        return X
    with refusing(called):
        factors = _on_host(scale, called)[0].reshape(scaling.shape(contract.scales, name, problem))
        return X * scaling.spread(factors, contract.scales, name, problem).astype(np.float64)


class _Product(NamedTuple):
    """op(A), op(B), C and C before, and what C is held to."""

    A: Array
    B: Array
    C: Array
    old: Array
    kernel: Kernel
    problem: Problem
    bound: Bound
    random_signs: bool

    def verified(self, most: int, index: tuple[int, ...]) -> Verification:
        """The verdict, by at most so many multiplications."""
        products = 1 + ((self.A < 0).any() or (self.B < 0).any())  # R, and S where it is another
        products += _DOUBLED * (self.kernel.precision == "float64")
        share = float(most / (self.C.size * self.problem.K * products))
        suspect = np.zeros(self.C.shape, np.bool_)
        rows = np.arange(len(self.C)) if share >= 1 else self.sampled(share, most, suspect)
        trial, C = self.trial(slice(None) if share >= 1 else rows), self.C[rows]
        R, _ = trial.sums
        shares = oracle.shares(C - R, self.bound.of(trial))
        wrong, excess = ~(shares <= 1), self.bound.excess(C, trial)
        row, column = divmod(int(shares.argmax()), C.shape[1])
        multiple, parts = float(shares[row, column]), list[str]()
        if wrong.any():
            suspect[rows] = wrong
            found = diagnosis.patterns(C, R, wrong, {}) if share >= 1 else []
            parts = self.likeness(rows) or found or [diagnosis.region(suspect, {}) or ""]
        elif excess > oracle.MOST_EXCESS:
            multiple = math.sqrt(1 + excess / C.size)
            parts = ["no element is wrong alone, but all are together", *self.likeness(rows)]
        return Verification(
            multiple <= 1, multiple, (*index, int(rows[row]), column), float(R[row, column]),
            float(C[row, column]), int(wrong.sum()), C.size, self.C.size, share < 1,
            "; ".join(filter(None, parts)),
        )  # fmt: skip

    def trial(self, rows: Array | slice, columns: Array | slice = slice(None)) -> Trial:
        """What is expected of these rows and columns of C."""
        problem, contract = self.problem, self.kernel.contract
        A, B, old = self.A[rows], self.B[:, columns], self.old[rows][:, columns]
        R = (doubled.product if contract.precision == "float64" else trials.in_float64)(A, B)
        S = trials.in_float64(A, B, np.abs) if (A < 0).any() or (B < 0).any() else R
        trial = trials.of_problem(Trial("verify", (A, B), R=R, S=S), problem, old, contract)
        if not (self.random_signs and trials.has_typical_sums(contract)):
            return trial
        T = np.outer(*(np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64)) for X in (A, B.T)))
        T *= abs(problem.alpha) / math.sqrt(problem.K)
        typical = oracle.Typical(T, np.zeros(len(A), np.bool_), abs(problem.beta * old))
        return trial._replace(typical=typical)

    def likeness(self, rows: Array) -> list[str]:
        """What C looks like, in a large product by a part that is spread over these rows."""
        K, most = self.problem.K, diagnosis.MOST_OPERATIONS
        few = rows[:: 1 + max(len(rows) // math.isqrt(1 + most // K), len(rows) * K // trials.PART)]
        work = len(few) * self.C.shape[1] * K
        columns = slice(None, None, 1 + max(work // most, self.B.size // trials.PART))
        C = self.C[few, columns]
        problem = msgspec.structs.replace(self.problem, M=len(few), N=C.shape[1])
        part = self.trial(few, columns), self.bound, model.Case(self.kernel, problem, {}, None)
        return [*filter(None, [diagnosis.likeness(C, *part)])]

    def sampled(self, share: float, most: int, suspect: Array) -> Array:
        """The rows to compare one by one: drawn, or with elements that are `suspect`.

        C·x and A·(B·x) differ in a group of columns by no more than rounding errors make of random
        signs x, unless an element is wrong.
        """
        (M, N), random = self.C.shape, np.random.default_rng()
        count = max(1, min(M, _ROWS, int(share * M / 4)))
        width = 1 + 16 * self.C.size * self.problem.K // most
        deviations = self.deviations(random.choice([-1.0, 1.0], N), width)
        suspect |= np.repeat(deviations > 1, width, axis=1)[:, :N]
        worst = np.argsort(-deviations.max(axis=1), kind="stable")[:count]
        worst = worst[deviations[worst].max(axis=1) > 1]
        return np.union1d(random.choice(M, count, replace=False), worst)

    def deviations(self, x: Float64, width: int) -> Float64:
        """|C·x − A·(B·x)| for each row and so many columns, as multiples of what is allowed."""
        problem, of_S, least = self.problem, self.bound.of_S + self.bound.of_R, self.bound.least
        step = max(1, trials.PART // max(problem.N, problem.K))

        def reduced(X: Array) -> Float64:
            wide, starts = X.astype(np.float64), np.arange(0, problem.N, width)
            sums = (np.add.reduceat(one, starts, axis=1) for one in (wide * x, abs(wide)))
            return np.stack([*sums, np.maximum.reduceat(abs(wide), starts, axis=1)])

        of_B = np.concatenate([reduced(self.B[k : k + step]) for k in range(0, problem.K, step)], 1)
        found = []
        for rows in (slice(i, i + step) for i in range(0, problem.M, step)):
            A = problem.alpha * self.A[rows].astype(np.float64)
            sums = np.stack([A, abs(A), abs(A)]) @ of_B + reduced(problem.beta * self.old[rows])
            expected, sizes, largest = sums
            errors = reduced(self.C[rows])[0] - expected
            if self.kernel.contract.result == "int32":
                errors = trials.wrapped(errors)
            squares = (of_S * sizes + width * least) * (of_S * largest + least)
            rounding = (problem.K + width) * 2.0**-52 * sizes  # of C·x and of A·(B·x) themselves
            found.append(oracle.shares(errors, _DEVIATIONS * np.sqrt(squares) + rounding))
        return np.concatenate(found)
