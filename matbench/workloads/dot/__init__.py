"""The dot product."""

from __future__ import annotations

from typing import ClassVar

from matbench.model import Inputs
from matbench.workloads.workload import VectorWorkload


class Dot(VectorWorkload):
    name = "dot"
    title = "dot product c = Σ aᵢ·bᵢ"
    reads: ClassVar[tuple[str, ...]] = ("A", "B")
    is_reduction = True
    inputs: ClassVar[tuple[Inputs, ...]] = ("ramp", "uniform", "signed", "normal")
    default_sizes = "33792"
    relative_to = "Σ|aᵢ·bᵢ|"
