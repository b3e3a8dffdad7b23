"""What the machine code shows, in a table and in sentences: its loop, its limits, what to try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from matbench.features.explain.machine_code import L1, MEMORY, SHARED, busy
from matbench.features.explain.record import Explanation, HardwareCounters, MachineCode
from matbench.show.table import Fact, Section, facts_section
from matbench.show.units import count, duration, percent, rates

#: Classes and resources with a smaller share are summed up.
_SMALL = 0.02
#: Below this share of the ceiling a kernel waits more than it works.
_WAITS = 0.7
#: From this ratio to the least, accesses are called scattered.
_SCATTERED = 1.2
_MOST_REASONS = 3
_MOST_CLASSES = 5
#: What ncu counts as one: both use the same path.
_PATH = (SHARED, L1)

WORDS = msgspec.toml.decode(Path(__file__).with_name("words.toml").read_bytes())


def section(code: MachineCode, counters: HardwareCounters | None = None) -> Section:
    """The table of the machine code, with what ncu counted beside it."""
    counted = counters.busy if counters is not None else {}
    facts = [*_instructions(code), *_accesses(code), *_busy(code, counted)]
    told = WORDS["missing"]
    reasons = [told[m.what].format(name=m.name, where=hex(m.address)) for m in code.not_derived]
    if len(reasons) > _MOST_REASONS:
        reasons[_MOST_REASONS:] = [f"{len(reasons) - _MOST_REASONS} more of these"]
    facts += (Fact("not derived", "", reason) for reason in reasons)
    return facts_section((f"machine code: {code.architecture}",), "of the code", facts)


def _instructions(code: MachineCode) -> Iterator[Fact]:
    if total := sum(code.instructions.values()):
        shares = {name: n / total for name, n in code.instructions.items()}
        shown = [f"{share:.0%} {name}" for name, share in shares.items() if share >= _SMALL]
        yield Fact("instructions", count(round(total)), f"of a warp: {', '.join(shown)}")
    if (loop := code.loop) is not None:
        size = sum(loop.instructions.values())
        where = f"{loop.share:.0%} of all, {loop.first:#x} to {loop.last:#x}"
        figure = f"{size:,.0f} × {loop.passes:,.0f}"
        yield Fact("hot loop", figure, f"instructions × passes, {where}")
        most = list(loop.instructions.items())[:_MOST_CLASSES]
        yield Fact("of one pass", "", ", ".join(f"{n:,.0f} {name}" for name, n in most if round(n)))


def _accesses(code: MachineCode) -> Iterator[Fact]:
    for name, cycles, least, good, bad in (
        ("shared memory", code.shared_cycles, code.shared_least_cycles, "no bank conflicts",
         "times the cycles of the same bytes without bank conflicts"),
        ("L1 cache", code.global_cycles, code.global_least_cycles, "coalesced",
         "times the cycles of coalesced accesses"),
    ):  # fmt: skip
        if cycles:
            ratio = cycles / least
            yield Fact(f"{name} cycles", f"{ratio:.2f} ×", good if round(ratio, 2) == 1 else bad)
    if code.global_sectors:
        moved = (code.global_load_bytes or 0.0) + (code.global_store_bytes or 0.0)
        share = moved / (32 * code.global_sectors)
        remark = f"of requested bytes per byte of the {count(code.global_sectors)} sectors"
        yield Fact("global bytes used", f"{share:.2f} ×", remark)


def _busy(code: MachineCode, counted: Mapping[str, float]) -> Iterator[Fact]:
    for name, share in busy(code).items():
        if share >= _SMALL:
            binds = ["binds: busy all the time at the ceiling"] if share == 1 else []
            measured = counted.get(MEMORY if name in _PATH else name)
            ncu = [f"{measured:.0%} counted by ncu"] if measured is not None else []
            yield Fact(name, f"{share:.0%}", "; ".join(binds + ncu))
    if idle := _idle(code):
        blocks = f"of a multiprocessor with {count(code.resident_blocks)} resident blocks"
        yield Fact("waits", f"{idle:.0%}", f"{blocks}, for loads, registers and barriers")
    if code.operations_per_cycle is not None:
        peak = f"{percent(code.peak_share)} of its float32"
        remark = f"operations per cycle of a multiprocessor, {peak}"
        yield Fact("ceiling", f"{code.operations_per_cycle:.1f}", remark)
    if code.least_ns is not None:
        ceiling = code.ceiling_operations_per_s
        at = f"{count(code.multiprocessors)} multiprocessors at {count(code.sm_mhz)} MHz"
        shown = rates([ceiling], "FLOP/s")(ceiling) if ceiling else duration(code.least_ns)
        yield Fact("ceiling of this device", shown, at)


def _idle(code: MachineCode) -> float:
    """The share of the time at the ceiling for which the busiest resource waits, as it is shown."""
    return round(1 - max(busy(code).values(), default=1.0), 2)


def words(explanation: Explanation) -> Iterator[str]:
    """The ceiling, what sets it, and what to try next."""
    code, outcome = explanation.code, explanation.outcome
    if code is None:
        return
    if code.spilled_bytes:
        yield WORDS["spills"].format(bytes=count(code.spilled_bytes))
    if not code.cycles or (code.operations_per_cycle is None and code.least_ns is None):
        yield "No ceiling follows from the machine code: the table says what is not derived."
        return
    yield f"Its machine code allows {allowed(code)}."
    reached = None
    if outcome is not None and outcome.median_ns and code.least_ns is not None:
        reached = code.least_ns / outcome.median_ns
        yield f"It reaches {percent(reached)} of that."
    yield f"{_next(code, next(iter(busy(code))), reached)}."


def allowed(code: MachineCode) -> str:
    """The ceiling, which is known, and what sets it."""
    if code.ceiling_operations_per_s is not None:
        ceiling = rates([code.ceiling_operations_per_s], "FLOP/s")(code.ceiling_operations_per_s)
    elif code.operations_per_cycle is not None:
        per_cycle = f"{code.operations_per_cycle:.1f} operations per cycle of a multiprocessor"
        ceiling = f"{per_cycle} ({percent(code.peak_share)} of its float32 multiply-adds)"
    else:
        ceiling = f"one launch per {duration(code.least_ns)}"
    (resource, most), *rest = busy(code).items()
    beside = [f"{name} {share:.0%}" for name, share in rest[:3] if share >= 0.5]
    if idle := _idle(code):
        beside.insert(0, f"{most:.0%} busy, {idle:.0%} waits")
    bound = f"{resource} ({', '.join(beside)})" if beside else resource
    return f"at most {ceiling}, bound by {bound}"


def _next(code: MachineCode, resource: str, reached: float | None) -> str:
    hint = resource
    if (reached is not None and reached < _WAITS) or 1 - _idle(code) < _WAITS:
        hint = "waits"
    elif resource == SHARED and code.shared_cycles > _SCATTERED * code.shared_least_cycles:
        hint = "bank conflicts"
    elif resource == L1 and code.global_cycles > _SCATTERED * code.global_least_cycles:
        hint = "scattered accesses"
    return str(WORDS["try"].get(hint, f"Use the {resource} less"))
