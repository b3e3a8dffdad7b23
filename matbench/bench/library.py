"""Baselines from a library on the host: NumPy's matrix product, checked like a kernel."""

from __future__ import annotations

import secrets
import time

import msgspec
import numpy as np

from matbench.backends import host_conditions
from matbench.bench import diagnosis, samples
from matbench.bench.options import Options
from matbench.bench.outcomes import not_measured
from matbench.bench.prepared import require_host_memory
from matbench.bench.sampling import clock, sample_until_known
from matbench.cache import Cache
from matbench.model import Case, DeviceInfo, Problem
from matbench.records.outcome import CaseRecord, Outcome
from matbench.workloads import oracle


def measure(case: Case, device: DeviceInfo, cache: Cache, options: Options) -> Outcome:
    """Check NumPy's product on every trial, then time single calls, each with its own inputs."""
    problem = case.problem
    require_host_memory(problem)
    trials = oracle.trials(problem, case.kernel.contract, cache)
    bound = oracle.bound(case.kernel, problem)
    accuracies = []
    for trial in (trials.reference, *(make() for make in trials.others)):
        C = np.empty((problem.M, problem.N), np.float32)
        _product(problem, trial, C)
        verdict = oracle.judge(C, trial, bound)
        if verdict.wrong:
            reason = f"{trial.name}: {diagnosis.explain(C, trial, bound, case)}"
            return not_measured(case, device, "wrong", reason)
        accuracies.append(verdict.accuracy)
    seed = secrets.randbits(64)
    inputs_of = samples.keys(seed) if options.replay is None else iter([options.replay])
    C = np.empty((problem.M, problem.N), np.float32)
    wrong: list[str] = []
    verifying_ns = 0

    def sample() -> float:
        nonlocal verifying_ns
        began = time.perf_counter_ns()
        trial = _reordered(trials.signed or trials.reference, problem, next(inputs_of))
        C.fill(np.nan)
        start = time.perf_counter_ns()
        _product(problem, trial, C)
        end = time.perf_counter_ns()
        if oracle.judge(C, trial, bound).wrong:
            wrong.append(f"samples: {diagnosis.explain(C, trial, bound, case)}")
        verifying_ns += time.perf_counter_ns() - began - (end - start)
        return float(end - start)

    timing = None
    if options.replay is not None:
        sample()
    elif options.timed:
        cpu = msgspec.structs.replace(options, rounds=1).on("cpu")  # nothing is ranked with it
        timed = clock(lambda: verifying_ns)
        timing = sample_until_known(sample, seed, cpu, host_conditions, clock=timed)
    else:
        for _ in range(2):
            sample()
    return Outcome(
        case=CaseRecord.from_case(case, device),
        status="wrong" if wrong else "measured",
        reason=wrong[0] if wrong else None,
        accuracy=accuracies[0],
        hot=None if wrong else timing,
        notes=case.notes,
    )


def _reordered(trial: oracle.Trial, problem: Problem, key: int) -> oracle.Trial:
    """The trial with the rows of A, and of C, in another order."""
    A, B = trial.inputs
    assert trial.R is not None
    assert trial.S is not None
    assert trial.norms is not None
    rows = np.random.default_rng(key).permutation(A.shape[0])
    C = None if trial.C is None else trial.C[rows]
    begun = 0.0 if C is None else np.abs(problem.beta * C.astype(np.float64))
    typical = oracle.Typical(np.outer(*trial.norms)[rows], np.zeros(A.shape[0], bool), begun)
    R, S = trial.R[rows], trial.S[rows]
    return trial._replace(name="sample", inputs=(A[rows], B), R=R, S=S, C=C, typical=typical)


def _product(problem: Problem, trial: oracle.Trial, C: oracle.Float32) -> None:
    A, B = trial.inputs
    np.matmul(A, B, out=C)
    if problem.alpha != 1:
        C *= np.float32(problem.alpha)
    if trial.C is not None and problem.beta != 0:
        C += np.float32(problem.beta) * trial.C
