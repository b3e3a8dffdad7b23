"""The built-in kernels of matrix products, and what each may skip."""

from __future__ import annotations

import re

from matbench.bench.session import Session
from matbench.kernelfile import catalogue
from matbench.kernelfile.sizes import parse_sizes
from matbench.model import Case, Kernel, Problem
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


def right(session: Session, case: Case) -> Outcome:
    """The outcome of a case that is measured."""
    assert case.skip is None, case.skip
    outcome = session.measure(case)
    assert outcome.status == "measured", f"{case.label}, {case.problem.inputs}: {outcome.reason}"
    return outcome
