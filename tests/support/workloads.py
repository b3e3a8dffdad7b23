"""The kernels of the other workloads, and how they are checked."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from matbench import workloads
from matbench.bench.samples import Draw
from matbench.bench.session import Session
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, DeviceInfo, Kernel, Problem
from matbench.records.outcome import Outcome
from matbench.workloads.dot import trials as dot
from support.optional import present

KERNELS = {
    kernel.name: kernel
    for kernel in catalogue.builtin()
    if kernel.source and kernel.workload != "matmul"
}
FEW = [1, 33, 257, 4099]
SIZES = [1, 2, 3, 31, 33, 63, 64, 65, 255, 257, 1009, 4099, 33792, 100_003]
SPECIAL = {
    "reverse-static": lambda case, limits: case.problem.N > 64,
    "reverse-dynamic": lambda case, limits: (
        limits["max_shared_bytes_per_block"] // 4 < case.problem.N
    ),
}


def problem(workload: str, N: int, inputs: str | None = None, seed: int = 0) -> Problem:
    kind = inputs or workloads.get(workload).inputs[0]
    return Problem(1, N, 1, inputs=kind, seed=seed, workload=workload)  # type: ignore[arg-type]


def name(kernel: Kernel) -> str:
    return kernel.name


def may_skip(case: Case, device: DeviceInfo) -> bool:
    """Whether this kernel cannot compute this, by prior knowledge."""
    if "cuda" in case.kernel.requires and device.backend != "cuda":
        return True
    return case.kernel.name in SPECIAL and SPECIAL[case.kernel.name](case, device.limits)


def right(session: Session, case: Case) -> Outcome:
    assert case.skip is None, case.skip
    outcome = session.measure(case)
    assert outcome.status == "measured", f"{case.label}, {case.problem.inputs}: {outcome.reason}"
    return outcome


def check_at_every_size(
    kernel: Kernel, inputs: str, session: Session, sizes: Sequence[int] = SIZES
) -> None:
    device = session.backend.info
    for N in sizes:
        for case in sweep.cases([kernel], [problem(kernel.workload, N, inputs)], {}, device):
            if case.skip is not None:
                assert may_skip(case, device), case.skip
                continue
            assert not may_skip(case, device)
            outcome = right(session, case)
            if kernel.workload == "dot":
                assert 0 <= present(present(outcome.accuracy).bound_ratio) <= 1
                if (N, inputs) == (1, "ramp"):
                    continue  # 0·0: no relative error
                assert present(outcome.max_rel_err) <= (N + 1) * 2**-24


EVERY = [
    pytest.param(kernel, inputs, id=f"{kernel.name}-{inputs}")
    for kernel in KERNELS.values()
    for inputs in workloads.get(kernel.workload).inputs
]


def result(session: Session, case: Case) -> float:
    """A kernel's result on its problem's own inputs, including the host's part."""
    with session._runnable(case, session._build(case)) as runnable:
        reference = runnable.prepared.reference
        runnable.run(Draw(reference))
        return float(runnable.result_on_host(reference)[0, 0])


def check_compensation(kernel: Kernel, plain: Kernel, session: Session) -> None:
    """Signed products cancel, and still the result is the float32 next to the exact one.

    One block finds it, so that nothing but the kernel's own rounding is between.
    """
    device, misses = session.backend.info, 0
    for seed in range(8):
        at = problem("dot", 2000, "signed", seed)
        a, b = (values[0].tolist() for values in dot.inputs(at))
        exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))
        nearest = float(np.float32(float(exact)))
        [case] = sweep.cases([kernel], [at], {}, device)
        assert present(case.launch).blocks == 1
        right(session, case)
        assert result(session, case) == nearest
        [rough] = sweep.cases([plain], [at], {}, device)
        misses += result(session, rough) != nearest
    assert misses >= 4
