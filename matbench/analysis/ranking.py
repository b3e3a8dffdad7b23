"""Ranks the cases of one device, workload and problem by the same kind of samples.

Only measured cases are ranked, and CPUs never against GPUs. Kernels whose claims weaken a check are
ranked among themselves, below the others, and so are kernels with float64 results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from matbench import workloads
from matbench.analysis import claims, leaders, limits, statistics
from matbench.model import DeviceInfo, Precision, Problem
from matbench.records.outcome import Outcome, Status, Timing

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

    `spread` and `of_limit` are shares, `of_cublas` is cuBLAS's time over its own, and
    `times_slowest` the slowest's. `rivals` counts the cases of the ranking, itself included, and
    `leads` says that none of them is known to be faster. `claims` are those that weaken a check, in
    words.
    """

    outcome: Outcome
    spread: float | None = None
    work_per_s: float | None = None
    times_slowest: float | None = None
    of_cublas: float | None = None
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
        problem = self.outcome.case.problem
        return workloads.workload_of(problem).work(problem)

    @property
    def gflops(self) -> float | None:
        return None if self._is_of_bytes or not self.work_per_s else self.work_per_s / 1e9

    @property
    def gbytes_per_s(self) -> float | None:
        return self.work_per_s / 1e9 if self._is_of_bytes and self.work_per_s else None

    @property
    def _is_of_bytes(self) -> bool:
        return workloads.workload_of(self.outcome.case.problem).rate == "B/s"

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
    """A ranking for each device and workload: GPUs first, baselines on the CPU last."""
    names = list(workloads.WORKLOADS)
    by_place: dict[tuple[bool, bool, int, str, str], dict[Problem, list[Outcome]]] = {}
    for outcome in outcomes:
        case = outcome.case
        on_cpu = case.device_kind == "cpu"
        baseline = on_cpu and case.group == "baseline"
        backend = "" if baseline else case.backend
        place = (baseline, on_cpu, names.index(case.problem.workload), backend, case.device)
        # The seed of the inputs does not affect the time.
        problem = msgspec.structs.replace(case.problem, seed=0)
        by_place.setdefault(place, {}).setdefault(problem, []).append(outcome)
    return [
        DeviceRanking(
            workloads.get(names[place[2]]),
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
        claimed = bool(claims.weakening(stated))
        return claimed, stated.result == "float64", outcome.mode or ""

    def order(outcome: Outcome) -> tuple[object, ...]:
        time = time_ns(outcome)
        among = contest(outcome)[:2] if time is not None else (False, False)
        return STATUSES.index(outcome.status), time is None, among, time or 0.0

    ordered = sorted(outcomes, key=order)
    contests: dict[tuple[bool, bool, str], list[tuple[float, Outcome]]] = {}
    baselines: dict[tuple[str, str], float] = {}
    for outcome in ordered:
        if (time := time_ns(outcome)) is not None:
            contests.setdefault(contest(outcome), []).append((time, outcome))
            if outcome.case.group == "baseline":  # a file's kernel may have any name
                baselines.setdefault((outcome.mode or "", outcome.case.kernel), time)
    leading = set()
    for rivals in contests.values():
        timings = [outcome.timing for _, outcome in rivals if outcome.timing is not None]
        flags = leaders.may_lead(timings, rivals[0][1].case.device_kind)
        leading |= {id(rival) for (_, rival), leads in zip(rivals, flags, strict=True) if leads}
    named = {(info.backend, info.name): info for info in devices}
    ranked = []
    for outcome in ordered:
        time, claimed = time_ns(outcome), claims.weakening(outcome.case.claims)
        if time is None:
            ranked.append(Ranked(outcome, claims=claimed))
            continue
        case, rivals = outcome.case, contests[contest(outcome)]
        product = CUBLAS.get((case.problem.workload, case.claims.precision), "")
        if case.claims.scales == "rows":
            product = _BY_ROWS.get(product, product)
        cublas_ns = baselines.get((outcome.mode or "", product))
        work_per_s = workloads.workload_of(case.problem).work(case.problem) / time * 1e9
        ranked.append(
            Ranked(
                outcome,
                spread=spread(outcome.timing),
                work_per_s=work_per_s,
                times_slowest=rivals[-1][0] / time,
                of_cublas=cublas_ns / time if cublas_ns else None,
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


def drift_of(timing: Timing | None) -> float:
    """How far its samples drift, as a share of the time; 0 if that does not matter."""
    return statistics.drift(timing.samples_ns, spread(timing)) if timing is not None else 0.0


def held_mhz(timing: Timing | None) -> float | None:
    """The mean SM clock while these samples were taken."""
    clocks = [moment.sm_mhz for moment in timing.conditions[1:] if moment.sm_mhz] if timing else []
    return sum(clocks) / len(clocks) if clocks else None


def sm_mhz(outcome: Outcome) -> float | None:
    """The SM clock while a case was sampled, or else while its blocks were timed."""
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
    measured: set[tuple[object, ...]] = set()

    for outcome in outcomes:
        place = outcome.case.kernel, *outcome.case.contest
        key = (*place, outcome.mode if outcome.status == "measured" else None)
        if outcome.status == "measured":
            measured.add(place)
        best[key] = fastest_of(best.get(key, outcome), outcome)
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
    if device is None:
        return None
    most = limits.of_case(device, sm_mhz(outcome), case)
    return per_s / most if most else None
