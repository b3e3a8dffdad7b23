"""What follows from machine code whose figures can be computed by hand, and how it is shown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
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
from matbench.features.explain.record import (
    Explanation,
    HardwareCounters,
    HotLoop,
    MachineCode,
    NotDerived,
)
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


def explained(code: MachineCode | None, median_ns: float = 6e5) -> Explanation:
    outcome = outcome_of(case_of("tiled", 64), median_ns)
    found = explanation(case_of("tiled", 64), H200, H200, outcome, LIMITS)
    return msgspec.structs.replace(found, code=code)


def remarks(code: MachineCode, counters: HardwareCounters | None = None) -> dict[str, str]:
    return {
        row.cells[0]: f"{row.cells[1]} {row.reason}".strip()
        for group in section(code, counters).groups
        for row in group.rows
    }


def test_the_table_says_what_binds_and_leaves_out_what_hardly_works() -> None:
    told = remarks(CODE)
    assert told["shared memory"] == "100% binds: busy all the time at the ceiling"
    assert told["issue slots"] == "51%"
    assert told["integer pipe"] == "2%"
    assert "L1 cache" not in told
    assert told["instructions"] == "1,000 of a warp: 60% float32, 36% shared memory, 2% control"
    assert told["of one pass"] == "60 float32, 4 integer, 3 control, 2 barriers"
    assert told["global bytes used"].startswith("0.50 ×")
    assert told["shared memory cycles"] == "1.00 × no bank conflicts"
    told = remarks(msgspec.structs.replace(CODE, shared_least_cycles=992.0))
    assert told["shared memory cycles"].startswith("1.01 × times the cycles")


def test_waits_have_a_row_and_are_in_the_sentence() -> None:
    waiting = msgspec.structs.replace(CODE, block_cycles=1250.0, resident_blocks=2)
    told = remarks(waiting)
    assert told["shared memory"] == "80%"
    assert told["waits"].startswith("20% of a multiprocessor with 2 resident blocks")
    assert next(words(explained(waiting))).endswith("bound by shared memory (80% busy, 20% waits).")
    assert "waits" not in remarks(msgspec.structs.replace(waiting, block_cycles=1001.0))


def test_what_ncu_counted_stands_beside_it() -> None:
    counted = HardwareCounters(busy={"shared memory and L1": 0.93, "issue slots": 0.48})
    told = remarks(CODE, counted)
    assert told["shared memory"].endswith("; 93% counted by ncu")
    assert told["issue slots"] == "51% 48% counted by ncu"


def test_the_sentences_name_the_ceiling_what_binds_and_what_to_try() -> None:
    first, reached, advice = words(explained(CODE))
    assert first == (
        "Its machine code allows at most 6.00 TFLOP/s, bound by shared memory (issue slots 51%)."
    )
    assert reached == "It reaches 83% of that."
    assert advice.startswith("Use each value fetched more often")
    spilled = msgspec.structs.replace(CODE, spilled_bytes=64)
    assert next(words(explained(spilled))).startswith("It spills 64 bytes")


@pytest.mark.parametrize(
    ("changes", "ceiling"),
    [
        ({"ceiling_operations_per_s": None, "least_ns": None},
         "23.2 operations per cycle of a multiprocessor (9.0% of its float32 multiply-adds)"),
        ({"ceiling_operations_per_s": None, "operations_per_cycle": None},
         "one launch per 500.0 µs"),
    ],
)  # fmt: skip
def test_the_ceiling_may_be_one_of_any_device_or_of_launches(
    changes: dict[str, Any], ceiling: str
) -> None:
    busy = {"L1 cache": 1e3, "shared memory": 9e2, "a": 7e2, "b": 5e2, "c": 5e2}
    found = explained(msgspec.structs.replace(CODE, cycles=busy, **changes))
    beside = "shared memory 90%, a 70%, b 50%"
    first, *others = words(found)
    assert first == f"Its machine code allows at most {ceiling}, bound by L1 cache ({beside})."
    assert len(others) == ("least_ns" not in changes) + 1
    for outcome in (None, records.outcome(status="failed")):
        assert len(list(words(msgspec.structs.replace(found, outcome=outcome)))) == 2


SCATTERED = {"shared_cycles": 1201.0, "global_cycles": 1201.0, "global_least_cycles": 1000.0}
EDGE = {"shared_cycles": 1200.0, "global_cycles": 1200.0, "global_least_cycles": 1000.0}


@pytest.mark.parametrize(
    ("busiest", "changes", "advice"),
    [
        ("shared memory", SCATTERED, "Remove bank conflicts"),
        ("shared memory", EDGE, "Use each value fetched more often"),
        ("L1 cache", SCATTERED, "Coalesce"),
        ("L1 cache", EDGE, "Keep what neighbouring threads share"),
        ("issue slots", SCATTERED, "Let each instruction do more"),
        ("issue slots", {"block_cycles": 1010.0}, "The rest is waiting"),
        ("issue slots", {"least_ns": 6.9e5}, "The rest is waiting"),
        ("issue slots", {"least_ns": None}, "Let each instruction do more"),
    ],
)
def test_the_advice_is_for_what_binds(busiest: str, changes: dict[str, Any], advice: str) -> None:
    """Unless more than 30% is waiting, which it just is not here."""
    at_70 = {
        "cycles": {busiest: 700.0, "special functions": 1.0},
        "block_cycles": 1000.0,
        "least_ns": 7e5,
    }
    code = msgspec.structs.replace(CODE, **(at_70 | changes))
    assert list(words(explained(code, 1e6)))[-1].startswith(advice)


def test_what_is_not_derived_is_said() -> None:
    nothing = msgspec.structs.replace(
        CODE,
        operations_per_cycle=None,
        least_ns=None,
        not_derived=(
            NotDerived("addresses", "STG.E", 0x70),
            NotDerived("branch", address=0x80),
            NotDerived("cycles", "Turing 7.5"),
            NotDerived("rate", "HMMA"),
            NotDerived("opcode", "XYZ"),
        ),
    )
    for code in (nothing, msgspec.structs.replace(CODE, cycles={})):
        assert list(words(explained(code))) == [
            "No ceiling follows from the machine code: the table says what is not derived."
        ]
    rows = [row for group in section(nothing).groups for row in group.rows]
    assert [row.reason for row in rows if row.cells[0] == "not derived"] == [
        "the addresses of STG.E at 0x70",
        "the branch at 0x80 depends on loaded values",
        "cycles: no rates are known for Turing 7.5",
        "2 more of these",
    ]
    assert "ceiling of this device" not in remarks(nothing)
    fewer = msgspec.structs.replace(nothing, not_derived=nothing.not_derived[2:])
    assert remarks(fewer)["not derived"].endswith("an opcode that is not known")
    assert list(words(explained(None))) == []


def test_pages(file_regression: FileRegressionFixture) -> None:
    read = {name: figures(code) for name, code in codes().items()}
    file_regression.check(paged(read), encoding="utf-8")
