"""Grades a kernel: multiplies chosen inputs with it, and states what the results show.

Each step makes one or two statements and stands alone, so that a kernel that fails in one is still
described by the others. Everything random follows from the seed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from matbench.bench.kernel_arguments import Float64
from matbench.bench.session import Session
from matbench.errors import BuildError, CaseError
from matbench.features.grade import accuracy, order_probes, record
from matbench.features.grade.multiplier import Multiplier
from matbench.kernelfile import sweep
from matbench.model import EIGHT_BITS, UNIT_ROUNDOFF, Case, DeviceInfo, Kernel
from matbench.records.outcome import CaseRecord
from matbench.show.reasons import skip_reason
from matbench.worker.worker import LateError, Worker
from matbench.workloads import rounding
from matbench.workloads.doubled import product

#: Rows and columns of C in most products, so that a launch has several blocks.
_SIDE = 48
_RUNS = 100
_BATCHES = (1, 2, 7, 64, 1000)
#: How many values of one constant are compared.
_MOST_VALUES = 4
#: Errors by element have grown if they are so many times those without a spread, and more than
#: some roundings.
_GROWN, _SOME = 4.0, 8.0
#: After so many steps that miss their deadline, a kernel is given up.
_MOST_LATE = 2
#: The largest K for the growth of errors, and the number of seeds.
_LARGEST_K = {"gpu": 4096, "cpu": 1024}
_SEEDS = 4


def growth(subject: Multiplier) -> record.Growth:
    """Errors by element on uniform inputs, for K from 16 to the largest."""
    largest_K = _LARGEST_K[subject.info.kind]
    points = []
    for power in range(4, largest_K.bit_length()):
        for seed in range(_SEEDS):
            random = subject.random(f"growth {power} {seed}")
            A = subject.uniform(random, _SIDE, 1 << power)
            B = subject.uniform(random, 1 << power, _SIDE)
            points.append((1 << power, subject.errors(A, B).by_element))
    short = subject.storage in EIGHT_BITS
    return accuracy.growth(points, len(points) * _SIDE**2, short=short)


def bounds(subject: Multiplier) -> record.Bounds:
    """Errors on uniform inputs, on rows and columns of different sizes, and on terms of one size
    from factors of different sizes."""
    random = subject.random("bounds")
    spread = subject.widest // 2
    reach = max(1, min(12, spread // 4))
    errors = []
    for K in (1, 4, 16, 64):
        for _ in range(2):
            A, B = subject.near_one(random, _SIDE, K), subject.near_one(random, K, _SIDE)
            rows = np.ldexp(1.0, random.integers(-reach, reach + 1, (_SIDE, 1)))
            columns = np.ldexp(1.0, random.integers(-reach, reach + 1, (1, _SIDE)))
            inner = np.ldexp(1.0, random.integers(-spread // 2, spread // 2 + 1, K))
            errors.append(subject.errors(A, B))
            errors.append(subject.errors(A, B, rows=rows, columns=columns))
            errors.append(subject.errors(A, B, inner=inner))
    return accuracy.bounds(errors, len(errors) * _SIDE**2, subject.result)


def algorithm(subject: Multiplier) -> record.Algorithm:
    """Some rows of A and columns of B are zero: so are those of C, if no other row or column enters
    their sums."""
    random = subject.random("zeros")
    nonzeros = probes = 0
    for K in (32, 64, 128):
        A, B = subject.uniform(random, K, K), subject.uniform(random, K, K)
        A[random.random(K) < 0.5] = 0
        B[:, random.random(K) < 0.5] = 0
        C = subject.multiply(A, B)
        zero = ~(np.any(A, axis=1)[:, None] & np.any(B, axis=0))
        nonzeros += int(np.count_nonzero(C[zero]))
        probes += int(zero.sum())
    if not np.isfinite(C).all():
        return record.Algorithm(probes=probes, reason="C is not finite")
    verdict: Literal["classical", "Strassen-like"] = "Strassen-like" if nonzeros else "classical"
    return record.Algorithm(verdict=verdict, nonzeros=nonzeros, probes=probes)


def range_(subject: Multiplier) -> record.Range:
    """Terms a·d times b/d, for powers of two d that spread wider and wider."""
    K, accurate, probes = 64, 0, 0
    random = subject.random("range")
    A, B = subject.near_one(random, _SIDE, K), subject.near_one(random, K, _SIDE)
    at_first = subject.errors(A, B).by_element
    limit, widest = max(_SOME, _GROWN * at_first), subject.widest
    for tried in (*(s for s in (2, 4, 8, 16, 32, 64, 96, 128, 160) if s < widest), widest):
        powers = np.rint(np.linspace(-tried / 2, tried / 2, K)).astype(int)
        inner = np.ldexp(1.0, random.permutation(powers))
        error = subject.errors(A, B, inner=inner).by_element
        probes += _SIDE**2
        if not error <= limit:
            break
        accurate = tried
    if not math.isfinite(at_first):
        return record.Range(probes=probes, reason="C is not finite")
    verdict: Literal["whole", "limited"] = "whole" if accurate == widest else "limited"
    return record.Range(verdict=verdict, binades=accurate, tried=widest, probes=probes)


def specials(subject: Multiplier) -> record.Specials:
    """NaN, infinities, overflow and subnormals in one row of A and one column of B."""
    K = side = 16
    row, column, k, other = 3, 5, 7, 11
    bits, least, most = rounding.FORMATS[subject.storage]
    random = subject.random("specials")
    differ: dict[str, str] = {}
    probes = 3 * side * side
    large = 1.5 * 2.0**most  # twice that is infinite
    inf, every = math.inf, slice(None)
    sums = [(k, every, 2.0**-10), (other, every, 2.0**-10), (k, column, 1), (other, column, 1)]
    # What each sets in A and in B: row, column, number.
    entered: dict[str, tuple[list[Any], list[Any]]] = {
        "NaN in A": ([(row, k, math.nan)], []),
        "NaN in B": ([], [(k, column, math.nan)]),
        "Inf in A": ([(row, k, inf)], []),
        "-Inf in B": ([], [(k, column, -inf)]),
        "Inf · 0": ([(row, k, inf)], [(k, column, 0.0)]),
        "Inf - Inf": ([(row, k, inf), (row, other, inf)], [(k, column, 1), (other, column, -1)]),
        "overflow": ([(row, k, large), (row, other, large)], sums),
        "-overflow": ([(row, k, -large), (row, other, -large)], sums),
        "no overflow": ([(row, every, 0), (row, k, large)], sums),
    }
    for name, entries in entered.items():
        A, B = subject.signed(random, side, K), subject.signed(random, K, side)
        for matrix, changes in zip((A, B), entries, strict=True):
            matrix[matrix == 0] = 0.5
            for i, j, value in changes:
                matrix[i, j] = value
        A, B = subject.stored(A), subject.stored(B)
        C = subject.multiply(A, B)
        with np.errstate(all="ignore"):
            R = rounding.nearest(A @ B, subject.result)
        probes += C.size
        if mistake := accuracy.mistaken(C, R):
            differ[name] = mistake

    def fate(C: Float64, R: Float64) -> record.Subnormals:
        return "kept" if np.array_equal(C, R) else "partly" if C.any() else "flushed"

    small = 2.0 ** (least - min(6, bits - 2))
    A, B = np.zeros((side, K)), np.zeros((K, side))
    A[:, k], B[k] = small, 2.0 ** min(12, most - 2)
    inputs = {fate(subject.multiply(A, B), A @ B), fate(subject.multiply(B.T, A.T), (A @ B).T)}
    results = None
    _, result_least, _ = rounding.FORMATS[subject.result]
    half = (result_least - 4) // 2
    if half >= least:
        A[:, k] = B[k] = 2.0**half
        results = fate(subject.multiply(A, B), A @ B)
    return record.Specials(
        verdict="differ" if differ else "as IEEE",
        differ=differ,
        subnormal_inputs=inputs.pop() if len(inputs) == 1 else "partly",
        subnormal_results=results,
        probes=probes,
    )


def runs(subject: Multiplier) -> record.Runs:
    """The same inputs again and again."""
    random = subject.random("runs")
    A, B = subject.signed(random, 64, 256), subject.signed(random, 256, 64)
    first = subject.multiply(A, B).tobytes()
    differ = sum(subject.multiply(A, B).tobytes() != first for _ in range(_RUNS - 1))
    return record.Runs(
        verdict="differ" if differ else "same bits", runs=_RUNS, differ=differ, probes=_RUNS * 64**2
    )


def batches(subject: Multiplier) -> record.Batches:
    """One row among others: alone, repeated in all rows, and among rows of other sizes."""
    random = subject.random("batches")
    K, N = 256, 64
    row, B = subject.signed(random, 1, K), subject.signed(random, K, N)
    sizes = {M: subject.case(M, N, K).problem.M for M in _BATCHES}
    if len(set(sizes.values())) == 1:
        return record.Batches(reason="the kernel accepts only one number of rows of these")
    alone = subject.multiply(row, B)
    differ, probes = [], N
    for M in _BATCHES:
        equal = subject.multiply(np.repeat(row, M, axis=0), B)
        others = subject.stored(subject.signed(random, M, K) * 2.0**6)
        others[[M // 2, M - 1]] = row
        mixed = subject.multiply(others, B)[[M // 2, M - 1]]
        probes += equal.size + mixed.size
        if not all(np.array_equal(alone[0], result) for result in (*equal, *mixed)):
            differ.append(M)
    verdict: Literal["varies", "invariant"] = "varies" if differ else "invariant"
    return record.Batches(verdict=verdict, rows=_BATCHES, differ_at=tuple(differ), probes=probes)


def variations(case: Case, device: DeviceInfo) -> list[tuple[str, Case]]:
    """The case with one constant changed, and that constant's name, for a few values of each."""
    variants: list[tuple[str, Case]] = []
    for name, values in case.kernel.sweep.items():
        others = [value for value in values if value != case.params[name]][: _MOST_VALUES - 1]
        changed = (case.params | {name: value} for value in others)
        cases = (sweep.case(case.kernel, case.problem, params, device) for params in changed)
        variants += ((name, other) for other in cases if other.skip is None)
    return variants


def constants(subject: Multiplier) -> record.Constants:
    """Each swept constant with other values, while the rest keep theirs."""
    random = subject.random("constants")
    A, B = subject.signed(random, 64, 256), subject.signed(random, 256, 64)
    first = subject.multiply(A, B)
    varied = variations(subject.case(64, 64, 256), subject.info)
    differ = []
    for name, case in varied:
        other = Multiplier(subject.backend, subject.build, subject.kernel, case.params, 0)
        if not np.array_equal(other.multiply(A, B), first):
            differ.append(name)
    if not varied:
        return record.Constants(reason="no other values of constants to try")
    return record.Constants(
        verdict="differ" if differ else "same bits",
        tried=tuple(dict.fromkeys(name for name, _ in varied)),
        differ=tuple(dict.fromkeys(differ)),
        probes=first.size * (1 + len(varied)),
    )


def ulps(subject: Multiplier) -> tuple[record.Ulps, ...]:
    """Errors in units in the last place on four kinds of inputs."""
    K, half = 256, 128
    errors = []
    for kind in ("uniform", "signed", "normal", "ill-conditioned"):
        random = subject.random(f"ulps {kind}")
        if kind == "normal":
            A = subject.stored(random.standard_normal((_SIDE, K)))
            B = subject.stored(random.standard_normal((K, _SIDE)))
        else:
            draw = subject.uniform if kind == "uniform" else subject.signed
            A, B = draw(random, _SIDE, K), draw(random, K, _SIDE)
        if kind == "ill-conditioned":  # the second half of a sum nearly cancels the first
            A[:, half:] = subject.stored(A[:, :half] * (1 + 2.0**-6 * random.random((_SIDE, half))))
            B[half:] = -B[:half]
        errors.append(accuracy.ulps(subject.multiply(A, B), product(A, B), subject.result, kind))
    return tuple(errors)


class GradeStep(NamedTuple):
    """A step: what it does, in words, and the statement that says why it failed."""

    run: Callable[[Multiplier], Any]
    doing: str
    failed: type[record.Statement] | None = None


#: The steps by the field of a `Grade` that they fill; `order` also makes `sums`.
STEPS = {
    "bounds": GradeStep(bounds, "bounds of errors", record.Bounds),
    "growth": GradeStep(growth, "growth of errors", record.Growth),
    "algorithm": GradeStep(algorithm, "sums of zeros", record.Algorithm),
    "range": GradeStep(range_, "range of exponents", record.Range),
    "specials": GradeStep(specials, "special values", record.Specials),
    "order": GradeStep(
        lambda subject: order_probes.order_and_sums(subject, subject.random("order")),
        "order of addition",
        record.Order,
    ),
    "ulps": GradeStep(ulps, "units in the last place"),
    "batches": GradeStep(batches, "numbers of rows", record.Batches),
    "constants": GradeStep(constants, "constants", record.Constants),
    "runs": GradeStep(runs, "repeated runs", record.Runs),
}


def graded(
    session: Session, kernel: Kernel, params: dict[str, int], name: str, seed: int
) -> record.Statements:
    """The statements of one step on a device; `CaseError` if a launch fails."""
    return step(Multiplier(session.backend, session.program, kernel, params, seed), name)


def step(subject: Multiplier, name: str) -> record.Statements:
    """The statements of one step; `CaseError` if a launch fails."""
    made = STEPS[name].run(subject)
    if name == "order":
        return record.Statements(order=made[0], sums=made[1])
    return record.Statements(**{name: made})


def grade(
    worker: Worker, case: Case, seed: int, name: str, on_progress: Callable[[str], None]
) -> record.Grade:
    """Grade one case's kernel with its parameters; `on_progress` is told its name and each step."""
    about, u = CaseRecord.from_case(case, worker.device), UNIT_ROUNDOFF[case.kernel.contract.result]
    blank = record.Grade(case=about, letter="unclear", u=u, seed=seed, duration_s=0.0)
    if case.skip is not None:
        return msgspec.structs.replace(blank, reason=skip_reason(case.skip))
    started, late = time.monotonic(), 0
    statements: dict[str, Any] = {}
    for field, step in STEPS.items():
        on_progress(f"{name}: {step.doing}")
        try:
            made = worker.run(graded, case.kernel, case.params, field, seed, case=case)
            statements |= {key: one for key, one in msgspec.structs.asdict(made).items() if one}
        except CaseError as error:
            late += isinstance(error, LateError)
            if isinstance(error, BuildError) or late >= _MOST_LATE:
                return msgspec.structs.replace(blank, reason=error.reason)
            statements[field] = step.failed(reason=error.reason) if step.failed is not None else ()
    if statements["runs"].verdict == "differ":
        order, rows = (statements[name].probes for name in ("order", "batches"))
        statements["order"] = record.Order(verdict="varies", reason="runs differ", probes=order)
        statements["batches"] = record.Batches(reason="runs differ", probes=rows)
    return msgspec.structs.replace(
        blank,
        letter=accuracy.letter(statements["bounds"], statements["growth"], statements["algorithm"]),
        duration_s=time.monotonic() - started,
        **statements,
    )
