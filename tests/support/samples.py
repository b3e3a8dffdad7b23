"""Samples as the device makes them, and the verdict of the host, with which the device's agrees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from matbench import workloads
from matbench.bench.device_kernels import DeviceKernels
from matbench.bench.matrices import Buffers
from matbench.bench.options import CHECKS
from matbench.bench.prepared import Prepared
from matbench.bench.samples import Draw, Samples
from matbench.cache import Cache
from matbench.model import U32, Kernel, LaunchRules, NumericContract, Problem
from matbench.records.outcome import Accuracy
from matbench.workloads import oracle
from matbench.workloads.oracle import Array, Bound, Trial


def problems(
    M: int, N: int, K: int, *, alpha: Sequence[float] = (1.0,), beta: Sequence[float] = (0.0,),
    inputs: Sequence[str] = ("uniform", "signed", "normal"), workload: str = "matmul",
) -> st.SearchStrategy[Problem]:  # fmt: skip
    """Problems of at most these sizes."""
    sizes = (st.integers(1, most) for most in (M, N, K))
    kinds = {"inputs": inputs, "alpha": alpha, "beta": beta, "workload": [workload]}
    fields = {name: st.sampled_from(values) for name, values in kinds.items()}
    return st.builds(Problem, *sizes, seed=st.integers(0, 1000), **fields)


class Verdict(NamedTuple):
    """The result of comparing C with a trial; all counts are of elements."""

    accuracy: Accuracy
    wrong: int
    first_wrong: int | None


def judge(C: Array, trial: Trial, bound: Bound) -> Verdict:
    """Compare C with a trial.

    All elements are wrong, but none is the first, if only all errors together are too large.
    """
    accuracy = oracle.UNKNOWN
    if trial.exact is not None:
        bad = ~(trial.exact == C)
    else:
        accuracy = oracle.accuracy(C, trial, bound)
        with np.errstate(all="ignore"):
            bad = ~(np.abs(C.astype(np.float64) - trial.sums[0]) <= bound.of(trial))
        if not bad.any() and not (bound.excess(C, trial) <= oracle.MOST_EXCESS):
            return Verdict(accuracy, bad.size, None)
    wrong = int(bad.sum())
    return Verdict(accuracy, wrong, int(bad.argmax()) if wrong else None)


@contextmanager
def prepared_on(
    kernels: DeviceKernels,
    problem: Problem,
    contract: NumericContract = NumericContract(),  # noqa: B008
    *,
    guards: bool = True,
) -> Iterator[Prepared]:
    """The inputs of a problem on the device, until the end of the block."""
    prepared = Prepared(kernels, problem, contract, Cache(), guards=guards)
    try:
        yield prepared
    finally:
        prepared.release()


def any_kernel(**fields: Any) -> Kernel:
    return Kernel(name="any", launch=LaunchRules((1,), (1,)), **fields)


def buffers_of(prepared: Prepared, contract: NumericContract) -> Buffers:
    """Those of a kernel with this contract."""
    problem, scales = prepared.problem, contract.scales
    shape = workloads.workload_of(problem).shape("C", problem)
    return prepared.buffers(shape, any_kernel(scales=scales) if scales else None)


def sampled(
    kernels: DeviceKernels,
    problem: Problem,
    keys: Iterable[int],
    contract: NumericContract = NumericContract(),  # noqa: B008
    *,
    signed: bool = True,
) -> list[Trial]:
    """The inputs for these keys with their expected C."""
    with prepared_on(kernels, problem, contract, guards=False) as prepared:
        buffers = buffers_of(prepared, contract)
        samples = Samples(prepared, CHECKS if signed else CHECKS - {"precision"})
        return [samples.trial(buffers, samples.draw(key)) for key in keys]


def check_trials(
    kernels: DeviceKernels, problem: Problem, spoil: Callable[[NDArray[np.float32]], None]
) -> None:
    """The device finds what the host does in C of every trial, as `spoil` left it."""
    bound = oracle.Bound(oracle.error_factor(problem.K) * U32)
    with prepared_on(kernels, problem, guards=False) as prepared:
        samples, buffers = Samples(prepared), prepared.buffers((problem.M, problem.N))
        for uploaded in (prepared.reference, *prepared.others):
            trial = uploaded.on_host()
            C = (trial.inputs[0] @ trial.inputs[1]).astype(np.float32)
            spoil(C)
            expected = judge(C, trial, bound)
            samples.backend.write(buffers.C.data, C)
            samples.compare(buffers, Draw(uploaded), bound, accuracy=True)
            [found] = samples.verdicts()
            assert (found.wrong, found.first) == (expected.wrong, expected.first_wrong)
            accuracy = samples.accuracy(C, uploaded, bound)
            if np.isfinite(C).all():
                for name in ("max_rel_err", "avg_rel_err", "bound_ratio"):
                    mine, other = getattr(accuracy, name), getattr(expected.accuracy, name)
                    assert (mine is None and other is None) or mine == pytest.approx(other, 1e-9)
            else:
                assert accuracy.bound_ratio is None
