"""What the machine code shows, in a table and in sentences: its loop, its limits, what to try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from matbench.features.explain.machine_code import busy
from matbench.features.explain.record import (
    Explanation,
    HardwareCounters,
    HotLoop,
    MachineCode,
    NotDerived,
)
from matbench.features.explain.sass import prediction
from matbench.show.table import Fact, Section, facts_section
from matbench.show.units import Formatter, count, duration, percent, rates

#: Classes and resources with a smaller share are summed up.
_SMALL = 0.02
#: Below this share of the ceiling a kernel waits more than it works.
_WAITS = 0.7
#: From this ratio to the least, accesses are called scattered.
_SCATTERED = 1.2
#: Smaller shares of waits are shown as none.
_ROUNDED = 0.005
_MOST_REASONS = 3
_MOST_CLASSES = 5
#: What ncu counts as one: both use the same path.
_PATH = (prediction.SHARED, prediction.L1)

#: What to try next, by the resource that binds.
_TRY: dict[str, str] = {
    prediction.ISSUE: "Let each instruction do more: compute more elements per thread, and access "
    "memory 16 bytes at a time",
    prediction.BANKS: "Order the products so that neighbouring ones share an operand, which then "
    "is not read again, or compute more elements per thread",
    prediction.SHARED: "Use each value fetched more often: compute more elements per thread, and "
    "fetch 16 bytes at a time",
    prediction.L1: "Keep what neighbouring threads share in shared memory or registers",
    prediction.TENSOR: "Its tensor cores are busy: only fewer or narrower products are faster",
    "float32 pipe": "Its arithmetic units are busy: only fewer operations, or tensor cores, are "
    "faster",
    "float64 pipe": "Sum in float32, with compensation where the result must be exact",
    "float16 pipe": "Use tensor cores, which are faster in the same precision",
    "integer multiplier": "Move multiplications of indices out of the loop, or advance pointers",
    "integer pipe": "Move the arithmetic on indices out of the loop",
    "special functions": "Convert between types outside of the loop",
}


def section(code: MachineCode, counters: HardwareCounters | None = None) -> Section:
    """The table of the machine code, with what ncu counted beside it."""
    facts = _facts(code, counters.busy if counters is not None else {})
    return facts_section((f"machine code: {code.architecture}",), "of the code", facts)


def _facts(code: MachineCode, counted: Mapping[str, float]) -> Iterator[Fact]:
    total = sum(code.instructions.values())
    if total:
        yield Fact("instructions", count(round(total)), f"of a warp: {_shares(code.instructions)}")
    if code.loop is not None:
        loop = code.loop
        size = sum(loop.instructions.values())
        remark = (
            f"instructions × passes, {loop.share:.0%} of all, {loop.first:#x} to {loop.last:#x}"
        )
        yield Fact("hot loop", f"{size:,.0f} × {loop.passes:,.0f}", remark)
        yield Fact("of one pass", "", _counts(loop))
    yield from _accesses(code)
    yield from _busy(code, counted)
    for missing in code.not_derived[:_MOST_REASONS]:
        yield Fact("not derived", "", _missing(missing))
    if (more := len(code.not_derived) - _MOST_REASONS) > 0:
        yield Fact("not derived", "", f"{more} more of these")


def _missing(reason: NotDerived) -> str:
    where = f"{reason.address:#x}"
    words = {
        "addresses": f"the addresses of {reason.name} at {where}",
        "branch": f"the branch at {where} depends on loaded values",
        "target": f"the branch at {where} goes to a computed address",
        "passes": f"the loop at {where} takes too many passes to follow",
        "opcode": f"what {reason.name} takes: an opcode that is not known",
        "rate": f"the rate of {reason.name} on tensor cores",
        "cycles": f"cycles: no rates are known for {reason.name}",
    }
    return words[reason.what]


def _accesses(code: MachineCode) -> Iterator[Fact]:
    if code.shared_cycles:
        ratio = code.shared_cycles / code.shared_least_cycles
        remark = "no bank conflicts"
        if ratio > 1.005:
            remark = "times the cycles of the same bytes without bank conflicts"
        yield Fact("shared memory cycles", f"{ratio:.2f} ×", remark)
    if code.global_cycles:
        ratio = code.global_cycles / code.global_least_cycles
        remark = "coalesced" if ratio <= 1.005 else "times the cycles of coalesced accesses"
        yield Fact("L1 cache cycles", f"{ratio:.2f} ×", remark)
    if code.global_load_bytes is not None and code.global_sectors:
        moved = code.global_load_bytes + (code.global_store_bytes or 0.0)
        if moved:
            share = moved / (32 * code.global_sectors)
            remark = f"of requested bytes per byte of the {count(code.global_sectors)} sectors"
            yield Fact("global bytes used", f"{share:.2f} ×", remark)


def _busy(code: MachineCode, counted: Mapping[str, float]) -> Iterator[Fact]:
    together = prediction.MEMORY
    for name, share in busy(code).items():
        if share >= _SMALL:
            remark = "binds: busy all the time at the ceiling" if share == 1 else ""
            measured = counted.get(together if name in _PATH else name)
            if measured is not None:
                remark = "; ".join(filter(None, [remark, f"{measured:.0%} counted by ncu"]))
            yield Fact(name, f"{share:.0%}", remark)
    if (idle := _idle(code)) >= _ROUNDED:
        blocks = f"of a multiprocessor with {count(code.resident_blocks)} resident blocks"
        yield Fact("waits", f"{idle:.0%}", f"{blocks}, for loads, registers and barriers")
    if code.operations_per_cycle is not None and code.peak_share is not None:
        per_cycle = f"{code.operations_per_cycle:.1f}"
        remark = f"operations per cycle of a multiprocessor, {code.peak_share:.0%} of its float32"
        yield Fact("ceiling", per_cycle, remark)
    if code.least_ns is not None:
        ceiling = code.ceiling_operations_per_s
        at = f"{count(code.multiprocessors)} multiprocessors at {count(code.sm_mhz)} MHz"
        shown = rates([ceiling], "FLOP/s")(ceiling) if ceiling else duration(code.least_ns)
        yield Fact("ceiling of this device", shown, at)


def _idle(code: MachineCode) -> float:
    """The share of the time at the ceiling for which the busiest resource waits."""
    return 1 - max(busy(code).values(), default=1.0)


def _shares(counts: Mapping[str, float]) -> str:
    total = sum(counts.values())
    shown = [f"{n / total:.0%} {name}" for name, n in counts.items() if n / total >= _SMALL]
    return ", ".join(shown)


def _counts(loop: HotLoop) -> str:
    most = list(loop.instructions.items())[:_MOST_CLASSES]
    shown = [f"{n:,.0f} {name}" for name, n in most if n >= 0.5]
    return ", ".join(shown)


def words(explanation: Explanation) -> Iterator[str]:
    """The ceiling, what sets it, and what to try next."""
    code = explanation.code
    if code is None:
        return
    if code.spilled_bytes:
        yield (
            f"It spills {count(code.spilled_bytes)} bytes of registers to memory: fewer elements "
            "per thread, or fewer threads per block, would avoid that."
        )
    if not code.cycles or (code.operations_per_cycle is None and code.least_cycles is None):
        yield "No ceiling follows from the machine code: the table says what is not derived."
        return
    (resource, most), *rest = busy(code).items()
    beside = [f"{name} {share:.0%}" for name, share in rest[:3] if share >= 0.5]
    if (idle := _idle(code)) >= _ROUNDED:
        beside.insert(0, f"{most:.0%} busy, {idle:.0%} waits")
    bound = f"{resource} ({', '.join(beside)})" if beside else resource
    yield f"Its machine code allows at most {_ceiling(explanation, code)}, bound by {bound}."
    share = _reached(explanation, code)
    if share is not None:
        yield f"It reaches {percent(share)} of that."
    yield f"{_next(code, resource, share)}."


def _ceiling(explanation: Explanation, code: MachineCode) -> str:
    if code.ceiling_operations_per_s is not None:
        rate: Formatter = rates([code.ceiling_operations_per_s], "FLOP/s")
        return rate(code.ceiling_operations_per_s)
    if code.operations_per_cycle is not None:
        return (
            f"{code.operations_per_cycle:.1f} operations per cycle of a multiprocessor "
            f"({percent(code.peak_share)} of its float32 multiply-adds)"
        )
    return f"one launch per {duration(code.least_ns)}"


def _reached(explanation: Explanation, code: MachineCode) -> float | None:
    """The measured share of the ceiling."""
    outcome = explanation.outcome
    if outcome is None or not outcome.median_ns or code.least_ns is None:
        return None
    return code.least_ns / outcome.median_ns


def _next(code: MachineCode, resource: str, share: float | None) -> str:
    if (share is not None and share < _WAITS) or _idle(code) > 1 - _WAITS:
        return (
            "The rest is waiting, for memory or at barriers: load the next tile while this one is "
            "computed, give each thread more independent work, or let more warps be resident"
        )
    if resource == prediction.SHARED and _ratio(code.shared_cycles, code.shared_least_cycles):
        return "Remove bank conflicts: pad the rows of the tiles, or permute the lanes"
    if resource == prediction.L1 and _ratio(code.global_cycles, code.global_least_cycles):
        return "Coalesce: let neighbouring lanes access neighbouring addresses"
    return _TRY.get(resource, f"Use the {resource} less")


def _ratio(cycles: float, least: float) -> bool:
    return least > 0 and cycles / least > _SCATTERED
