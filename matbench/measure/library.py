"""Baselines that are a library's own product on the host: NumPy's, checked like a kernel."""

from __future__ import annotations

import time

import msgspec
import numpy as np

from matbench.backends import host_conditions
from matbench.cache import Cache
from matbench.measure import diagnosis, oracle
from matbench.measure.options import Options
from matbench.measure.prepared import require_host_memory
from matbench.measure.sampling import sample_until_known
from matbench.model import Case, DeviceInfo
from matbench.records.outcome import CaseRecord, Outcome


def measure(case: Case, device: DeviceInfo, cache: Cache, options: Options) -> Outcome:
    """NumPy's product on every trial, then timed call by call."""
    problem = case.problem
    require_host_memory(problem)
    trials = oracle.trials(problem, case.kernel.reading, cache)
    factor = oracle.error_factor(problem.K)
    outcome = Outcome(case=CaseRecord.of(case, device), status="measured", notes=case.notes)
    accuracies = []
    for trial in (trials.reference, *(t for found in trials.others.values() for t in found)):
        A, B = trial.inputs
        C = np.matmul(A, B)
        verdict = oracle.judge(C, trial, factor)
        if verdict.wrong:
            reason = f"{trial.name}: {diagnosis.explain(C, trial, factor, case)}"
            return msgspec.structs.replace(outcome, status="wrong", reason=reason)
        accuracies.append(verdict.accuracy)
    outcome = msgspec.structs.replace(outcome, accuracy=accuracies[0])
    if not options.timed:
        return outcome
    A, B = trials.reference.inputs
    C = np.empty((problem.M, problem.N), np.float32)

    def sample() -> float:
        start = time.perf_counter_ns()
        np.matmul(A, B, out=C)
        return float(time.perf_counter_ns() - start)

    timing = sample_until_known(sample, options.on("cpu"), host_conditions)
    return msgspec.structs.replace(outcome, hot=timing)
