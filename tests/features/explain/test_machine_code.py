"""What follows from machine code whose figures can be computed by hand, and how it is shown."""

from __future__ import annotations

from typing import Any

import msgspec
from pytest_regressions.file_regression import FileRegressionFixture
from support import records
from support.golden import paged
from support.h200 import H200, LIMITS, case_of, outcome_of
from support.machine_code import listing_of

from matbench.features.explain.architectures import named
from matbench.features.explain.disassembly import Disassembly
from matbench.features.explain.explanation import explanation
from matbench.features.explain.machine_code import machine_code
from matbench.features.explain.machine_code_view import section, words
from matbench.features.explain.record import HardwareCounters, HotLoop, MachineCode, NotDerived
from matbench.model import Resources

#: Each thread loads a word and stores it elsewhere.
COPY = ("S2R R0, SR_TID.X", "LDG.E R1, [R0.X4]", "STG.E [R0.X4+0x1000], R1", "EXIT")


def read(*instructions: str, multiprocessors: int | None = None) -> MachineCode:
    """Read as the code of four blocks of 32 × 32 threads, which multiply matrices of n = 64."""
    text = listing_of(*((each, 0) for each in instructions))
    resources = Resources(registers=16, static_shared_bytes=0, spilled_bytes=0)
    code = Disassembly(text, "k", "sm_90", resources)
    return machine_code(code, case_of("tiled", 64), named("sm_90"), multiprocessors, 1000.0)


def figures(code: MachineCode) -> str:
    """What is known, and what is not derived."""
    known = msgspec.to_builtins(code)
    missing = "".join(f"not derived: {each}\n" for each in known.pop("not_derived", ()))
    return missing + "\n".join(
        f"{name}: {value}" for name, value in known.items() if value is not None
    )


def codes() -> dict[str, MachineCode]:
    """Figures of the whole launch: 32 warps, and what the busiest resource, and the fullest
    multiprocessor, allows."""
    loaded = ("LDG.E R0, [RZ]", "ISETP.NE.AND P0, PT, R0, RZ, PT")
    last = (
        "BRX R4 -0x30", "@P0 EXIT", "BRA 0x20", "HMMA.99999.F32 R4, R4, R4, R4", "XYZ R4, R4",
    )  # fmt: skip
    return {
        "a copy": read(*COPY),
        "a copy on 132 multiprocessors": read(*COPY, multiprocessors=132),
        "a copy on 3 multiprocessors": read(*COPY, multiprocessors=3),
        "without all addresses": read(*COPY[:2], "LDG.E R2, [R1]", "EXIT"),
        "copies of tiles": read("UTMALDG.2D [UR8], [UR4]", *COPY),
        "a tensor map": read("UTMACCTL.PF [UR4]", *COPY),
        **{f"cannot be followed or rated: {each}": read(*loaded, each, "EXIT") for each in last},
    }


# The table and the sentences


CODE = MachineCode(
    architecture="sm_90", spilled_bytes=0,
    instructions={"float32": 600.0, "shared memory": 361.0, "control": 20.0, "conversions": 19.0},
    loop=HotLoop(
        first=0x100, last=0x200, passes=10, share=0.99,
        instructions={"float32": 60.0, "integer": 4.0, "control": 3.0, "barriers": 2.0,
                      "conversions": 0.5, "shared memory": 60.0},
    ),
    cycles={"shared memory": 1000.0, "issue slots": 510.0, "integer pipe": 20.0, "L1 cache": 19.0},
    least_cycles=1e6, operations_per_cycle=23.2, peak_share=0.09, multiprocessors=132,
    sm_mhz=1980.0, ceiling_operations_per_s=6e12, least_ns=5e5, global_load_bytes=3072.0,
    global_store_bytes=1024.0, global_sectors=256.0, shared_cycles=1000.0,
    shared_least_cycles=1000.0,
)  # fmt: skip


def told(
    median_ns: float | None = 6e5, counters: HardwareCounters | None = None, **changes: Any
) -> str:
    """The rows of the table, and the sentences; without a time the case has failed."""
    code, case = msgspec.structs.replace(CODE, **changes), case_of("tiled", 64)
    outcome = outcome_of(case, median_ns) if median_ns else records.outcome(status="failed")
    found = explanation(case, H200, H200, outcome, LIMITS)
    rows = [row for group in section(code, counters).groups for row in group.rows]
    lines = [" | ".join([*row.cells, row.reason or ""]).rstrip(" |") for row in rows]
    return "\n".join([*lines, "", *words(msgspec.structs.replace(found, code=code))])


#: Busy for 70% of the time at the ceiling, and of that of the case: the rest just is not too much.
AT_70 = {"median_ns": 1e6, "block_cycles": 1000.0, "least_ns": 7e5}
SCATTERED = {"shared_cycles": 1201.0, "global_cycles": 1201.0, "global_least_cycles": 1000.0}
EDGE = SCATTERED | {"shared_cycles": 1200.0, "global_cycles": 1200.0}
WAITING = {"block_cycles": 1250.0, "resident_blocks": 2}
NEITHER = {"operations_per_cycle": None, "least_ns": None}
MISSING = (
    NotDerived("addresses", "STG.E", 0x70), NotDerived("branch", address=0x80),
    NotDerived("cycles", "Turing 7.5"), NotDerived("rate", "HMMA"), NotDerived("opcode", "XYZ"),
)  # fmt: skip
BUSY = {"L1 cache": 1e3, "shared memory": 9e2, "a": 7e2, "b": 5e2, "c": 5e2}
ANY_DEVICE = {"cycles": BUSY, "ceiling_operations_per_s": None, "least_ns": None}
LAUNCHES = {"cycles": BUSY, "ceiling_operations_per_s": None, "operations_per_cycle": None}
ISSUING = {**AT_70, "cycles": {"issue slots": 700.0}}
SAID: dict[str, dict[str, Any]] = {
    "shared memory binds": {},
    "hardly any bank conflicts": {"shared_least_cycles": 992.0},
    "waits": WAITING,
    "hardly any waits": WAITING | {"block_cycles": 1001.0},
    "counted by ncu": {
        "counters": HardwareCounters(busy={"shared memory and L1": 0.93, "issue slots": 0.48})
    },
    "spilled registers": {"spilled_bytes": 64},
    "the ceiling of any device": ANY_DEVICE,
    "the ceiling of launches": LAUNCHES,
    "of launches, not measured": LAUNCHES | {"median_ns": None},
    **{
        f"{first}, {how}": AT_70 | {"cycles": {first: 700.0, "special functions": 1.0}} | cycles
        for first in ("shared memory", "L1 cache")
        for how, cycles in (("scattered", SCATTERED), ("at the edge", EDGE))
    },
    "issue slots": ISSUING | SCATTERED,
    "issue slots, of a ceiling that is not known": ISSUING | {"least_ns": None},
    "more waits in a pass": ISSUING | {"block_cycles": 1010.0},
    "more waits than the pass has": ISSUING | {"least_ns": 6.9e5},
    "much is not derived": NEITHER | {"not_derived": MISSING},
    "less is not derived": NEITHER | {"not_derived": MISSING[2:]},
    "no cycles": {"cycles": {}},
}  # fmt: skip


def test_pages(file_regression: FileRegressionFixture) -> None:
    read = {name: figures(code) for name, code in codes().items()}
    read |= {name: told(**changes) for name, changes in SAID.items()}
    file_regression.check(paged(read), encoding="utf-8")
    untimed = explanation(case_of("tiled", 64), H200, H200, None, LIMITS)
    assert len([*words(msgspec.structs.replace(untimed, code=CODE))]) == 2
    assert [*words(untimed)] == []
