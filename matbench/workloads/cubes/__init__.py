"""The sum of the cubes of digits."""

from __future__ import annotations

from typing import ClassVar

from matbench.model import Inputs, Problem
from matbench.workloads.workload import VectorWorkload


class Cubes(VectorWorkload):
    name = "cubes"
    title = "sum of the cubes of whole numbers from 0 to 9"
    element = "int32"
    is_reduction = True
    inputs: ClassVar[tuple[Inputs, ...]] = ("digits",)
    probed_inputs: ClassVar[tuple[Inputs, ...]] = ("digits",)
    default_sizes = "1048576"
    where = ("729 * N < 2**31",)  # so that the sum fits its type

    def operations(self, problem: Problem) -> int:
        return 3 * problem.N  # two multiplications and an addition each
