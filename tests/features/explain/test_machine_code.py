"""What follows from machine code whose figures can be computed by hand, and how it is shown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
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


def test_bytes_and_sectors_are_those_of_the_whole_launch() -> None:
    found = read(*COPY)
    assert found.not_derived == ()
    assert found.global_load_bytes == found.global_store_bytes == 4 * 4 * 32 * 32
    assert found.global_sectors == 2 * found.global_load_bytes / 32


def test_the_ceiling_is_that_of_the_busiest_resource() -> None:
    """32 warps: two accesses to the L1 cache each, and four instructions on four schedulers."""
    found = read(*COPY)
    assert found.cycles == {"L1 cache": 64, "issue slots": 32, "register banks": 16}
    assert (found.block_cycles, found.resident_blocks) == (64, 2)
    assert found.operations_per_cycle == 2 * 64**3 / 4 / 64
    assert found.peak_share == found.operations_per_cycle / (2 * 128)
    assert found.least_cycles is found.least_ns is found.sm_mhz is None


@pytest.mark.parametrize(("multiprocessors", "blocks"), [(132, 1), (3, 2)])
def test_the_fullest_multiprocessor_decides_for_all(multiprocessors: int, blocks: int) -> None:
    found = read(*COPY, multiprocessors=multiprocessors)
    assert found.resident_blocks == blocks
    assert (found.least_cycles, found.least_ns) == (64 * blocks, 64 * blocks)
    assert found.ceiling_operations_per_s == 2 * 64**3 / (64 * blocks) * 1e9


def test_without_all_addresses_no_bytes_are_known() -> None:
    found = read(*COPY[:2], "LDG.E R2, [R1]", "EXIT")
    assert found.not_derived == (NotDerived("addresses", "LDG.E", 0x20),)
    assert found.global_load_bytes is found.global_store_bytes is found.global_sectors is None
    assert found.block_cycles == 32
    assert read("UTMALDG.2D [UR8], [UR4]", *COPY).global_load_bytes is None, "copies of tiles"


@pytest.mark.parametrize(
    ("last", "missing"),
    [
        ("BRX R4 -0x30", NotDerived("target", address=0x20)),
        ("@P0 EXIT", NotDerived("branch", address=0x20)),
        ("BRA 0x20", NotDerived("passes", address=0x20)),
        ("HMMA.99999.F32 R4, R4, R4, R4", NotDerived("rate", "HMMA.99999.F32")),
        ("XYZ R4, R4", NotDerived("opcode", "XYZ")),
    ],
)
def test_what_cannot_be_followed_or_rated_is_said(last: str, missing: NotDerived) -> None:
    found = read("LDG.E R0, [RZ]", "ISETP.NE.AND P0, PT, R0, RZ, PT", last, "EXIT")
    assert found.not_derived == (missing,)
    is_followed = missing.what in ("rate", "opcode")
    assert (found.block_cycles is not None) == is_followed


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
    file_regression.check(paged(pages()), encoding="utf-8")
