"""What kernels compute, in a folder each: the matrix product, the dot product and others.

A workload defines a kernel's buffers and their sizes, the meaning of a size on the command line,
and the amount of work. `trials` has the inputs on which a kernel is checked, and `samples.cu` those
of timed launches. The oracle decides what is *correct*. NumPy is not imported here, so that kernels
can be listed quickly.

Must never touch a device, or import anything but `records` and the base modules.
"""

from __future__ import annotations

from matbench.model import SCALE_OF, WORKSPACE, FrontMatter, Problem
from matbench.workloads.cubes import Cubes
from matbench.workloads.dot import Dot
from matbench.workloads.reverse import Reverse
from matbench.workloads.workload import Size, Workload

__all__ = [
    "DEFAULT", "MATMUL", "WORKLOADS", "Size", "Workload", "memory_of", "work_of", "workload_of",
]  # fmt: skip

MATMUL = Workload()
WORKLOADS: dict[str, Workload] = {w.name: w for w in (MATMUL, Dot(), Reverse(), Cubes())}
DEFAULT = MATMUL.name


def workload_of(of: Problem | FrontMatter) -> Workload:
    """What a problem is of, or what a kernel computes."""
    return WORKLOADS[of.workload]


def memory_of(kernel: FrontMatter) -> tuple[str, ...]:
    """The arguments of a kernel that are in memory: buffers, scratch memory, and factors."""
    return (*workload_of(kernel).buffers, WORKSPACE, *SCALE_OF.values())


def work_of(problem: Problem) -> int:
    """The work of a problem: operations, or bytes."""
    return workload_of(problem).work(problem)
