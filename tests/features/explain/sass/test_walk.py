"""Following a warp through machine code that compilers write rarely."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from support.machine_code import code_of
from support.optional import present

from matbench.features.explain.record import NotDerived
from matbench.features.explain.sass.walk import (
    MOST_INSTRUCTIONS,
    Walk,
    WarpPlace,
    special_registers,
    walk,
)


def walked(
    *instructions: str, block: int = 32, warp: int = 0, most: int = MOST_INSTRUCTIONS,
    full_visits: int = 0, labels: Mapping[int, str] | None = None,
) -> Walk:  # fmt: skip
    place = WarpPlace((block, 1, 1), (1, 1, 1), (0, 0, 0), warp)
    return walk(
        code_of(*instructions, labels=labels), place, {}, full_visits=full_visits, most=most
    )


def test_where_a_warp_is() -> None:
    found = special_registers(WarpPlace((8, 2, 4), (5, 6, 7), (1, 2, 3), 1))
    lane = np.arange(32)
    expected: dict[str, Any] = {
        "SR_TID.X": lane % 8, "SR_TID.Y": lane // 8 % 2, "SR_TID.Z": 2 + lane // 16,
        "SR_CTAID.X": 1, "SR_CTAID.Y": 2, "SR_CTAID.Z": 3,
        "SR_NCTAID.X": 5, "SR_NCTAID.Y": 6, "SR_NCTAID.Z": 7,
        "SR_LANEID": lane, "SR_CgaCtaId": 0,
    }  # fmt: skip
    assert found.keys() == expected.keys()
    for name, value in found.items():
        assert np.array_equal(present(value), np.broadcast_to(expected[name], 32)), name


@pytest.mark.parametrize("n", [8, 400])
def test_lanes_that_take_a_longer_way_through_a_loop_go_round_less_often_at_first(n: int) -> None:
    """The upper half of the lanes takes the longer way in every fourth pass only: there it meets
    the lower half, which is in one of its passes then."""
    found = walked(
        "S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x10, PT", "MOV R1, RZ", "MOV R2, RZ",
        "VIADD R1, R1, 0x1", "VIADD R2, R2, 0x1", f"ISETP.GE.AND P1, PT, R1, {n:#x}, PT",
        "ISETP.LT.AND P2, PT, R2, 0x4, P0", "PLOP3.LUT P2, PT, P2, !P1, PT, 0x80, 0x0",
        "@P2 BRA 0x40", "MOV R2, RZ", "@!P1 BRA 0x40", "EXIT",
    )  # fmt: skip
    assert found.stopped is None
    assert found.visits[0x40] == n + n - n // 4
    assert found.visits[0xA0] == n
    assert found.visits[0xC0] == 1  # all lanes together


@pytest.mark.parametrize(
    ("end", "passes", "most"),
    [
        (30_000, 10_000, 40_000), (30_001, None, 40_000), (-30 % 2**32, None, 40_000),
        (12, 4, 13), (12, None, 9),
    ],
)  # fmt: skip
def test_a_counter_may_jump_over_its_last_number(end: int, passes: int | None, most: int) -> None:
    found = walked(
        "MOV R1, RZ", "VIADD R1, R1, 0x3", f"ISETP.NE.AND P0, PT, R1, {end:#x}, PT", "@P0 BRA 0x10",
        "EXIT", most=most,
    )  # fmt: skip
    if passes is None:
        assert found.stopped == NotDerived("passes", address=0x10)
    else:
        assert (found.stopped, found.visits[0x10]) == (None, passes)


def test_accesses_have_the_addresses_of_the_lanes_that_take_part() -> None:
    found = walked(
        "S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x24, PT", "MOV R1, RZ",
        "@P0 LDS R2, [R0.X4+0x100]", "@!PT LDS R2, [R0]", "STS [R2], R0",
        "LDGSTS.E [R0.X4], desc[UR4][R0.U32+0x8]", "VIADD R1, R1, 0x1",
        "ISETP.LT.AND P1, PT, R1, 0x9, PT", "@P1 BRA 0x30", "EXIT", block=40, warp=1, full_visits=3,
    )  # fmt: skip
    thread, active = np.arange(32, 64), np.arange(32) < 8
    assert found.visits[0x30] == 9
    assert {address: len(accesses) for address, accesses in found.accesses.items()} == {
        0x30: 3, 0x40: 0, 0x50: 3, 0x60: 6,
    }  # fmt: skip
    load, store, (copied, source, *_) = (found.accesses[address] for address in (0x30, 0x50, 0x60))
    assert np.array_equal(load[2].active, active & (thread >= 36))
    assert load[2].addresses is not None
    assert load[2].addresses[4:8].tolist() == [400, 404, 408, 412]
    assert store[0].addresses is None
    assert np.array_equal(store[0].active, active)
    assert copied.addresses is not None
    assert copied.addresses[:8].tolist() == [128, 132, 136, 140, 144, 148, 152, 156]
    assert source.addresses is not None
    assert source.addresses[:8].tolist() == [40, 41, 42, 43, 44, 45, 46, 47]


@pytest.mark.parametrize(
    ("instructions", "visits"),
    [
        # A call, and its return to the address in a register.
        (["MOV R4, 0x20", "CALL.REL.NOINC `(f)", "EXIT", "RET.REL.NODEC R4 `(k)"],
         {0x0: 1, 0x20: 1, 0x30: 1}),
        # Both the guard and a branch's own predicate decide.
        (["S2R R0, SR_TID.X", "ISETP.LT.AND P0, P1, R0, 0x8, PT", "@P0 BRA P1, 0x40", "EXIT",
          "EXIT"], {0x0: 1, 0x30: 1}),
        (["S2R R0, SR_TID.X", "ISETP.LT.AND P0, P1, R0, 0x8, PT", "@P0 BRA !P1, 0x40", "EXIT",
          "EXIT"], {0x0: 1, 0x30: 1, 0x40: 1}),
        # A branch for lanes that have parted, and the place where they meet again.
        (["BRA.DIV UR4, 0x20", "EXIT", "EXIT"], {0x0: 1, 0x10: 1}),
        (["BSSY B0, 0x20", "NOP", "BSYNC B0", "EXIT"], {0x0: 1}),
        # Waits for another block end at once; this one is not the last to arrive.
        (["LDG.E.STRONG.GPU R0, [R2.64]", "ISETP.EQ.AND P0, PT, R0, RZ, PT", "@P0 BRA 0x0",
          "EXIT"], {0x0: 1, 0x30: 1}),
        # Nor is a loop entered that waits for another block.
        (["LDG.E.STRONG.GPU R0, [R2.64]", "ISETP.NE.AND P0, PT, R0, RZ, PT", "@P0 BRA 0x60",
          "LDG.E.STRONG.GPU R0, [R2.64]", "ISETP.EQ.AND P0, PT, R0, RZ, PT", "@P0 BRA 0x30",
          "EXIT"], {0x0: 1, 0x60: 1}),
        (["SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R5", "@!P0 BRA 0x0", "EXIT"],
         {0x0: 1, 0x20: 1}),
        (["ATOMG.E.INC.STRONG.GPU PT, R0, [R2.64], R5", "ISETP.NE.AND P0, PT, R0, 0x3, PT",
          "@P0 EXIT", "EXIT"], {0x0: 1}),
        # One lane is elected.
        (["ELECT P0, URZ, PT", "@!P0 EXIT", "S2R R0, SR_LANEID", "ISETP.NE.AND P1, PT, R0, RZ, PT",
          "@P1 BRA 0x60", "EXIT", "EXIT"], {0x0: 1, 0x20: 1, 0x50: 1}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_blocks_that_are_visited(instructions: list[str], visits: dict[int, int]) -> None:
    found = walked(*instructions, labels={0x30: "f"} if "CALL" in instructions[1] else None)
    assert found.stopped is None
    assert found.visits == visits


@pytest.mark.parametrize("branch", ["@P0 BRA 0x0", "BRA P0, 0x0", "@P0 EXIT"])
def test_a_branch_that_depends_on_what_was_loaded(branch: str) -> None:
    found = walked("LDG.E R0, [R2.64]", "ISETP.EQ.AND P0, PT, R0, RZ, PT", branch, "EXIT")
    assert found.stopped == NotDerived("branch", address=0x20)


def test_variables_have_addresses() -> None:
    found = walked("LDC.64 R2, c[0x4][0x8]", "STG.E [R2.64], R0", "EXIT", full_visits=1)
    [store] = found.accesses[0x10]
    assert store.addresses is not None
    assert (store.addresses % 256 == 0).all()


@pytest.mark.parametrize(
    ("first", "branch"),
    [
        ("LDG.E R2, [R4.64]", "BRX R2 -0x10"),
        ("LDG.E R2, [R4.64]", "RET.REL.NODEC R2 `(k)"),
        ("MOV R2, 0x20", "BRX R2"),  # relative to what follows
    ],
)
def test_a_branch_to_a_place_that_is_not_known(first: str, branch: str) -> None:
    found = walked(first, branch, "EXIT")
    assert found.stopped is not None
    assert found.stopped.what == "target"


def test_what_a_predicate_was_before_an_election_decides_nothing() -> None:
    """One lane after the other takes part, in a loop; before, the predicate was a carry that comes
    back every eight passes."""
    found = walked(
        "MOV R1, RZ", "LOP3.LUT R2, R1, 0x7, RZ, 0xc0, !PT", "IADD3 R3, P2, R2, 0xfffffffc, RZ",
        "PLOP3.LUT P0, PT, PT, PT, PT, 0x80, 0x0", "@P0 ELECT P2, URZ, PT",
        "@P2 PLOP3.LUT P0, PT, P2, PT, PT, 0x8, 0x0", "PLOP3.LUT P2, PT, PT, PT, PT, 0x8, 0x0",
        "@P0 BRA.U.ANY 0x40", "VIADD R1, R1, 0x1", "ISETP.GE.AND P1, PT, R1, 0x2710, PT",
        "@!P1 BRA 0x10", "EXIT", block=1,
    )  # fmt: skip
    assert found.stopped is None
    assert found.visits[0x10] == found.visits[0x40] == 10_000


def test_ways_that_meet_again_are_no_loop() -> None:
    program = ("NOP", "@P0 BRA 0x40", "NOP", "BRA 0x50", "NOP", "@P1 BRA 0x10", "EXIT")
    loops = code_of(*program).loops
    assert loops == {0x10: {0x10, 0x20, 0x40, 0x50}}


def test_what_may_have_been_written_is_not_known() -> None:
    found = walked(
        "LDG.E R0, desc[UR4][R2.64]", "ISETP.NE.AND P0, PT, R0, RZ, PT", "MOV R1, 0x1",
        "@P0 MOV R1, 0x2", "ISETP.EQ.AND P1, PT, R1, 0x1, PT", "@P1 EXIT", "EXIT",
    )  # fmt: skip
    assert found.stopped == NotDerived("branch", address=0x50)


# Loops


@pytest.mark.parametrize(
    ("first", "follows"),
    [
        ("BRA 0x20", (0x20,)),
        ("@PT BRA 0x20", (0x20,)),
        ("@!PT BRA 0x20", (0x20, 0x10)),
        ("@P0 BRA 0x20", (0x20, 0x10)),
        ("BRA P0, 0x20", (0x20, 0x10)),
        ("BRA 0x10", (0x10,)),
        ("EXIT", ()),
        ("@P0 EXIT", (0x10,)),
        ("BRX R2 -0x10", ()),
    ],
)
def test_what_follows_a_block(first: str, follows: tuple[int, ...]) -> None:
    found = code_of(first, "NOP", "NOP", "EXIT")
    assert found.graph[0].next == follows


def test_loops_in_loops() -> None:
    found = code_of("NOP", "NOP", "NOP", "@P0 BRA 0x20", "@P1 BRA 0x20", "@P2 BRA 0x10", "EXIT")
    outer, inner = {0x10, 0x20, 0x40, 0x50}, {0x20, 0x40}
    assert found.loops == {0x10: set(outer), 0x20: set(inner)}
