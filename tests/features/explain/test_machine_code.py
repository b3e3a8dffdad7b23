"""What follows from machine code whose figures can be computed by hand, and how it is shown."""

from __future__ import annotations

from typing import Any

import msgspec
from pytest_regressions.file_regression import FileRegressionFixture
from support import tables
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
from matbench.show import terminal

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
        **{f"cannot be followed or rated: {each}": read(*loaded, each, "EXIT") for each in last},
    }


# The table and the sentences


CODE = MachineCode(
    architecture="sm_90", spilled_bytes=0,
    instructions={"float32": 600.0, "shared memory": 300.0, "control": 100.0},
    loop=HotLoop(first=0x100, last=0x200, passes=10, instructions={"float32": 60.0}, share=0.99),
    cycles={"shared memory": 1000.0, "issue slots": 510.0, "integer pipe": 10.0}, least_cycles=1e6,
    operations_per_cycle=23.2, peak_share=0.09, multiprocessors=132, sm_mhz=1980.0,
    ceiling_operations_per_s=6e12, least_ns=5e5, global_load_bytes=4096.0, global_store_bytes=0.0,
    global_sectors=256.0, shared_cycles=1000.0, shared_least_cycles=1000.0,
)  # fmt: skip


def page(
    code: MachineCode | None, median_ns: float = 6e5, counters: HardwareCounters | None = None
) -> str:
    """The table and the sentences of a case that took that long."""
    found = explanation(
        case_of("tiled", 64), H200, H200, outcome_of(case_of("tiled", 64), median_ns), LIMITS
    )
    sentences = words(msgspec.structs.replace(found, code=code))
    table = terminal.section_renderables(section(code, counters)) if code is not None else []
    return "\n".join([tables.printed(table), *sentences])


COUNTED = HardwareCounters(busy={"shared memory and L1": 0.93, "issue slots": 0.48})
MISSING = (
    NotDerived("addresses", "STG.E", 0x70), NotDerived("branch", address=0x80),
    NotDerived("cycles", "Turing 7.5"), NotDerived("rate", "HMMA"), NotDerived("opcode", "XYZ"),
)  # fmt: skip


def pages() -> dict[str, str]:
    def changed(**changes: Any) -> MachineCode:
        return msgspec.structs.replace(CODE, **changes)

    nothing = {"operations_per_cycle": None, "least_cycles": None, "least_ns": None}
    return {
        "it binds": page(CODE),
        "it waits": page(changed(block_cycles=1250.0, resident_blocks=2)),
        "it hardly waits": page(changed(block_cycles=1001.0, resident_blocks=2)),
        "what ncu counted": page(CODE, counters=COUNTED),
        "bank conflicts": page(changed(shared_least_cycles=250.0)),
        "scattered accesses": page(
            changed(cycles={"L1 cache": 9.0}, global_cycles=9.0, global_least_cycles=1.0)
        ),
        "far from the ceiling": page(CODE, 5e6),
        "spilled registers": page(changed(spilled_bytes=64)),
        "what is not derived": page(changed(**nothing, not_derived=MISSING)),
        "no machine code": page(None),
    }


def test_pages(file_regression: FileRegressionFixture) -> None:
    read = {name: figures(code) for name, code in codes().items()}
    file_regression.check(paged(read | pages()), encoding="utf-8")
