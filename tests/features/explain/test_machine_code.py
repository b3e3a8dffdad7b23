"""What follows from machine code of a few instructions, whose figures can be computed by hand."""

from __future__ import annotations

import pytest
from support.h200 import case_of
from support.machine_code import listing_of

from matbench.features.explain.machine_code import machine_code
from matbench.features.explain.other_devices import named
from matbench.model import Resources
from matbench.records.explanation import MachineCode, NotDerived

#: Each thread loads a word and stores it elsewhere.
COPY = ("S2R R0, SR_TID.X", "LDG.E R1, [R0.X4]", "STG.E [R0.X4+0x1000], R1", "EXIT")


def read(*instructions: str, multiprocessors: int | None = None) -> MachineCode:
    """Read as the code of four blocks of 32 × 32 threads, which multiply matrices of n = 64."""
    text = listing_of(*((each, 0) for each in instructions))
    return machine_code(
        (text, "k", "sm_90"), case_of("tiled", 64), named("sm_90"),
        resources=Resources(registers=16, static_shared_bytes=0, spilled_bytes=0),
        multiprocessors=multiprocessors, sm_mhz=1000.0,
    )  # fmt: skip


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
    assert found.least_cycles is found.least_ns is None


@pytest.mark.parametrize(("multiprocessors", "blocks"), [(132, 1), (3, 2)])
def test_a_device_is_as_slow_as_the_multiprocessor_with_the_most_blocks(
    multiprocessors: int, blocks: int
) -> None:
    found = read(*COPY, multiprocessors=multiprocessors)
    assert found.resident_blocks == blocks
    assert (found.least_cycles, found.least_ns) == (64 * blocks, 64 * blocks)
    assert found.ceiling_operations_per_s == 2 * 64**3 / (64 * blocks) * 1e9


def test_without_all_addresses_no_bytes_are_known() -> None:
    found = read(*COPY[:2], "LDG.E R2, [R1]", "EXIT")
    assert found.not_derived == (NotDerived("addresses", "LDG.E", 0x20),)
    assert found.global_load_bytes is found.global_store_bytes is found.global_sectors is None
    assert found.block_cycles == 32


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
