"""The figures of a case in sentences: its traffic, and what limits it."""

from __future__ import annotations

from collections.abc import Iterator

from matbench.features.explain import machine_code_view
from matbench.features.explain.bounds import BOUND_SHARE
from matbench.features.explain.record import Explanation
from matbench.show.reasons import outcome_reason
from matbench.show.units import Formatter, bytes_, count, percent, rates

#: Below this occupancy there are few warps to hide latency.
_FEW = 0.5


def words(explanation: Explanation) -> Iterator[str]:
    """The figures in sentences that say only what was modelled or measured."""
    moved = explanation.traffic
    if moved.loads is not None and moved.bytes is not None:
        yield (
            f"In the {'machine code' if moved.is_derived else 'model'}, threads load "
            f"{count(moved.loads)} elements; loads and stores are "
            f"{moved.bytes / moved.least_bytes:,.1f} times the minimum traffic."
        )
    elif moved.claimed_bytes is not None:
        yield (
            f"The model gives {bytes_(moved.claimed_bytes)} of traffic, less than the minimum "
            f"of {bytes_(moved.least_bytes)}: it is not valid at this size."
        )
    yield from _bound_in_words(explanation)
    yield from machine_code_view.words(explanation)


def _blocks(number: int) -> str:
    return "1 block" if number == 1 else f"{number:,} blocks"


def _bound_in_words(explanation: Explanation) -> Iterator[str]:
    bound = explanation.bound
    if bound.by == "not known":
        yield f"What limits it is not known: {_unmeasured(explanation)}."
        return
    yield f"{_computed(explanation)}; {_memory(explanation)}."
    if bound.by == "doubtful limit":
        yield "That limit does not apply to it, or was measured while the machine was busier."
    elif bound.by == "arithmetic":
        yield "It is compute-bound."
    elif bound.by == "memory":
        least = bound.counted_share is None
        yield "It is memory-bound: no kernel can move less." if least else "It is memory-bound."
    elif bound.by == "cache":
        yield (
            "All data fits in the last-level cache, which is faster than memory, so that share "
            "does not show what limits it."
        )
    else:
        yield from _neither(explanation)


def _unmeasured(explanation: Explanation) -> str:
    """Why the limit is not known."""
    outcome = explanation.outcome
    if outcome is None:
        return "the run was interrupted" if explanation.case.device else "there is no device"
    if outcome.status == "measured":
        return "no limits were measured"
    first, _, _ = outcome_reason(outcome).partition("\n")
    return f"{outcome.status}, {first}"


def _computed(explanation: Explanation) -> str:
    rate = rates_of(explanation)
    if explanation.tensor_cores:
        return "It uses tensor cores, whose limit is not measured"
    if not explanation.operations_per_s:
        return "It does no arithmetic"
    computed = f"It computes at {rate(explanation.operations_per_s)}"
    if explanation.whole_numbers or explanation.limits is None:
        return f"{computed} with integers, for which no limit is measured"
    return (
        f"{computed}, {percent(explanation.bound.computed_share)} of the "
        f"{rate(explanation.limits.fma_flop_per_s)} measured for multiply-adds alone"
    )


def _memory(explanation: Explanation) -> str:
    if explanation.bound.counted_share is not None:
        taken = percent(explanation.bound.counted_share)
        return f"its measured DRAM traffic takes {taken} of the bandwidth of a copy"
    share = percent(explanation.bound.least_share)
    return f"the minimum traffic takes {share} of the bandwidth of a copy"


def _neither(explanation: Explanation) -> Iterator[str]:
    bound, launch = explanation.bound, explanation.case.launch
    idle, modelled = bound.idle_multiprocessors, bound.modelled_share or 0.0
    if idle and launch is not None:
        yield (
            f"The launch has {_blocks(launch.blocks)} for {launch.blocks + idle} multiprocessors: "
            f"{idle} are idle."
        )
    if modelled > 1:
        yield (
            f"The modelled traffic would need {modelled:.1f} times the bandwidth of a copy, so "
            f"caches serve at least {1 - 1 / modelled:.0%} of it. These figures do not show "
            "whether caches, shared memory, barriers or latency limit it."
        )
    elif modelled >= BOUND_SHARE and bound.counted_share is None:
        yield (
            f"The modelled traffic would take {modelled:.0%} of the bandwidth of a copy: the "
            "kernel is memory-bound if caches serve none of it, which the model does not show."
        )
    elif explanation.case.device_kind == "cpu":
        yield "It reaches neither limit; a CPU's caches and vector instructions are not modelled."
    elif not idle:
        yield "It reaches neither limit; the model does not show what limits it."
    fit = next(
        (f for f in explanation.fits if f.here and f.params == explanation.case.params), None
    )
    if fit is not None and fit.occupancy is not None:
        share = fit.occupancy.share
        few = ": few warps to hide latency" if share < _FEW else ""
        yield f"Its occupancy is {share:.0%}{few}."
    if bound.counted_share is None and explanation.case.backend == "cuda":
        yield "`--counters` measures DRAM traffic, bank conflicts and occupancy."


def rates_of(explanation: Explanation) -> Formatter:
    """All rates of an explanation in the unit of the largest."""
    if explanation.whole_numbers:
        return rates([explanation.operations_per_s], "op/s")
    most = explanation.limits.fma_flop_per_s if explanation.limits is not None else None
    return rates([explanation.operations_per_s, explanation.clock_flop_per_s, most], "FLOP/s")
