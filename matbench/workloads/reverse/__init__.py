"""The reversal of an array."""

from __future__ import annotations

from typing import ClassVar

from matbench.model import Inputs, Problem
from matbench.workloads.workload import VectorWorkload


class Reverse(VectorWorkload):
    name = "reverse"
    title = "reversal of an array of 32-bit words"
    element = "int32"
    inputs: ClassVar[tuple[Inputs, ...]] = ("ramp", "uniform")
    probed_inputs: ClassVar[tuple[Inputs, ...]] = ("uniform", "ramp")
    default_sizes = "64,1048576"

    def operations(self, problem: Problem) -> int:
        return 0
