"""The built-in kernels of matrix products, and cases of any kernel."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

from matbench.backends import open_backend
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.sizes import parse_sizes
from matbench.model import CUDA_C, Case, DeviceInfo, Kernel, Problem
from matbench.records.outcome import Outcome
from matbench.worker.worker import Worker
from support.kernels import own_file

#: All kernels in CUDA C, of other workloads too.
FILES = [kernel for kernel in catalogue.builtin() if kernel.kind == CUDA_C]
PRODUCTS = [kernel for kernel in FILES if kernel.workload == "matmul"]
#: Those of libraries for CUDA; 8-bit operands are tested in tests/backends/test_cublas.py.
OF_LIBRARIES = {
    kernel.name: kernel
    for kernel in catalogue.builtin()
    if kernel.name.startswith("cublas") and kernel.workload == "matmul"
}
OF_ANY_SIZE = {name: kernel for name, kernel in OF_LIBRARIES.items() if not kernel.launch.where}
SIZES = ["1", "17", "33", "65x31x129", "1x1x1000", "100x7x1", "8x300x5"]
INPUTS = ["uniform", "signed", "normal"]


def name(kernel: Kernel) -> str:
    return kernel.name


def problem(size: str, inputs: str = "uniform") -> Problem:
    [(m, n, k)] = parse_sizes(size)
    return Problem(m, n, k, inputs=inputs)  # type: ignore[arg-type]


def case_of(
    kernel: Kernel | Path | str, size: str | int | Problem, device: DeviceInfo, **constants: int
) -> Case:
    """A case of a kernel, of that in a file, or of the built-in one of a name."""
    if not isinstance(kernel, Kernel):
        kernel = catalogue.load(kernel if isinstance(kernel, Path) else own_file(kernel))
    at = size if isinstance(size, Problem) else problem(str(size))
    return sweep.case(kernel, at, constants, device)


def capability_needed(kernel: Kernel) -> int:
    """80 for sm_80; 0 for a kernel without such a requirement."""
    return max((int(re.sub(r"\D", "", r)) for r in kernel.requires if r[:3] == "sm_"), default=0)


def opened(device: DeviceInfo, options: Options) -> closing[Session]:
    """A session of its own, which ends with the block."""
    return closing(Session(open_backend(device, Cache()), Cache(), options))


def right(session: Session | Worker, case: Case) -> Outcome:
    """The outcome of a case that is measured."""
    assert case.skip is None, case.skip
    outcome = session.measure(case)
    assert outcome.status == "measured", f"{case.label}, {case.problem.inputs}: {outcome.reason}"
    return outcome
