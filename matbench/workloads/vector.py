"""What the workloads of one dimension share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from matbench.model import Problem, Storage
from matbench.workloads.workload import Large, Size, Workload


class VectorWorkload(Workload):
    """N numbers in an array."""

    dimensions: ClassVar[tuple[str, ...]] = ("N",)
    reads: ClassVar[tuple[str, ...]] = ("A",)

    def storages(self, buffer: str) -> tuple[Storage, ...]:
        """Floating-point inputs may also have 16 bits."""
        if buffer == "C" or self.element == "int32":
            return (self.element,)
        return (self.element, "float16", "bfloat16")

    smoke_sizes = "1,33,257,4099"
    size_help = "a number such as 1000, 4M or 2^28, or a range, as in 1k..1M"
    rate = "B/s"

    def shape(self, buffer: str, problem: Problem) -> tuple[int, int]:
        return (1, 1) if buffer == "C" else (1, problem.N)

    def terms(self, problem: Problem) -> int:
        return problem.N

    def host_bytes(self, problem: Problem) -> int:
        return 4 * 7 * len(self.reads) * problem.N

    def probes(self, params: Mapping[str, int]) -> dict[Size, str]:
        t = max(params.get("THREADS", 256), 2)
        sizes = {
            1: "a single element",
            2: "two elements",
            31: "less than a warp",
            t - 1: "one less than a block",
            t: "exactly a block",
            t + 1: "one more than a block",
            4 * t + 3: "several blocks and a partial one",
            1009: "a prime",
            65537: "many blocks",
            1_000_003: "more than one pass of any grid",
        }
        return {(1, size, 1): purpose for size, purpose in sizes.items()}

    def large(self) -> list[dict[Large, str]]:
        return [{(1, 2**30, 1, 1): "2³² bytes", (1, 2**29 + 1, 1, 1): "more than 2³¹ bytes"}]
