"""The table and the sentences on machine code."""

from __future__ import annotations

import msgspec
from support.h200 import H200, LIMITS, case_of, outcome_of

from matbench.features.explain.explanation import explanation
from matbench.features.explain.machine_code_view import section, words
from matbench.records.explanation import (
    Explanation,
    HardwareCounters,
    HotLoop,
    MachineCode,
    NotDerived,
)

CODE = MachineCode(
    architecture="sm_90", registers=32, spilled_bytes=0, static_shared_bytes=2048,
    instructions={"float32": 600.0, "shared memory": 300.0, "control": 100.0},
    loop=HotLoop(first=0x100, last=0x200, passes=10, instructions={"float32": 60.0}, share=0.99),
    cycles={"shared memory": 1000.0, "issue slots": 510.0, "integer pipe": 10.0}, least_cycles=1e6,
    operations_per_cycle=23.2, peak_share=0.09, multiprocessors=132, sm_mhz=1980.0,
    ceiling_operations_per_s=6e12, least_ns=5e5, global_load_bytes=4096.0, global_store_bytes=0.0,
    global_sectors=256.0, shared_cycles=1000.0, shared_least_cycles=1000.0,
)  # fmt: skip


def explained(code: MachineCode | None, median_ns: float = 6e5) -> Explanation:
    outcome = outcome_of(case_of("tiled", 64), median_ns)
    found = explanation(case_of("tiled", 64), H200, outcome, LIMITS, [])
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
    assert "integer pipe" not in told
    assert told["instructions"].startswith("1,000 of a warp: 60% float32, 30% shared memory")
    assert told["global bytes used"].startswith("0.50 ×")
    assert told["shared memory cycles"].endswith("no bank conflicts")


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


def test_conflicts_waits_and_spills_change_the_advice() -> None:
    conflicts = msgspec.structs.replace(CODE, shared_least_cycles=250.0)
    assert list(words(explained(conflicts)))[-1].startswith("Remove bank conflicts")
    assert list(words(explained(CODE, 5e6)))[-1].startswith("The rest is waiting")
    spilled = msgspec.structs.replace(CODE, spilled_bytes=64)
    assert next(words(explained(spilled))).startswith("It spills 64 bytes")


def test_what_is_not_derived_is_said() -> None:
    nothing = msgspec.structs.replace(
        CODE,
        operations_per_cycle=None,
        least_cycles=None,
        least_ns=None,
        not_derived=(
            NotDerived("addresses", "STG.E", 0x70),
            NotDerived("branch", address=0x80),
            NotDerived("cycles", "Turing 7.5"),
            NotDerived("rate", "HMMA"),
            NotDerived("opcode", "XYZ"),
        ),
    )
    assert list(words(explained(nothing))) == [
        "No ceiling follows from the machine code: the table says what is not derived."
    ]
    rows = [row for group in section(nothing).groups for row in group.rows]
    assert [row.reason for row in rows if row.cells[0] == "not derived"] == [
        "the addresses of STG.E at 0x70",
        "the branch at 0x80 depends on loaded values",
        "cycles: no rates are known for Turing 7.5",
        "2 more of these",
    ]
    assert list(words(explained(None))) == []
