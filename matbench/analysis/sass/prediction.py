"""The highest speed that machine code allows, and the resource that sets it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from matbench.analysis.sass.pipes import RATES, SCHEDULERS
from matbench.analysis.sass.tally import Tally

ISSUE = "issue slots"
BANKS = "register banks"
MEMORY = "shared memory and L1"
L1 = "L1 cache"
SHARED = "shared memory"
TENSOR = "tensor cores"


class Demand(NamedTuple):
    """Cycles of a multiprocessor that one block takes of each resource, the most first."""

    cycles: dict[str, float]

    @property
    def resource(self) -> str:
        return next(iter(self.cycles))

    @property
    def most(self) -> float:
        return next(iter(self.cycles.values()))


def demand(found: Tally, capability: tuple[int, int]) -> Demand | None:
    """What a block demands; None if the rates of this compute capability are not known."""
    rates = RATES.get(capability)
    if rates is None:
        return None
    n = Counter(found.classes)
    paths = {
        kind: sum(traffic.cycles for name, traffic in found.traffic.items() if kind in name)
        for kind in ("shared", "global", "local")
    }
    shared, cached = paths["shared"], paths["global"] + paths["local"]
    per_warp = {
        ISSUE: found.instructions / SCHEDULERS,
        BANKS: max(found.bank_reads) / SCHEDULERS,
        "float32 pipe": (n["float32"] + n["integer multiply"]) / rates.fma,
        "integer multiplier": n["integer multiply"] / rates.imad,
        "integer pipe": n["integer and logic"] / rates.alu,
        "float64 pipe": n["float64"] / rates.fp64,
        "float16 pipe": n["float16"] / rates.half,
        "special functions": n["special and conversion"] / rates.xu,
        TENSOR: found.tensor_cycles,
        SHARED if shared >= cached else L1: shared + cached,
    }
    cycles = {name: found.warps * value for name, value in per_warp.items() if value}
    return Demand(dict(sorted(cycles.items(), key=lambda each: -each[1])))
