"""What is right: seeded inputs, what must come of them, and the error that rounding allows.

A `Trial` is one set of inputs with what C must be. Every workload tries some of these kinds on
each problem, by the name of the check that they are for:

- *reference*: the problem's own inputs; each element within a rounding-error bound of the float64
  result R, or equal to the exact one.
- *integers*: whole numbers of both signs, and zeros, small enough that every float32 sum of them
  is exact. C must match to the last bit.
- *selection*: one input picks entries of the other. C must match to the last bit, so that a kernel
  cannot round its inputs unseen.
- *sample*: other inputs whose result is known from the reference trial's; new ones for each launch
  that is timed. The device makes them; here they are made again to explain what went wrong.
"""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.cache import Cache
from matbench.model import U32, UNIT_ROUNDOFF, Kernel, Precision, Problem, Reading
from matbench.records.outcome import Accuracy

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

#: Bits of the significand (the hidden one included) that a precision keeps.
SIGNIFICAND_BITS: dict[Precision, int] = {
    "float64": 53,
    "float32": 24,
    "tf32": 11,
    "float16": 11,
    "bfloat16": 8,
}


class Trial(NamedTuple):
    """The inputs, in the order of the workload's buffers, and what C must be.

    Either `exact` is given, or R with S, the size of what rounding errors are measured by: for sums
    of products the same sums of absolute values. Errors are shown relative to `scale` (None: |R|).
    `C` is what C holds when the kernel starts, if it reads it.
    """

    name: str
    inputs: tuple[Array, ...]
    exact: Array | None = None
    R: Float64 | None = None
    S: Float64 | None = None
    scale: Float64 | None = None
    C: Float32 | None = None

    @property
    def expected(self) -> Array:
        found = self.exact if self.exact is not None else self.R
        assert found is not None
        return found


class Sample(NamedTuple):
    """How the inputs of one launch follow from the reference trial's: all that is random, by a key.

    `vary`: they do change. `select`: some rows and columns of matrices select a single term.
    """

    key: int
    vary: bool = True
    select: bool = True


class Trials(NamedTuple):
    """All that a kernel is tried on.

    Inputs are rounded to the precision that it reads; `given` is the reference trial on the inputs
    as given where that is another one.
    """

    reference: Trial
    given: Trial | None
    others: dict[str, list[Trial]]


def trials(problem: Problem, reading: Reading, cache: Cache) -> Trials:
    """The trials of a problem, made for kernels that read their inputs like that."""
    module = importlib.import_module(f"matbench.measure.oracle.{problem.workload}")
    made: Trials = module.trials(problem, reading, cache)
    return made


def sample_trial(problem: Problem, reading: Reading, trial: Trial, sample: Sample) -> Trial:
    """A reference trial as a sample changes it."""
    module = importlib.import_module(f"matbench.measure.oracle.{problem.workload}")
    made: Trial = module.sample_trial(problem, reading, trial, sample)
    return made


def generator(problem: Problem, purpose: str) -> np.random.Generator:
    """A generator of its own for each purpose, so that no draw depends on another."""
    digest = hashlib.sha256(f"{problem.seed}/{purpose}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, np.uint32))


def draw(problem: Problem, purpose: str, rows: int, columns: int, *, wide: bool = False) -> Array:
    """Seeded numbers: `uniform` in [0, 1), `signed` in [−1, 1), `normal` with deviation 1.

    Of float32, or of float64 where they are `wide`.
    """
    random = generator(problem, purpose)
    kind = np.float64 if wide else np.float32
    if problem.inputs == "normal":
        normal: Array = random.standard_normal((rows, columns), dtype=kind)
        return normal
    values: Array = random.random((rows, columns), dtype=kind)
    if problem.inputs == "signed":
        values *= 2
        values -= 1
    return values


def round_to(values: Float32, precision: Precision) -> Float32:
    """Values rounded to nearest, ties to even, in the significand of `precision`.

    The exponent range of float16 is not applied: a kernel says in its own file what range it takes.
    """
    dropped = 24 - SIGNIFICAND_BITS[precision]
    if dropped <= 0:
        return values
    bits = np.ascontiguousarray(values).view(np.uint32).astype(np.uint64)
    half = np.uint64(1 << (dropped - 1))
    odd = (bits >> np.uint64(dropped)) & np.uint64(1)
    rounded = (bits + half - np.uint64(1) + odd) & ~np.uint64((1 << dropped) - 1)
    result: Float32 = rounded.astype(np.uint32).view(np.float32)
    return result.reshape(values.shape)


def read_as(values: Float32, reading: Reading) -> Float32:
    """Values as a kernel reads them: rounded, and as far as its storage has bits for small ones."""
    values = round_to(values, reading.precision)
    if reading.precision != "float16":
        return values
    unit = np.float32(2.0**-24)  # of those below 2⁻¹⁴
    found: Float32 = np.where(np.abs(values) < 2.0**-14, np.rint(values / unit) * unit, values)
    return found


def common(readings: Sequence[Reading]) -> Reading:
    """What suits kernels that share their inputs: the coarsest precision, the narrowest range.

    They lie in memory alike.
    """
    precision = min((reading.precision for reading in readings), key=SIGNIFICAND_BITS.__getitem__)
    lows, highs = zip(*(reading.exponents for reading in readings), strict=True)
    return Reading(
        precision,
        readings[0].storage,
        (max(lows), min(highs)),
        exact=all(reading.exact for reading in readings),
        sums_in=readings[0].sums_in,
        result=readings[0].result,
        reads_C=any(reading.reads_C for reading in readings),
    )


def shifts(reading: Reading) -> tuple[int, int]:
    """How far one input may be scaled up and another down, as powers of two.

    Beyond the range of float16, and not so far that fractions would become whole numbers. Room is
    left for inputs that are not all near 1, and for the smallest of them: those that lie in memory
    as float16 would lose bits when scaled down.
    """
    if reading.result == "float16" or reading.sums_in == "float16":
        return 0, 0  # whose range large and small sums would leave
    low, high = reading.exponents
    down = 0 if reading.precision == "float16" else -low - 4
    return min(18, max(0, high - 4)), min(18, max(0, down))


#: Of numbers near 1, these make up little.
_LARGEST_LEAST = 2.0**-4


def least(reading: Reading) -> float:
    """The size below which an input may lose bits: as given, or when a sample scales it down.

    0 for kernels that take all that float32 holds, and for those that read float16, whose inputs
    are not scaled down. A claim of a range that begins near 1 does not widen the bound further.
    """
    low = reading.exponents[0]
    if low <= -126 or reading.precision == "float16":
        return 0.0
    return min(_LARGEST_LEAST, 2.0 ** (low + shifts(reading)[1]))


class Bound(NamedTuple):
    """How far an element may be off: `of_S`·S + `of_R`·|R| + `least`."""

    of_S: float
    of_R: float = 0.0
    least: float = 0.0

    def of(self, R: Float64, S: Float64) -> Float64:
        found: Float64 = self.of_S * S + self.of_R * np.abs(R) + self.least
        return found


def bound(kernel: Kernel, problem: Problem) -> Bound:
    """What rounding may do to a kernel's results: to its sums, and to what it stores of them.

    Multiplying by alpha rounds once more, and adding beta·C twice: to the type of C, if that is
    narrower. The reference of float64 sums is itself rounded once.
    """
    reading = kernel.reading
    unit = UNIT_ROUNDOFF[reading.sums_in]
    factor = error_factor(
        workloads.of(problem).terms(problem),
        kernel.error_constant * U32 / unit,
        truncated=kernel.truncates,
    )
    scaled = (problem.alpha != 1) + 2 * (problem.beta != 0)
    factor += scaled + 2 * (reading.sums_in == "float64")
    stored = UNIT_ROUNDOFF.get(reading.result, 0.0)
    if stored <= unit:
        return Bound(factor * unit)
    least = 2.0**-25 if reading.result == "float16" else 0.0  # it has no numbers below
    return Bound(factor * unit + scaled * stored, stored, least)


def error_factor(K: int, constant: float = 0.0, *, truncated: bool = False) -> float:
    """How many times u·S an element may be off, with u = 2⁻²⁴.

    K + 1 is the classical bound for K products and their sum in any order. From K = 32 on the
    errors of a float32 sum behave like a random walk: 4·√K, Higham and Mary, "A new approach to
    probabilistic rounding error analysis", SIAM J. Sci. Comput. 41 (2019). A kernel beyond it
    computes with less precision than it declares. `constant` is what a kernel declares that each
    product loses before it is added: its share of the sum does not grow with K.

    Sums that are `truncated` have a bias besides, which grows with K itself when all products have
    one sign. On an H200 cuBLAS's TF32 product is K/8 off: twice that is allowed for.
    """
    factor = min(K + 1, 4 * math.sqrt(K)) if K >= 32 else K + 1
    return constant + (max(2 * factor, K / 4) if truncated else factor)


#: Where only right or wrong is asked for.
UNKNOWN = Accuracy(None, None, None)


class Verdict(NamedTuple):
    """What comparing C with a trial gave: all counts over its elements."""

    accuracy: Accuracy
    wrong: int
    first_wrong: int | None


def judge(C: Array, trial: Trial, bound: Bound) -> Verdict:
    """Compare C with a trial on the host; the device's own comparison must agree with this one."""
    if trial.exact is not None:
        bad = ~(trial.exact == C)
        return _verdict(bad, UNKNOWN)
    assert trial.R is not None and trial.S is not None
    with np.errstate(all="ignore"):
        error = np.abs(C.astype(np.float64) - trial.R)
        allowed = bound.of(trial.R, trial.S)
        bad = ~(error <= allowed)
        share = np.where(allowed > 0, error / allowed, np.where(error == 0, 0.0, np.inf))
        scale = np.abs(trial.R) if trial.scale is None else trial.scale
        nonzero = scale != 0
        relative = error[nonzero] / scale[nonzero]
        accuracy = accuracy_of(
            float(relative.max(initial=0.0)),
            float(relative.sum()),
            int(nonzero.sum()),
            float(share.max(initial=0.0)),
        )
    return _verdict(bad, accuracy)


def total(parts: Array) -> Array:
    """What the host makes of one partial sum per block: their sum, 1×1, without overflow."""
    wide = np.int64 if parts.dtype == np.int32 else np.float64
    found: Array = np.sum(parts, dtype=wide).reshape(1, 1)
    return found if wide == np.int64 else found.astype(np.float32)


def accuracy_of(largest: float, total: float, count: int, share: float) -> Accuracy:
    """Accuracy from its sums; what is not finite or not defined is None."""

    def known(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return Accuracy(
        max_rel_err=known(largest) if count else None,
        avg_rel_err=known(total / count) if count else None,
        bound_ratio=known(share),
    )


def _verdict(bad: npt.NDArray[np.bool_], accuracy: Accuracy) -> Verdict:
    wrong = int(bad.sum())
    return Verdict(accuracy, wrong, int(bad.argmax()) if wrong else None)
