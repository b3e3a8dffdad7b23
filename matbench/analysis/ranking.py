"""Ranks the cases of one device, workload and problem by the same kind of samples.

Only measured cases are ranked, and CPUs never against GPUs. Kernels whose claims weaken a check are
ranked among themselves, below the others, and so are kernels with float64 results.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from matbench import workloads
from matbench.analysis import limits, statistics
from matbench.analysis.statistics import Vector
from matbench.model import EIGHT_BITS, INTEGERS, DeviceInfo, Precision, Problem
from matbench.records.outcome import Claims, Outcome, Status, Timing

#: The order of rows without a time.
STATUSES: tuple[Status, ...] = ("measured", "wrong", "failed", "skipped")
#: The product of cuBLAS that a kernel is compared with, by workload and precision.
CUBLAS: dict[tuple[str, Precision], str] = {
    ("matmul", "float32"): "cublas",
    ("matmul", "tf32"): "cublas-tf32",
    ("matmul", "bfloat16"): "cublas-bf16",
    ("matmul", "float16"): "cublas-f16",
    ("matmul", "float64"): "cublas-f64",
    ("matmul", "e4m3"): "cublaslt-fp8",
    ("matmul", "int8"): "cublaslt-int8",
    ("dot", "float32"): "cublas-dot",
}
#: The one with factors for rows and columns.
_BY_ROWS = {"cublaslt-fp8": "cublaslt-fp8-rowwise"}


@dataclass(frozen=True)
class Ranked:
    """An outcome and its place in its ranking; fields are None if it is not ranked.

    `spread` and `of_limit` are shares, `of_cublas` and `of_numpy` are cuBLAS's and NumPy's time
    over its own, and `times_slowest` the slowest's. `rivals` counts the cases of the ranking,
    itself included, and `leads` says that none of them is known to be faster. `claims` are those
    that weaken a check, in words.
    """

    outcome: Outcome
    spread: float | None = None
    work_per_s: float | None = None
    times_slowest: float | None = None
    of_cublas: float | None = None
    of_numpy: float | None = None
    of_limit: float | None = None
    leads: bool = False
    rivals: int = 0
    claims: tuple[str, ...] = ()

    @property
    def best(self) -> bool:
        return self.leads and not self.claims

    @property
    def is_double(self) -> bool:
        return self.outcome.case.claims.result == "float64"

    @property
    def sustained_per_s(self) -> float | None:
        sustained = self.outcome.sustained
        return None if sustained is None else self.work / sustained.mean_ns * 1e9

    @property
    def work_per_j(self) -> float | None:
        sustained = self.outcome.sustained
        energy_j = None if sustained is None else sustained.energy_j
        return self.work / energy_j if energy_j else None

    @property
    def work(self) -> int:
        """The work of its problem: operations, or bytes."""
        return workloads.work_of(self.outcome.case.problem)

    def giga_per_s(self, rate: Literal["FLOP/s", "B/s"]) -> float | None:
        """Its speed in 10⁹ of that unit; None if its work is of the other."""
        is_its = workloads.workload_of(self.outcome.case.problem).rate == rate
        return self.work_per_s / 1e9 if self.work_per_s and is_its else None

    @property
    def hot(self) -> Timing | None:
        """The hot samples, if it is ranked by cold ones."""
        return self.outcome.hot if self.outcome.cold is not None else None

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the case, and on the samples that it is ranked by."""
        timing = self.outcome.timing
        return (*(timing.notes if timing is not None else ()), *self.outcome.notes)


@dataclass(frozen=True)
class DeviceRanking:
    """The problems of one workload on one device, the least work first; the cases of each fastest
    first, float64 after float32, claims after no claims.

    `baselines`: the CPU baselines of a sweep on another device.
    """

    workload: workloads.Workload
    baselines: bool
    problems: Mapping[Problem, tuple[Ranked, ...]]

    @property
    def rows(self) -> list[Ranked]:
        return [row for rows in self.problems.values() for row in rows]


def tables(outcomes: Iterable[Outcome], devices: Sequence[DeviceInfo] = ()) -> list[DeviceRanking]:
    """A ranking for each device and workload: GPUs first, baselines on the CPU last, unless there
    are kernels on the same CPU."""
    names, outcomes = list(workloads.WORKLOADS), list(outcomes)
    kernels = (
        o.case for o in outcomes if o.case.device_kind == "cpu" and o.case.group != "baseline"
    )
    beside = {(case.problem.workload, case.device): case.backend for case in kernels}
    by_place: dict[tuple[bool, bool, int, str, str], dict[Problem, list[Outcome]]] = {}
    for outcome in outcomes:
        case, backend = outcome.case, outcome.case.backend
        on_cpu = case.device_kind == "cpu"
        if on_cpu and case.group == "baseline":
            backend = beside.get((case.problem.workload, case.device), "")
        place = (not backend, on_cpu, names.index(case.problem.workload), backend, case.device)
        # The seed of the inputs does not affect the time.
        problem = msgspec.structs.replace(case.problem, seed=0)
        by_place.setdefault(place, {}).setdefault(problem, []).append(outcome)
    return [
        DeviceRanking(
            workloads.WORKLOADS[names[place[2]]],
            place[0],
            {one: rank(problems[one], devices) for one in sorted(problems, key=_by_work)},
        )
        for place, problems in sorted(by_place.items(), key=lambda item: item[0][:3])
    ]


def _by_work(problem: Problem) -> tuple[int, str, bool, str]:
    workload = workloads.workload_of(problem)
    usual = problem.inputs == workload.inputs[0]
    return workload.work(problem), problem.size, not usual, problem.inputs


def rank(outcomes: Iterable[Outcome], devices: Sequence[DeviceInfo] = ()) -> tuple[Ranked, ...]:
    """The outcomes of one device and problem, fastest first: without claims, then with claims.

    Cold and hot samples are ranked separately, and so are float64 results, which come after the
    others. Outcomes without a time come last.
    """

    def contest(outcome: Outcome) -> tuple[bool, bool, str]:
        stated = outcome.case.claims
        claimed = bool(weakening(stated))
        return claimed, stated.result == "float64", outcome.mode or ""

    def order(outcome: Outcome) -> tuple[object, ...]:
        time = time_ns(outcome)
        among = contest(outcome)[:2] if time is not None else (False, False)
        return STATUSES.index(outcome.status), time is None, among, time or 0.0

    ordered = sorted(outcomes, key=order)
    contests: dict[tuple[bool, bool, str], list[tuple[float, Outcome]]] = {}
    baselines: dict[tuple[str | None, str], float] = {}
    for outcome in ordered:
        if (time := time_ns(outcome)) is not None:
            contests.setdefault(contest(outcome), []).append((time, outcome))
            if outcome.case.group == "baseline":  # a file's kernel may have any name
                baselines.setdefault((outcome.mode, outcome.case.kernel), time)
    leading = set()
    for rivals in contests.values():
        timings = [outcome.timing for _, outcome in rivals if outcome.timing is not None]
        flags = may_lead(timings, rivals[0][1].case.device_kind)
        leading |= {id(rival) for (_, rival), leads in zip(rivals, flags, strict=True) if leads}
    named = {(info.backend, info.name): info for info in devices}
    ranked = []
    for outcome in ordered:
        time, claimed = time_ns(outcome), weakening(outcome.case.claims)
        if time is None:
            ranked.append(Ranked(outcome, claims=claimed))
            continue
        case, rivals = outcome.case, contests[contest(outcome)]
        product = CUBLAS.get((case.problem.workload, case.claims.precision), "")
        product = _BY_ROWS.get(product, product) if case.claims.scales == "rows" else product
        numpy = "numpy" if case.claims.precision == "float32" else ""
        cublas_ns, numpy_ns = (baselines.get((outcome.mode, name)) for name in (product, numpy))
        work_per_s = workloads.work_of(case.problem) / time * 1e9
        ranked.append(
            Ranked(
                outcome,
                spread=spread(outcome.timing),
                work_per_s=work_per_s,
                times_slowest=rivals[-1][0] / time,
                of_cublas=cublas_ns and cublas_ns / time,
                of_numpy=numpy_ns and numpy_ns / time,
                of_limit=_of_limit(outcome, work_per_s, named.get((case.backend, case.device))),
                leads=id(outcome) in leading,
                rivals=len(rivals),
                claims=claimed,
            )
        )
    return tuple(ranked)


def time_ns(outcome: Outcome) -> float | None:
    """The time that a case is ranked by; None if it was not measured or has no time."""
    time = outcome.median_ns
    return time if outcome.status == "measured" and time is not None and time > 0 else None


def spread(timing: Timing | None) -> float | None:
    """Half the median's interval as a share of it; without one, half the interquartile range."""
    if timing is None:
        return None
    if timing.interval_ns is not None and timing.median_ns:
        low, high = timing.interval_ns
        return (high - low) / 2 / timing.median_ns
    return statistics.spread(timing.samples_ns)


def others_share(outcomes: Iterable[Outcome]) -> float | None:
    """The mean share of a CPU's time that other programs took while the cases were timed."""
    timed = [o.timing for o in outcomes if o.case.device_kind == "cpu" and o.timing is not None]
    moments = (moment for timing in timed for moment in timing.conditions[1:])
    shares = [moment.others_share for moment in moments if moment.others_share is not None]
    return sum(shares) / len(shares) if shares else None


def held_mhz(timing: Timing | None) -> float | None:
    """The mean SM clock while these samples were taken."""
    clocks = [moment.sm_mhz for moment in timing.conditions[1:] if moment.sm_mhz] if timing else []
    return sum(clocks) / len(clocks) if clocks else None


def sm_mhz(outcome: Outcome) -> float | None:
    """The SM clock while a case was sampled, or else while its blocks were timed."""
    if outcome.mode == "rotating" and outcome.sustained is not None:
        return outcome.sustained.sm_mhz
    stamped = outcome.blocks.sm_mhz if outcome.blocks is not None else None
    return held_mhz(outcome.timing) or stamped


def fastest_of(*outcomes: Outcome) -> Outcome:
    """The fastest parameters of one kernel on one problem; without a measured case, the first that
    is wrong, or else failed."""
    return min(outcomes, key=lambda one: (STATUSES.index(one.status), time_ns(one) or 0.0))


def fastest(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Each kernel at its fastest parameters, for each device, problem and kind of samples.

    A kernel without a measured case there keeps one outcome: wrong before failed before skipped.
    """
    best: dict[tuple[object, ...], Outcome] = {}
    for outcome in outcomes:
        mode = outcome.mode if outcome.status == "measured" else None
        key = (outcome.case.kernel, *outcome.case.contest, mode)
        best[key] = fastest_of(best.get(key, outcome), outcome)
    measured = {key[:-1] for key, one in best.items() if one.status == "measured"}
    return [o for key, o in best.items() if o.status == "measured" or key[:-1] not in measured]


def _of_limit(outcome: Outcome, per_s: float, device: DeviceInfo | None) -> float | None:
    """Its speed as a share of the device's limit, if that is known.

    Bytes are compared with the copy that was measured on the device, unless all of them fit in the
    cache, which is faster than memory. Operations are compared with the peak rate of the unit for
    the case's arithmetic at the clock during sampling.
    """
    case = outcome.case
    workload = workloads.workload_of(case.problem)
    if workload.rate == "B/s":
        moved = workload.least_bytes(case.problem)
        if device is not None and limits.held_by_cache(device, moved, outcome.mode):
            return None
        return per_s / outcome.copy_bytes_per_s if outcome.copy_bytes_per_s else None
    if device is None or device.kind == "cpu":
        return None
    most = limits.of_case(device, sm_mhz(outcome), case)
    return per_s / most if most else None


# Which of several cases may be the fastest, from how much their times vary between rounds. Samples
# of one round are closer together than the medians of rounds, in each of which all cases of a size
# take their turn: between rounds, clocks and other programs change. So cases with several rounds
# are compared by their medians, with the variance between rounds pooled over the cases, all with
# all (Tukey and Kramer's procedure); cases of one round by intervals, with a margin for others.

CONFIDENCE = 0.95
#: Smaller differences never decide: in one process, they may be fixed by where memory lies.
LEAST = {"gpu": 0.005, "cpu": 0.03}
#: The same for cases that were all timed in one round, so that nothing is known of others.
LEAST_OF_ONE_ROUND = {"gpu": 0.005, "cpu": 0.25}
#: The variance is that of cases that are less than so much slower than the fastest, as a logarithm.
_ALIKE = math.log(2)
#: So many rounds have one to spare at either end.
_LEAST_TRIMMED = 7


def round_medians_ns(timing: Timing) -> list[float]:
    """The median of each round, in nanoseconds; of all samples if they are of one round."""
    if not timing.rounds:
        return [timing.median_ns] if timing.median_ns is not None else []
    ends = list(itertools.accumulate(timing.rounds, initial=0))
    samples = timing.samples_ns
    return [float(np.median(samples[i:j])) for i, j in itertools.pairwise(ends) if j > i]


def may_lead(timings: Sequence[Timing], kind: Literal["gpu", "cpu"]) -> list[bool]:
    """Whether none of the others is known to be faster, for each; `kind` is that of the device.

    All have a positive median, and the one with the smallest leads. The probability that any
    difference between equal cases decides is at most 1 − `CONFIDENCE`.
    """
    if len(timings) == 1:
        return [True]
    cases = [_trimmed(np.log(round_medians_ns(timing))) for timing in timings]
    first = min(range(len(cases)), key=lambda place: timings[place].median_ns or math.inf)
    fastest, rounds, _ = cases[first]
    alike = [case for case in cases if case[0] - fastest < _ALIKE]
    freedom = sum(count - 1 for _, count, _ in alike)
    if not freedom:  # by the intervals of the medians, which tell nothing of other rounds
        ends_ns = [
            timing.interval_ns or (math.exp(mean), math.exp(mean))
            for timing, (mean, *_) in zip(timings, cases, strict=True)
        ]
        return [low <= (1 + LEAST_OF_ONE_ROUND[kind]) * ends_ns[first][1] for low, _ in ends_ns]
    deviation = math.sqrt(sum(squares for _, _, squares in alike) / freedom)
    width = deviation * studentized_range(len(alike), freedom) / math.sqrt(2)
    least = math.log1p(LEAST[kind])
    return [
        mean - fastest <= max(least, width * math.sqrt(1 / count + 1 / rounds))
        for mean, count, _ in cases
    ]


def _trimmed(logarithms: Vector) -> tuple[float, int, float]:
    """The mean of the rounds of a case, how many it is of, and the sum of squares around it; of
    seven or more, without the fastest and the slowest.

    A processor that is busy elsewhere slows a whole round. The squares are then those of winsorized
    values (K. K. Yuen, Biometrika 61, 1974).
    """
    x = np.sort(logarithms)
    kept = x
    if x.size >= _LEAST_TRIMMED:
        kept = x[1:-1]
        x = np.clip(x, x[1], x[-2])
    return float(kept.mean()), kept.size, float(np.square(x - x.mean()).sum())


@functools.lru_cache(maxsize=256)
def studentized_range(count: int, freedom: int) -> float:
    """The range of `count` ≥ 2 normal means over their estimated deviation, at `CONFIDENCE`.

    `freedom`: the degrees of freedom of the estimate. By numerical integration, to four digits:
    importing scipy's distributions takes longer than measuring a case.
    """
    z = np.linspace(-9, 9, 1801)
    below = np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in z])
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    # The range is at most w: z is the largest of `count`, and the others lie within w below it.
    ranges = np.linspace(0, 18, 361)
    inside = below - np.interp(z - ranges[:, None], z, below, left=0.0)
    within = count * (inside ** (count - 1) @ density) * (z[1] - z[0])
    deviation = 8 / math.sqrt(2 * freedom)
    s = np.linspace(max(1e-9, 1 - deviation), 1 + deviation, 801)
    half = freedom / 2
    logarithm = math.log(2) + half * math.log(half) - math.lgamma(half)
    weights = np.exp(logarithm + (freedom - 1) * np.log(s) - half * s * s) * (s[1] - s[0])
    low, high = 0.0, 200.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        if weights @ np.interp(middle * s, ranges, within) < CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


# Which claims of a kernel file weaken a check, and how they are worded. A condition on sizes or
# resources weakens nothing: it says when a kernel runs, not how its result is judged.

Key = Literal[
    "precision", "error_constant", "exponents", "deterministic", "where", "accumulator", "result"
]

#: The range of binary exponents of float32.
FLOAT32_EXPONENTS = (-126, 127)


class Weakening(NamedTuple):
    """One claim: its key in front matter, its declaration in the file, and its meaning."""

    key: Key
    declared: str
    words: str


def weakenings(claims: Claims) -> Iterator[Weakening]:
    """Each claim on arithmetic that makes a check easier to pass, in the order of front matter."""
    if claims.precision not in ("float32", "float64"):
        are = "are" if claims.precision in (*EIGHT_BITS, *INTEGERS) else "rounded to"
        words = f"inputs {are} {claims.precision}"
        yield Weakening("precision", f'precision = "{claims.precision}"', words)
    if claims.error_constant > 0:
        words = f"each product may be off by {claims.error_constant:g}·2⁻²⁴"
        declared = f"error_constant = {claims.error_constant:g}"
        yield Weakening("error_constant", declared, words)
    low, high = claims.exponents or FLOAT32_EXPONENTS
    if low > FLOAT32_EXPONENTS[0] or high < FLOAT32_EXPONENTS[1]:
        words = f"exponents from {low} to {high} only"
        yield Weakening("exponents", f"exponents = [{low}, {high}]", words)
    if not claims.deterministic:
        yield Weakening("deterministic", "deterministic = false", "not deterministic")
    result = "float64" if claims.result == "float64" else "float32"
    if claims.accumulator not in (None, "float64", "int32", result):
        declared = f'accumulator = "{claims.accumulator}"'
        words = f"sums in {claims.accumulator}"
        if claims.promotes is not None:
            words += f", {claims.promotes:,} terms at a time"
        yield Weakening("accumulator", declared, words)
    if claims.result in ("float16", "bfloat16"):
        yield Weakening("result", f"C of {claims.result}", f"C of {claims.result}")


@functools.cache
def weakening(claims: Claims) -> tuple[str, ...]:
    """The meanings of these claims; empty for a kernel without claims."""
    return tuple(claim.words for claim in weakenings(claims))
