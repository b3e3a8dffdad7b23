"""The dot product: references up to N = 2³⁰, and exact trials that cover all of N."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from matbench.cache import Cache
from matbench.model import NumericContract, Problem
from matbench.workloads.oracle import (
    Array,
    Float32,
    Trial,
    Trials,
    Typical,
    draw,
    generator,
    read_as,
)

#: Float64 copies are made of this many elements at a time.
_CHUNK = 2**20
#: This many products of at most 4 have an exact float32 sum in any order.
_MOST_TERMS = 2**22


def trials(problem: Problem, contract: NumericContract, cache: Cache) -> Trials:
    """All kinds but samples."""
    with ThreadPoolExecutor() as at_once:  # NumPy uses only one core
        integers = at_once.submit(integer_trial, problem)
        given = reference_trial(problem, *inputs(problem))
        reference = given
        if contract.precision != "float32":
            rounded = (read_as(values, contract) for values in given.inputs)
            reference = reference_trial(problem, *rounded)
        # One input is 1 in a single place, the last or a random one, and selects that element.
        a, b = reference.inputs
        place = int(generator(problem, "selection").integers(problem.N))
        last, chosen = np.zeros(a.shape, np.float32), np.zeros(a.shape, np.float32)
        last[0, -1], chosen[0, place] = 1, 1
        of_a = Trial("selection", (a, last), exact=a[:, -1:].copy())
        of_b = Trial("selection", (chosen, b), exact=b[:, place : place + 1].copy())
    others = (integers.result, lambda: of_a, lambda: of_b)
    return Trials(reference, None if reference is given else given, others)


def inputs(problem: Problem) -> tuple[Float32, Float32]:
    """a and b, 1×N each. A `ramp` is aᵢ = i and bᵢ = 2i, rounded to float32."""
    if problem.inputs == "ramp":
        a = np.arange(problem.N, dtype=np.float32).reshape(1, -1)
        return a, 2 * a
    with ThreadPoolExecutor(2) as at_once:
        a, b = at_once.map(lambda purpose: draw(problem, purpose, 1, problem.N), "AB")
    return a, b


def closed_form(N: int) -> int:
    """Σ i·2i over i < N: (N − 1)·N·(2N − 1) / 3."""
    return (N - 1) * N * (2 * N - 1) // 3


def product(a: Array, b: Array) -> tuple[float, float, float]:
    """Σ a·b, Σ |a·b| and Σ (a·b)² in float64; sums of chunks are added without further error."""

    def sums(start: int) -> tuple[float, float, float]:
        terms = a[0, start : start + _CHUNK].astype(np.float64)
        terms *= b[0, start : start + _CHUNK]
        total, squares = float(terms.sum()), float(terms @ terms)
        return total, float(np.abs(terms, out=terms).sum()), squares

    with ThreadPoolExecutor() as at_once:
        every = zip(*at_once.map(sums, range(0, a.shape[1], _CHUNK)), strict=True)
    total, size, squares = map(math.fsum, every)
    return total, size, squares


def _trial(name: str, a: Array, b: Array, total: float, size: float) -> Trial:
    """Errors are relative to Σ|a·b|: with signed inputs, no float32 sum is close to Σ a·b."""
    R, S = np.full((1, 1), total), np.full((1, 1), size)
    return Trial(name, (a, b), R=R, S=S, scale=S)


def reference_trial(problem: Problem, a: Float32, b: Float32) -> Trial:
    """The problem's own inputs; a ramp's result has a closed form."""
    if problem.inputs == "ramp" and problem.N <= 2**24 and a[0, -1] == problem.N - 1:
        total = size = float(closed_form(problem.N))
    else:
        total, size, _ = product(a, b)
    return _trial("reference", a, b, total, size)


def sample_trial(a: Array, b: Array, *, typical: bool) -> Trial:
    """What is expected of a launch's inputs, whose terms have random signs if that is `typical`.

    Against the bound for random signs, neither 0 nor a sum of some terms, scaled up, comes close.
    """
    total, size, squares = product(a, b)
    of_sum = Typical(np.full((1, 1), math.sqrt(squares)), np.zeros(1, bool))
    return _trial("sample", a, b, total, size)._replace(typical=of_sum if typical else None)


def integer_trial(problem: Problem) -> Trial:
    """Integers, most of them zero if N is large, so that Σ|a·b| ≤ 2²⁴."""
    random = generator(problem, "integers")
    N = problem.N

    def small(count: int) -> Float32:
        return random.integers(-2, 2, (1, count), np.int8, endpoint=True).astype(np.float32)

    if N <= _MOST_TERMS:
        a, b = small(N), small(N)
    else:
        a, b = np.zeros((1, N), np.float32), small(N)
        a[0, random.integers(N, size=_MOST_TERMS - 1)] = small(_MOST_TERMS - 1)
    a[0, -1], b[0, -1] = 1, 3  # to check that the last term is read
    total, _, _ = product(a, b)
    return Trial("integers", (a, b), exact=np.full((1, 1), total, np.float32))
