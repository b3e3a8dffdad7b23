"""The dot product: references that take N = 2³⁰, exact trials spread over all of it."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from matbench.cache import Cache
from matbench.measure.oracle import Float32, Trial, Trials, draw, generator, round_to, shifts
from matbench.model import Problem, Reading

#: Float64 copies are made of so many elements at a time.
_CHUNK = 2**20
#: So many products of at most 4 each add up exactly in float32, in any order.
_MOST_TERMS = 2**22


def trials(problem: Problem, reading: Reading, cache: Cache) -> Trials:
    """All four kinds."""
    with ThreadPoolExecutor() as at_once:  # NumPy leaves the other cores alone
        integers = at_once.submit(integer_trial, problem)
        given = reference_trial(problem, *inputs(problem))
        reference = given
        if reading.precision != "float32":
            rounded = (round_to(values, reading.precision) for values in given.inputs)
            reference = reference_trial(problem, *rounded)
        selection = at_once.submit(selection_trials, problem, reference)
        fresh = fresh_trial(problem, reference, shifts(reading))
    others = {
        "integers": [integers.result()],
        "selection": list(selection.result()),
        "fresh": [fresh],
    }
    return Trials(reference, None if reference is given else given, others)


def inputs(problem: Problem) -> tuple[Float32, Float32]:
    """a and b, 1×N each. A `ramp` is aᵢ = i and bᵢ = 2i, as far as float32 can say it."""
    if problem.inputs == "ramp":
        a = np.arange(problem.N, dtype=np.float32).reshape(1, -1)
        return a, 2 * a
    with ThreadPoolExecutor(2) as at_once:
        a, b = at_once.map(lambda purpose: draw(problem, purpose, 1, problem.N), "AB")
    return a, b


def closed_form(N: int) -> int:
    """Σ i·2i over i < N: (N − 1)·N·(2N − 1) / 3."""
    return (N - 1) * N * (2 * N - 1) // 3


def product(a: Float32, b: Float32) -> tuple[float, float]:
    """Σ a·b and Σ |a·b| in float64; sums of chunks are added without further error."""

    def sums(start: int) -> tuple[float, float]:
        terms = a[0, start : start + _CHUNK].astype(np.float64)
        terms *= b[0, start : start + _CHUNK]
        total = float(terms.sum())
        return total, float(np.abs(terms, out=terms).sum())

    with ThreadPoolExecutor() as at_once:
        totals, sizes = zip(*at_once.map(sums, range(0, a.shape[1], _CHUNK)), strict=True)
    return math.fsum(totals), math.fsum(sizes)


def _trial(name: str, a: Float32, b: Float32, total: float, size: float) -> Trial:
    """Errors are shown relative to Σ|a·b|: of signed inputs no float32 sum comes near Σ a·b."""
    R, S = np.full((1, 1), total), np.full((1, 1), size)
    return Trial(name, (a, b), R=R, S=S, scale=S)


def reference_trial(problem: Problem, a: Float32, b: Float32) -> Trial:
    """The problem's own inputs; a ramp's answer is known without adding anything up."""
    if problem.inputs == "ramp" and problem.N <= 2**24 and a[0, -1] == problem.N - 1:
        total = size = float(closed_form(problem.N))
    else:
        total, size = product(a, b)
    return _trial("reference", a, b, total, size)


def fresh_trial(problem: Problem, trial: Trial, scaled: tuple[int, int] = (0, 0)) -> Trial:
    """The same terms elsewhere, with the other sign; a scaled up and b down by powers of two."""
    assert trial.R is not None and trial.S is not None
    shift = int(generator(problem, "fresh").integers(problem.N))
    factors = -(2.0 ** scaled[0]), 2.0 ** -scaled[1]

    def moved(values: Float32, factor: float) -> Float32:
        rolled = np.roll(values, shift, axis=1)
        rolled *= np.float32(factor)
        return rolled

    with ThreadPoolExecutor(2) as at_once:
        a, b = at_once.map(moved, trial.inputs, factors)
    factor = factors[0] * factors[1]
    return _trial("fresh", a, b, factor * float(trial.R[0, 0]), -factor * float(trial.S[0, 0]))


def integer_trial(problem: Problem) -> Trial:
    """Whole numbers, most of them zero where N is large, so that Σ|a·b| ≤ 2²⁴."""
    random = generator(problem, "integers")
    N = problem.N

    def small(count: int) -> Float32:
        return random.integers(-2, 2, (1, count), np.int8, endpoint=True).astype(np.float32)

    if N <= _MOST_TERMS:
        a, b = small(N), small(N)
    else:
        a, b = np.zeros((1, N), np.float32), small(N)
        a[0, random.integers(N, size=_MOST_TERMS - 1)] = small(_MOST_TERMS - 1)
    a[0, -1], b[0, -1] = 1, 3  # the last one counts
    total, _ = product(a, b)
    return Trial("integers", (a, b), exact=np.full((1, 1), total, np.float32))


def selection_trials(problem: Problem, trial: Trial) -> tuple[Trial, Trial]:
    """One input is 1 in a single place, the last or any, and picks what stands there."""
    a, b = trial.inputs
    place = int(generator(problem, "selection").integers(problem.N))
    last, one = np.zeros(a.shape, np.float32), np.zeros(a.shape, np.float32)
    last[0, -1], one[0, place] = 1, 1
    return (
        Trial("selection", (a, last), exact=a[:, -1:].copy()),
        Trial("selection", (one, b), exact=b[:, place : place + 1].copy()),
    )
