"""The highest speed that machine code allows, and the resource that sets it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from matbench.features.explain.sass.pipes import RATES, SCHEDULERS
from matbench.features.explain.sass.tally import Tally

ISSUE = "issue slots"
BANKS = "register banks"
MEMORY = "shared memory and L1"
L1 = "L1 cache"
SHARED = "shared memory"
TENSOR = "tensor cores"


def demand(totals: Tally, capability: tuple[int, int]) -> dict[str, float]:
    """Cycles of a multiprocessor that one block takes of each resource, the most first.

    Empty if the rates of this compute capability are not known.
    """
    rates = RATES.get(capability)
    if rates is None:
        return {}
    n = Counter(totals.classes)
    paths = {
        kind: sum(traffic.cycles for name, traffic in totals.traffic.items() if kind in name)
        for kind in ("shared", "global", "local")
    }
    shared, cached = paths["shared"], paths["global"] + paths["local"]
    per_warp = {
        ISSUE: totals.instructions / SCHEDULERS,
        BANKS: max(totals.bank_reads) / SCHEDULERS,
        "float32 pipe": (n["float32"] + n["integer multiply"]) / rates.fma,
        "integer multiplier": n["integer multiply"] / rates.imad,
        "integer pipe": n["integer and logic"] / rates.alu,
        "float64 pipe": n["float64"] / rates.fp64,
        "float16 pipe": n["float16"] / rates.half,
        "special functions": n["special and conversion"] / rates.xu,
        TENSOR: totals.tensor_cycles,
        SHARED if shared >= cached else L1: shared + cached,
    }
    cycles = {name: totals.warps * value for name, value in per_warp.items() if value}
    return most_first(cycles)


def most_first(amounts: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(amounts.items(), key=lambda item: -item[1]))
