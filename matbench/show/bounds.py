"""What the figures of a case mean, in words: its traffic, its occupancy, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterator

from matbench.analysis import architectures
from matbench.analysis.bounds import BOUND_SHARE
from matbench.records.explanation import Explanation, Width
from matbench.show import safe
from matbench.show.units import Formatter, bytes_, count, percent, rates

#: Below this occupancy there are few warps to hide latency.
_FEW = 0.5


def words(found: Explanation) -> Iterator[str]:
    """What the figures mean, a sentence or a few each; never more than was modelled or measured."""
    moved = found.traffic
    if moved.loads is not None and moved.bytes is not None:
        yield (
            f"As modelled, its threads load {count(moved.loads)} elements; loads and stores are "
            f"{moved.bytes / moved.least_bytes:,.1f} times the least traffic."
        )
    elif moved.claimed_bytes is not None:
        yield (
            f"Its model claims {bytes_(moved.claimed_bytes)} of traffic, less than the least "
            f"possible {bytes_(moved.least_bytes)}: the model does not hold at this size."
        )
    for each in found.widths:
        if each.params == found.case.params and each.architecture is not None:
            yield _width_in_words(each, each.architecture)
    yield from _bound_in_words(found)


def _width_in_words(each: Width, name: str) -> str:
    params = ", ".join(f"{key} = {value}" for key, value in each.params.items())
    title = ", ".join(filter(None, [f"this, {name}" if each.here else name, params]))
    fits, a = each.occupancy, architectures.named(name)
    if fits is None:
        return f"{title}: {each.reason or 'not known'}."
    parts = [
        f"{a.threads:,} threads hold {_blocks(fits.by['threads'])} of {each.threads_per_block:,}"
    ]
    if "registers" in fits.by:
        room = _blocks(fits.by["registers"])
        parts.append(f"{a.registers:,} registers hold {room} at {each.registers} a thread")
    if "shared memory" in fits.by:
        room = _blocks(fits.by["shared memory"])
        of = "" if each.shared_bytes is None else f" of {each.shared_bytes:,}"
        parts.append(f"{a.shared_bytes:,} bytes of shared memory hold {room}{of}")
    return (
        f"{title}: {', '.join(parts)}, and a multiprocessor holds at most {_blocks(a.blocks)}. "
        f"So {_blocks(fits.blocks)} can be resident, limited by {' and '.join(fits.limiters)}: "
        f"{fits.warps} of {a.warps} warps."
    )


def _blocks(number: int) -> str:
    return "1 block" if number == 1 else f"{number:,} blocks"


def _bound_in_words(found: Explanation) -> Iterator[str]:
    bound = found.bound
    if bound.by == "not known":
        yield f"What bounds it is not known: {_unmeasured(found)}."
        return
    yield f"{_computed(found)}; {_memory(found)}."
    if bound.by == "doubtful limit":
        yield "That limit is not its own, or was measured while the machine was busier."
    elif bound.by == "arithmetic":
        yield "It is compute-bound."
    elif bound.by == "memory":
        least = bound.counted_share is None
        yield "It is memory-bound: no kernel moves less." if least else "It is memory-bound."
    elif bound.by == "cache":
        yield (
            "The last-level cache holds all of it and is faster than memory, so that share does "
            "not show what limits it."
        )
    else:
        yield from _neither(found)


def _unmeasured(found: Explanation) -> str:
    """Why nothing is known of what bounds it."""
    outcome = found.outcome
    if outcome is None:
        return "it was interrupted before" if found.case.device else "no device is at hand"
    if outcome.status == "measured":
        return "no limits were measured"
    first, _, _ = (outcome.reason or "").partition("\n")
    return f"{outcome.status}, {safe.line(first)}"


def _computed(found: Explanation) -> str:
    rate = rates_of(found)
    if found.tensor_cores:
        return "It computes on tensor cores, whose limit is not measured"
    if not found.operations_per_s:
        return "It does no arithmetic"
    computed = f"It computes at {rate(found.operations_per_s)}"
    if found.whole_numbers or found.limits is None:
        return f"{computed} on integers, for which no limit is measured"
    return (
        f"{computed}, {percent(found.bound.computed_share)} of the "
        f"{rate(found.limits.fma_flop_per_s)} measured for multiply-adds alone"
    )


def _memory(found: Explanation) -> str:
    if found.bound.counted_share is not None:
        taken = percent(found.bound.counted_share)
        return f"its measured DRAM traffic takes {taken} of the bandwidth of a copy"
    return f"the least traffic takes {percent(found.bound.least_share)} of the bandwidth of a copy"


def _neither(found: Explanation) -> Iterator[str]:
    bound, launch = found.bound, found.case.launch
    idle, modelled = bound.idle_multiprocessors, bound.modelled_share or 0.0
    if idle and launch is not None:
        yield (
            f"The launch has {_blocks(launch.blocks)} for {launch.blocks + idle} multiprocessors: "
            f"{idle} of them are idle."
        )
    if modelled > 1:
        yield (
            f"The modelled traffic would need {modelled:.1f} times the bandwidth of a copy, so "
            f"caches serve at least {1 - 1 / modelled:.0%} of it. Whether caches, shared memory, "
            "barriers or latency limit it, these figures do not show."
        )
    elif modelled >= BOUND_SHARE and bound.counted_share is None:
        yield (
            f"The modelled traffic would take {modelled:.0%} of the bandwidth of a copy: it is "
            "limited by memory if caches serve none of that, which the model does not show."
        )
    elif not idle:
        yield "It reaches neither limit; the model does not show what limits it."
    own = next((w for w in found.widths if w.here and w.params == found.case.params), None)
    if own is not None and own.occupancy is not None:
        share = own.occupancy.share
        resident = f"{share:.0%} of the warps that a multiprocessor can hold are resident"
        yield f"Only {resident}: few to hide latency." if share < _FEW else f"{resident}."
    if bound.counted_share is None and found.case.backend == "cuda":
        yield "`--counters` measures DRAM traffic, bank conflicts and occupancy."


def rates_of(found: Explanation) -> Formatter:
    """All rates of an explanation in the unit of the largest."""
    if found.whole_numbers:
        return rates([found.operations_per_s], "op/s")
    most = found.limits.fma_flop_per_s if found.limits is not None else None
    return rates([found.operations_per_s, found.clock_flop_per_s, most], "FLOP/s")
