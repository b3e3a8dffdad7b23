"""The built-in kernels of matrix products, and what each may skip."""

from __future__ import annotations

import re

from matbench import workloads
from matbench.bench.session import Session
from matbench.kernelfile import catalogue, expressions
from matbench.kernelfile.sizes import parse_sizes
from matbench.model import Case, DeviceInfo, Kernel, Problem
from matbench.records.outcome import Outcome

#: All kernels in CUDA C, of other workloads too.
FILES = [kernel for kernel in catalogue.builtin() if not kernel.library]
PRODUCTS = [kernel for kernel in FILES if kernel.workload == "matmul"]
#: Those of libraries for CUDA; 8-bit operands are tested in tests/backends/test_cublaslt.py.
OF_LIBRARIES = {
    kernel.name: kernel
    for kernel in catalogue.builtin()
    if "cublas" in kernel.args and kernel.workload == "matmul"
}
OF_ANY_SIZE = {name: kernel for name, kernel in OF_LIBRARIES.items() if not kernel.launch.where}
SIZES = ["1", "17", "33", "65x31x129", "1x1x1000", "100x7x1", "8x300x5"]
INPUTS = ["uniform", "signed", "normal"]


def name(kernel: Kernel) -> str:
    return kernel.name


def problem(size: str, inputs: str = "uniform") -> Problem:
    [(m, n, k)] = parse_sizes(size)
    return Problem(m, n, k, inputs=inputs)  # type: ignore[arg-type]


def capability_needed(kernel: Kernel) -> int:
    """80 for sm_80; 0 for a kernel without such a requirement."""
    return max((int(re.sub(r"\D", "", r)) for r in kernel.requires if r[:3] == "sm_"), default=0)


def allowed_skip(case: Case, device: DeviceInfo) -> bool:
    """Whether this kernel cannot compute this, by prior knowledge or by its file."""
    limit = min(device.limits["max_threads_per_block"], 1024)
    problem = case.problem
    if "cuda" in case.kernel.requires and device.backend != "cuda":
        return True
    if case.kernel.name == "single-block":
        return limit < problem.M * problem.N
    if case.kernel.name == "host-loop":
        return workloads.workload_of(problem).operations(problem) > 2**25
    if case.kernel.name == "shared-row":
        return device.limits["max_shared_bytes_per_block"] < 4 * problem.K
    if case.kernel.group in ("ladder", "gallery"):
        constants = expressions.constants(case.kernel.let, case.params)
        values = {"M": problem.M, "N": problem.N, "K": problem.K, **constants, **device.limits}
        scope = {"ceil_div": lambda a, b: -(-a // b), "max": max, "min": min}
        major, minor = device.compute_capability or (0, 0)
        is_older = capability_needed(case.kernel) > 10 * major + minor
        return is_older or not all(eval(w, scope, values) for w in case.kernel.launch.where)
    return case.params.get("TILE", 1) ** 2 > limit


def measure(session: Session, case: Case) -> Outcome:
    outcome = session.measure(case)
    assert outcome.status == "measured", f"{case.label}, {case.problem.inputs}: {outcome.reason}"
    return outcome
