"""Blocks of code, what follows them, and loops whose branches can be foreseen."""

from __future__ import annotations

import pytest
from support.machine_code import code_of

from matbench.features.explain.sass import flow


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
    assert found.loops == (flow.Loop(0x10, frozenset(outer)), flow.Loop(0x20, frozenset(inner)))
    assert found.around == {
        start: (0x10,) * (start in outer) + (0x20,) * (start in inner) for start in found.graph
    }


QUOTIENT = "SHF.R.U32.HI R3, RZ, 0x2, R1"


@pytest.mark.parametrize(
    ("body", "is_linear"),
    [
        (["IADD3 R3, R1, R2, RZ"], True),
        (["LOP3.LUT R3, R1, 0x3, RZ, 0xc0, !PT"], False),  # a remainder repeats
        (["LOP3.LUT R3, R2, 0x3, RZ, 0xc0, !PT"], True),  # that of what stays the same does not
        (["LOP3.LUT R5, R1, 0x3, RZ, 0xc0, !PT", "MOV R3, R1"], True),  # decides nothing
        (["MOV R4, R2", "LOP3.LUT R3, R1, R4, RZ, 0xc0, !PT"], False),
        (["IMAD.HI.U32 R3, R1, R2, RZ"], False),
        ([QUOTIENT], True),
        ([QUOTIENT, "IMAD R3, R3, -0x4, R1"], False),
        ([QUOTIENT, "VIADD R3, R3, 0x1", "IMAD R3, R3, -0x4, R1"], False),
        ([QUOTIENT, "MOV R3, R2", "IMAD R3, R3, -0x4, R1"], True),
        ([QUOTIENT, "@P5 MOV R3, R2", "IMAD R3, R3, -0x4, R1"], False),
        (["SHF.R.S32.HI R3, RZ, 0x1f, R1", "IADD3 R3, R3, R1, RZ"], True),  # only the sign
        (["SHF.L.U32 R3, R1, 0x2, RZ", "IADD3 R3, R3, R1, RZ"], True),
        (["LEA.HI R3, R1, RZ, RZ, 0x1c", "IADD3 R3, R3, R1, RZ"], False),
        (["LEA.HI.X R3, R1, RZ, RZ, 0x2, P5", "IADD3 R3, R3, R1, RZ"], True),
        (["LEA R3, R1, RZ, 0x2", "IADD3 R3, R3, R1, RZ"], True),
    ],
)
def test_branches_that_go_the_same_way_in_between(body: list[str], is_linear: bool) -> None:
    """R1 changes in each pass; the branch depends on R3."""
    test = "ISETP.LT.AND P0, PT, R3, 0x64, PT"
    found = code_of(*body, "VIADD R1, R1, 0x1", test, "@P0 BRA 0x0", "EXIT")
    assert flow.is_linear(found, found.loops[0].blocks, frozenset({"R1"})) == is_linear
