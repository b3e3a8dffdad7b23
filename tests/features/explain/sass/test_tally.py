"""What the warps of a block do, for listings short enough to add up by hand."""

from __future__ import annotations

import pytest
from support.machine_code import code_of

from matbench.features.explain.machine_code import demand
from matbench.features.explain.record import NotDerived
from matbench.features.explain.sass.memory import Cost
from matbench.features.explain.sass.tally import Tally, tally


def tallied(*instructions: str, block: int = 32, grid: tuple[int, int, int] = (1, 1, 1)) -> Tally:
    return tally(code_of(*instructions), (block, 1, 1), grid, {}, {"float16": 1024})


def test_everything_that_a_loop_does() -> None:
    found = tallied(
        "S2R R0, SR_TID.X", "MOV R1, RZ", "LDS.128 R4, [R0.X16]", "HMMA.16816.F32 R8, R4, R6, R8",
        "FFMA R12, R4, R6, R12", "VIADD R1, R1, 0x1", "ISETP.LT.AND P0, PT, R1, 0x64, PT",
        "@P0 BRA 0x20", "STG.E [R0.X4], R12", "LDG.E.64 R14, [R0.X8]", "UTMALDG.2D [UR8], [UR4]",
        "EXIT", block=64,
    )  # fmt: skip
    a_pass = {
        "shared memory": 100, "tensor": 100, "float32": 100, "integer and logic": 200,
        "control": 100,
    }  # fmt: skip
    assert found.warps == 2
    assert found.classes == a_pass | {
        "integer and logic": 201, "control": 102, "global memory": 3,
    }  # fmt: skip
    assert found.instructions == 606
    assert found.bank_reads == (100 * (1 + 5 + 3) + 3, 100 * (5 + 2))
    assert found.tensor_cycles == 100 * 16 * 8 * 16 / 1024
    assert found.traffic == {
        "shared loads": Cost(400, 400, 0, 100 * 512),
        "global stores": Cost(1, 1, 4, 128),
        "global loads": Cost(2, 2, 8, 256),
    }
    assert found.loop == {0x20}
    assert found.passes == 100
    assert found.in_loop == a_pass
    assert [each.address for each in found.path] == list(range(0x20, 0x80, 0x10))
    assert found.costs == {
        0x20: {"shared loads": 4}, 0x80: {"global stores": 1}, 0x90: {"global loads": 2},
    }  # fmt: skip
    assert (found.has_bulk, found.is_complete, found.unknown) == (True, True, ())


def test_accesses_of_one_pattern_that_begin_elsewhere_or_have_fewer_lanes() -> None:
    found = tallied(
        "S2R R0, SR_TID.X", "ISETP.LT.AND P0, PT, R0, 0x10, PT", "LDG.E R1, [R0.X4]",
        "LDG.E R1, [R0.X4+0x4]", "@P0 LDG.E R1, [R0.X4]", "EXIT",
    )  # fmt: skip
    assert found.traffic == {"global loads": Cost(3, 3, 4 + 5 + 2, 128 + 128 + 64)}
    assert (found.loop, found.passes, found.path) == (frozenset(), 0, ())


@pytest.mark.parametrize(("load", "binds"), [("LDS", "shared memory"), ("LDG.E", "L1 cache")])
def test_the_most_demanded_resource_comes_first(load: str, binds: str) -> None:
    start = ("S2R R0, SR_TID.X", "IMAD.SHL.U32 R2, R0, 0x80, RZ", f"{load} R1, [R2]")
    found = tallied(*start, "DADD R4, R6, R8", "HADD2 R4, R6, R8", "MUFU.RCP R4, R6", "EXIT")
    expected = {
        binds: 32, "special functions": 2, "issue slots": 7 / 4, "register banks": 7 / 4,
        "integer multiplier": 1 / 2, "float64 pipe": 1 / 2, "float32 pipe": 1 / 4,
        "float16 pipe": 1 / 4,
    }  # fmt: skip
    assert demand(found, (9, 0)) == expected
    assert next(iter(demand(found, (9, 0)))) == binds
    assert demand(found, (7, 0)) == {}


def test_what_is_not_known_is_said() -> None:
    found = tallied(
        "LDG.E R2, [R4]", "LDG.E R3, [R2]", "IMMA.16832.S8.S8 R4, R8.ROW, R12.COL, R4",
        "XYZ R1, R2", "@!PT LDG.E R3, [R4]", "EXIT",
    )  # fmt: skip
    assert set(found.unknown) == {
        NotDerived("addresses", "LDG.E", 0x10),
        NotDerived("rate", "IMMA.16832.S8.S8"),
        NotDerived("opcode", "XYZ"),
    }
    assert found.classes["not known"] == 1
    assert found.tensor_cycles == 0
    assert found.traffic["global loads"] == Cost(1, 1, 1, 128)


@pytest.mark.parametrize(("block", "share"), [(128, 1 / 4), (2048, 1 / 64 * 4)])
def test_the_average_warp_of_those_that_are_followed(block: int, share: float) -> None:
    """The first warp goes round; 16 of 64 are followed."""
    found = tallied(
        "S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x20, PT", "@P0 EXIT",
        "LDGSTS.E.BYPASS.128 [R0.X16], [R0.X16]", "VIADD R1, R1, 0x1",
        "ISETP.LT.AND P0, PT, R1, 0x28, PT", "@P0 BRA 0x30", "EXIT", block=block,
    )  # fmt: skip
    assert (found.warps, found.passes) == (block // 32, 40 * share)
    assert found.in_loop["global memory"] == found.classes["global memory"] == 40 * share
    assert found.traffic == {
        "shared stores": Cost(160 * share, 160 * share, 0, 20480 * share),
        "global loads": Cost(160 * share, 160 * share, 640 * share, 20480 * share),
    }
    assert found.costs == {0x30: {"shared stores": 4, "global loads": 4}}


def test_the_block_in_the_middle_of_the_grid_is_followed() -> None:
    found = tallied(
        "S2UR UR4, SR_CTAID.X", "S2UR UR5, SR_CTAID.Y", "S2UR UR6, SR_CTAID.Z",
        "ISETP.NE.AND P0, PT, RZ, RZ, PT", "UISETP.NE.AND UP0, UPT, UR4, 0x2, UPT",
        "UISETP.NE.OR UP0, UPT, UR5, 0x3, UP0", "UISETP.NE.OR UP0, UPT, UR6, 0x4, UP0", "@UP0 EXIT",
        "FADD R0, R0, R0", "EXIT", grid=(5, 7, 9),
    )  # fmt: skip
    assert found.classes["float32"] == 1


@pytest.mark.parametrize(("inner", "header"), [(2, 0x10), (20, 0x60)])
def test_the_innermost_loop_with_most_of_the_work_is_the_hot_one(inner: int, header: int) -> None:
    found = tallied(
        "MOV R1, RZ", *["FADD R4, R4, R5"] * 4, "MOV R2, RZ", "VIADD R2, R2, 0x1",
        f"ISETP.LT.AND P0, PT, R2, {inner:#x}, PT", "@P0 BRA 0x60", *["FADD R4, R4, R5"] * 4,
        "VIADD R1, R1, 0x1", "ISETP.LT.AND P0, PT, R1, 0xa, PT", "@P0 BRA 0x10", "EXIT",
    )  # fmt: skip
    assert found.loop
    assert (min(found.loop), found.passes) == (header, 10 if header == 0x10 else 10 * inner)
    rows = [each.address for each in found.path]
    assert (len(rows), rows[0]) == ((12 + 3 * inner, 0x10) if header == 0x10 else (3, 0x60))


def every_fourth_pass_differs(passes: int, least: int, block: int = 32) -> Tally:
    """In passes whose number, modulo 4, is not less than that there is an addition."""
    return tallied(
        "MOV R1, RZ", "LOP3.LUT R2, R1, 0x3, RZ, 0xc0, !PT",
        f"ISETP.LT.AND P1, PT, R2, {least:#x}, PT", "@P1 BRA 0x50", "FADD R4, R4, R5",
        "VIADD R1, R1, 0x1", f"ISETP.LT.AND P0, PT, R1, {passes:#x}, PT", "@P0 BRA 0x10", "EXIT",
        block=block,
    )  # fmt: skip


@pytest.mark.parametrize(("least", "is_ordinary"), [(3, False), (1, True)])
def test_an_ordinary_pass_leaves_out_what_few_passes_do(least: int, is_ordinary: bool) -> None:
    found = every_fourth_pass_differs(1000, least)
    assert (found.passes, found.classes["float32"]) == (1000, 250 * (4 - least))
    assert (0x40 in [each.address for each in found.path]) == is_ordinary


def test_all_warps_together_are_followed_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matbench.features.explain.sass.tally._MOST_INSTRUCTIONS", 2000)
    assert every_fourth_pass_differs(100, 3, block=64).is_complete
    found = every_fourth_pass_differs(100, 3, block=512)
    assert not found.is_complete
    assert {missing.what for missing in found.unknown} == {"passes"}


@pytest.mark.parametrize(
    ("text", "kind", "cost"),
    [
        ("LDSM.16.MT88.4 R4, [R0.X16]", "shared loads", Cost(4, 4, 0, 512)),
        ("LDSM.16.M88 R4, [R0.X16]", "shared loads", Cost(1, 1, 0, 128)),
        ("STSM.16.M88.2 [R0.X16], R4", "shared stores", Cost(2, 2, 0, 256)),
        ("ATOMS.ADD RZ, [R0.X8], R4", "shared stores", Cost(2, 1, 0, 128)),
        ("LDL.64 R4, [R0.X8]", "local loads", Cost(2, 2, 8, 256)),
        ("STL [R0.X4], R4", "local stores", Cost(1, 1, 4, 128)),
        ("REDG.E.ADD.F64.RN [R0.X8], R4", "global stores", Cost(2, 2, 8, 256)),
        ("CCTL.IVALL [R0]", "", Cost()),
    ],
)
def test_kinds_of_accesses(text: str, kind: str, cost: Cost) -> None:
    found = tallied("S2R R0, SR_TID.X", text, "EXIT")
    assert found.traffic == ({kind: cost} if kind else {})
    assert found.unknown == ()


def test_a_loop_that_is_entered_behind_its_header_has_no_pass() -> None:
    found = tallied("@P0 BRA 0x20", "BRA 0x30", "NOP", "@P1 BRA 0x20", "EXIT")
    assert found.loop == {0, 0x10, 0x20, 0x30}
    assert (found.passes, found.path, found.is_complete) == (0, (), True)
