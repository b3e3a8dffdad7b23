"""Integer instructions on lanes, against arithmetic by hand."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from matbench.features.explain.sass import listing
from matbench.features.explain.sass.integers import LANES, Lanes, UnknownError, compute

M = 2**32 - 1
SIGN = 2**31
T, F = True, False
LANE = list(range(LANES))
#: Constant bank 0 by offset, and special registers.
CONSTANTS = {0x210: 7, 0x214: 1, 0x218: 8, 0x21C: 9}
SPECIAL = {"SR_TID.X": np.arange(LANES, dtype=np.uint64)}

#: A register's value in all lanes, or in the first ones; the others repeat these.
Values = Mapping[str, int | Sequence[int]]


def pair(name: str, *values: int) -> dict[str, list[int]]:
    """64 bits in a register and the next one."""
    kind, number = name.rstrip("0123456789"), int(name.lstrip("UR"))
    return {
        name: [value & M for value in values],
        f"{kind}{number + 1}": [value >> 32 & M for value in values],
    }


def bits(*numbers: float) -> list[int]:
    """float32 as bits."""
    return [int(np.float32(number).view(np.uint32)) for number in numbers]


def in_lanes(value: int | Sequence[int]) -> np.ndarray:
    numbers = np.resize(np.array(value), LANES)
    return numbers if numbers.dtype == bool else numbers.astype(np.uint64)


def instruction(text: str) -> listing.Instruction:
    return listing._instruction(0, text, 0, {})


#: An instruction as nvdisasm shows it, what it reads, and what it writes, in the first lanes.
TABLE: list[tuple[str, Values, Values]] = [
    ("MOV R4, 0x7f", {}, {"R4": 127}),
    ("MOV R4, c[0x0][0x210]", {}, {"R4": 7}),
    ("MOV.64 R4, UR8", pair("UR8", -3), pair("R4", -3)),
    ("MOV.64 R4, c[0x0][0x210]", {}, {"R4": 7, "R5": 1}),
    ("MOV.64 R4, -0x2", {}, pair("R4", -2)),
    ("UMOV UR4, 0x400", {}, {"UR4": 1024}),
    ("S2R R4, SR_TID.X", {}, {"R4": LANE}),
    ("CS2R R4, SRZ", {}, {"R4": 0, "R5": 0}),
    ("CS2R.32 R4, SRZ", {}, {"R4": 0}),
    ("LDC R4, c[0x0][0x210]", {}, {"R4": 7}),
    ("ULDC.64 UR4, c[0x0][0x210]", {}, {"UR4": 7, "UR5": 1}),
    ("LDCU.128 UR4, c[0x0][0x210]", {}, {"UR4": 7, "UR5": 1, "UR6": 8, "UR7": 9}),
    ("R2UR UR4, R0", {"R0": 5}, {"UR4": 5}),
    ("R2UR P0, UR4, R0", {"R0": 5}, {"UR4": 5}),
    ("HFMA2 R4, -RZ, RZ, 1.875, 0", {}, {"R4": bits(1)}),
    ("HFMA2.MMA R4, -RZ, RZ, 0, 5.9604644775390625e-08", {}, {"R4": 1}),
    ("P2R R4, PR, R0, 0x15", {"P0": T, "P1": T, "P4": T, "R0": 0xF6}, {"R4": 0xF3}),
    ("P2R R4, PR, RZ, 0x7f", {"P6": [T, F]}, {"R4": [64, 0]}),
    # Sums; a carry for each 2**32.
    ("IADD3 R4, P0, P1, R0, R0, R0", {"R0": [M, SIGN, 1]},
        {"R4": [M - 2, SIGN, 3], "P0": [T, T, F], "P1": [T, F, F]}),
    ("IADD3 R4, P1, PT, RZ, -R4, RZ", {"R4": [0, 1]}, {"R4": [0, M], "P1": [T, F]}),
    ("IADD3.X R5, R1, ~R3, RZ, P0, !PT", {"R1": 5, "R3": 2, "P0": [T, F]}, {"R5": [3, 2]}),
    ("IADD3.X R5, P2, R1, R3, RZ, P0, P1", {"R1": M - 1, "P0": [F, T, T], "P1": [F, F, T]},
        {"R5": [M - 1, M, 0], "P2": [F, F, T]}),
    ("IADD3.X R5, PT, PT, RZ, -0x1, RZ, P1, !PT", {"P1": [T, F]}, {"R5": [0, M]}),
    ("VIADD R4, R0, 0xffffffff", {"R0": [0, 1]}, {"R4": [M, 0]}),
    ("UIADD3 UR4, UR6, -0x3, URZ", {"UR6": 5}, {"UR4": 2}),
    ("IADD.64 R4, R0, R2", pair("R0", M, -1) | pair("R2", 2, 2), pair("R4", M + 2, 1)),
    ("IADD.64 R4, R0, -R2", pair("R0", M + 1, 1) | pair("R2", 2, 2), pair("R4", M - 1, -1)),
    ("IADD.64 R4, P0, R0, R2", pair("R0", -1, 1) | pair("R2", 2, 2),
     pair("R4", 1, 3) | {"P0": [T, F]}),
    ("IADD.64 R4, P0, R0, -R2", pair("R0", 2, 1) | pair("R2", 2, 2),
     pair("R4", 0, -1) | {"P0": [T, F]}),
    ("IADD.64 R4, R0, -0x40", pair("R0", M + 1), pair("R4", M - 63)),
    # Products.
    ("IMAD R4, R0, R1, R2", {"R0": [3, M, SIGN], "R1": [5, 2, 2], "R2": 7}, {"R4": [22, 5, 7]}),
    ("IMAD.IADD R4, R0, 0x1, -R2", {"R0": [9, 2], "R2": 5}, {"R4": [4, M - 2]}),
    ("IMAD.SHL.U32 R4, R0, 0x10, RZ", {"R0": [3, SIGN]}, {"R4": [48, 0]}),
    ("IMAD.X R4, R0, 0x1, R2, P0", {"R0": 3, "R2": 5, "P0": [T, F]}, {"R4": [9, 8]}),
    ("IMAD.X R4, R0, 0x1, R2, !P0", {"R0": 3, "R2": 5, "P0": [T, F]}, {"R4": [8, 9]}),
    ("IMAD.WIDE R4, R0, 0x4, R2", {"R0": [5, M]} | pair("R2", 0, 100), pair("R4", 20, 96)),
    ("IMAD.WIDE R4, R0, -0x4, c[0x0][0x210]", {"R0": 5}, pair("R4", 2**32 + 7 - 20)),
    ("IMAD.WIDE.U32 R4, R0, R1, RZ", {"R0": M, "R1": M}, pair("R4", M * M)),
    ("IMAD.WIDE.U32 R4, P0, R0, R1, R2", {"R0": [1, 0], "R1": 1, **pair("R2", -1)},
        pair("R4", 0, -1) | {"P0": [T, F]}),
    ("IMAD.WIDE.U32.X R4, R0, R1, R2, P0", {"R0": 3, "R1": 2, "P0": [T, F], **pair("R2", 2**40)},
        pair("R4", 2**40 + 7, 2**40 + 6)),
    ("IMAD.WIDE.U32.X R4, P0, R0, R1, R2, P1",
     {"R0": [1, 1, 0], "R1": 1, "P1": [T, F, T], **pair("R2", -1, -1, -1)},
     {"P0": T, **pair("R4", 1, 0, 0)}),
    ("IMAD.HI R4, R0, R1, RZ", {"R0": M, "R1": [1, M]}, {"R4": [M, 0]}),
    ("IMAD.HI.U32 R4, R0, R1, R2", {"R0": M, "R1": M, **pair("R2", 2**33)}, {"R4": 0}),
    # Sums with a shifted number, and upper halves of such sums.
    ("LEA R4, P0, R0, R2, 0x2", {"R0": [5, SIGN, M], "R2": 8},
        {"R4": [28, 8, 4], "P0": [F, F, T]}),
    ("LEA R4, P0, -R0, R2, 0x2", {"R0": [5, 1], "R2": 8}, {"R4": [M - 11, 4], "P0": [F, T]}),
    ("ULEA UR4, UR6, -UR5, 0x3", {"UR6": 5, "UR5": 8}, {"UR4": 32}),
    ("LEA.HI R4, R0, R2, RZ, 0x1", {"R0": [SIGN, SIGN - 1], "R2": 10}, {"R4": [11, 10]}),
    ("LEA.HI R4, R0, R2, R1, 0x4", {"R0": 15 << 28, "R1": 1, "R2": 2}, {"R4": 16 + 15 + 2}),
    ("LEA.HI.SX32 R4, R0, R2, 0x1d", {"R0": [16, M - 15, 2**30], "R2": 9},
        {"R4": [11, 7, 2**27 + 9]}),
    ("LEA.HI.X R5, R0, R3, R1, 0x2, P0", {"R0": SIGN, "R1": 1, "R3": 10, "P0": [T, F]},
        {"R5": [10 + 6 + 1, 10 + 6]}),
    ("LEA.HI.X R5, P1, R0, R3, R1, 0x2, P0", {"R1": 1, "R3": M - 4, "P0": [T, F]},
        {"R5": [0, M], "P1": [T, F]}),
    ("LEA.HI.X.SX32 R5, R0, R3, 0x2, P0", {"R0": [M, 1], "R3": 10, "P0": T}, {"R5": [10, 11]}),
    # Shifts.
    ("SHF.L.U32 R4, R0, R1, RZ", {"R0": 3, "R1": [0, 31, 32]}, {"R4": [3, SIGN, 0]}),
    ("SHF.L.U64.HI R4, R0, 0x4, R1", {"R0": 15 << 28, "R1": 1}, {"R4": 31}),
    ("SHF.R.U32.HI R4, RZ, 0x4, R0", {"R0": M}, {"R4": M >> 4}),
    ("USHF.R.S32.HI UR4, URZ, 0x1f, UR5", {"UR5": [5, M]}, {"UR4": [0, M]}),
    ("SHF.R.U64 R4, R0, 0x5, R1", {"R0": 32, "R1": 1}, {"R4": 1 + (1 << 27)}),
    ("SHF.R.S64 R4, R0, 0x24, R1", pair("R0", -5 << 36), {"R4": M - 4}),
    ("SHF.L.W.U32.HI R4, R0, R1, R0", {"R0": SIGN + 1, "R1": [1, 33]}, {"R4": 3}),
    ("SHF.R.W.U32 R4, R0, 0x1, R0", {"R0": SIGN + 1}, {"R4": SIGN + SIGN // 2}),
    # Logic; the table is that of PTX's lop3.
    ("LOP3.LUT R4, R0, 0x3f, RZ, 0xc0, !PT", {"R0": 0xFF}, {"R4": 0x3F}),
    ("ULOP3.LUT UR4, UR5, 0x8, URZ, 0xfc, !UPT", {"UR5": 0x3}, {"UR4": 0xB}),
    ("LOP3.LUT R4, R0, 0x3, R2, 0x78, !PT", {"R0": 6, "R2": 7}, {"R4": 5}),
    ("LOP3.LUT P0, R4, R0, 0x1, RZ, 0xc0, !PT", {"R0": [2, 3]}, {"R4": [0, 1], "P0": [F, T]}),
    ("LOP3.LUT P0, RZ, R0, 0x1, RZ, 0xc0, P5", {"R0": [2, 3, 2, 3], "P5": [F, F, T, T]},
        {"P0": [F, T, T, T]}),
    ("LOP3.LUT.PAND P0, RZ, R0, 0x1, RZ, 0xc0, P5", {"R0": [2, 3, 2, 3], "P5": [F, F, T, T]},
        {"P0": [F, F, F, T]}),
    # Comparisons combined with a predicate, and choices.
    ("ISETP.LT.AND P0, P1, R0, 0x5, P2", {"R0": [1, 9, 1, 9], "P2": [T, T, F, F]},
        {"P0": [T, F, F, F], "P1": [F, T, F, F]}),
    ("ISETP.LT.OR P0, P1, R0, 0x5, !P2", {"R0": [1, 9, 1, 9], "P2": [F, F, T, T]},
        {"P0": [T, T, T, F], "P1": [T, T, F, T]}),
    ("ISETP.LT.XOR P0, P1, R0, 0x5, P2", {"R0": [1, 9, 1, 9], "P2": [T, T, F, F]},
        {"P0": [F, T, T, F], "P1": [T, F, F, T]}),
    ("FSETP.NEU.AND P0, PT, R0, 1, PT", {"R0": bits(1, 0.5)}, {"P0": [F, T]}),
    ("FSETP.GTU.AND P0, PT, R0, R2, PT", {"R0": bits(1, -2), "R2": bits(-1)}, {"P0": [T, F]}),
    ("SEL R4, R0, R1, !P0", {"R0": 1, "R1": 2, "P0": [T, F]}, {"R4": [2, 1]}),
    ("SEL.64 R4, R0, R2, P0", pair("R0", -1) | pair("R2", 5) | {"P0": [T, F]}, pair("R4", -1, 5)),
    ("IMNMX R4, R0, R1, P0", {"R0": 3, "R1": M, "P0": [T, F]}, {"R4": [M, 3]}),
    ("VIMNMX.U32 R4, R0, R1, P0", {"R0": 3, "R1": M, "P0": [T, F]}, {"R4": [3, M]}),
    ("VIADDMNMX R4, R0, 0x2, R1, !PT", {"R0": [3, M, M - 4], "R1": M}, {"R4": [5, 1, M]}),
    ("VIADDMNMX.U32 R4, R0, 0x2, R1, PT", {"R0": [3, M, M - 4], "R1": 4}, {"R4": [4, 1, 4]}),
    ("IMNMX.S64 PT, PT, R4, R0, R2, P0, !PT",
        pair("R0", -1) | pair("R2", 2**40) | {"P0": [T, F]}, pair("R4", -1, 2**40)),
    ("UIMNMX.U64 UPT, UPT, UR4, UR0, UR2, UP0, !UPT",
        pair("UR0", -1) | pair("UR2", 2**40) | {"UP0": [T, F]}, pair("UR4", 2**40, -1)),
    ("PRMT R4, R0, 0x5410, R1", {"R0": 0x11112222, "R1": 0x33334444}, {"R4": 0x44442222}),
    ("PRMT R4, R0, 0x7362, R1", {"R0": 0x03020100, "R1": 0x07060504}, {"R4": 0x07030602}),
    ("PRMT R4, R0, 0x9910, RZ", {"R0": [0xFF80, 0x7F80]}, {"R4": [M - 0x7F, 0x7F80]}),
    ("IABS R4, R0", {"R0": [5, M - 4, SIGN]}, {"R4": [5, 5, SIGN]}),
    # The values of other lanes; in groups of eight, too.
    ("SHFL.IDX P0, R4, R0, 0x5, 0x1f", {"R0": LANE}, {"R4": 5, "P0": T}),
    ("SHFL.IDX P0, R4, R0, 0x5, 0x181f", {"R0": LANE},
        {"R4": [lane // 8 * 8 + 5 for lane in LANE], "P0": T}),
    ("SHFL.BFLY PT, R4, R0, R1, 0x1f", {"R0": LANE, "R1": 3}, {"R4": [lane ^ 3 for lane in LANE]}),
    ("SHFL.DOWN P0, R4, R0, 0x2, 0x1f", {"R0": LANE},
        {"R4": [*LANE[2:], 30, 31], "P0": [T] * 30 + [F] * 2}),
    ("SHFL.DOWN P0, R4, R0, 0x2, 0x181f", {"R0": LANE},
        {"R4": [lane + 2 * (lane % 8 < 6) for lane in LANE], "P0": ([T] * 6 + [F] * 2) * 4}),
    ("SHFL.UP P0, R4, R0, 0x2, RZ", {"R0": LANE},
        {"R4": [0, 1, *LANE[:-2]], "P0": [F] * 2 + [T] * 30}),
    # Floats on the way of a division.
    ("I2F.U32.RP R4, R0", {"R0": [5, 2**24 + 1, M]}, {"R4": bits(5, 2**24 + 2, 2**32)}),
    ("I2F.RP R4, R0", {"R0": [2**24 + 1, M - 2**24]}, {"R4": bits(2**24 + 2, -(2**24))}),
    ("I2F R4, R0", {"R0": [5, M]}, {"R4": bits(5, -1)}),
    ("MUFU.RCP R4, R0", {"R0": bits(4)}, {"R4": bits(0.25)}),
    ("F2I.FTZ.U32.TRUNC.NTZ R4, R0", {"R0": bits(2.75, -1, 1e20)}, {"R4": [2, 0, M]}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "read", "written"), TABLE, ids=[row[0] for row in TABLE])
def test_an_instruction(text: str, read: Values, written: Values) -> None:
    lanes = Lanes(CONSTANTS, SPECIAL)
    lanes.values.update({name: in_lanes(value) for name, value in read.items()})
    found = compute(instruction(text), lanes)
    expected = {name: in_lanes(value).tolist() for name, value in written.items()}
    assert {name: value.tolist() for name, value in found.items()} == expected


@pytest.mark.parametrize("sign", ["S", "U"])
@pytest.mark.parametrize("how", ["LT", "LE", "EQ", "NE", "GE", "GT"])
def test_comparisons(how: str, sign: str) -> None:
    """Of 32 bits; of pairs, lower halves first; and of pairs at once, from sm_100 on."""
    compares = getattr(operator, how.lower())
    near = (-(2**32), -1, 0, 1, 2**32)
    numbers, unsigned = ([n % 2**64 for n in near], ".U32") if sign == "U" else (near, "")
    cases = list(itertools.product(numbers, repeat=2))
    lanes = Lanes({}, {})
    halves = pair("R0", *(a for a, _ in cases)) | pair("R2", *(b for _, b in cases))
    lanes.values |= {name: in_lanes(values) for name, values in halves.items()}
    for text in (
        f"ISETP.{how}{unsigned}.AND P0, PT, R1, R3, PT",
        f"ISETP.{how}.U32.AND P1, PT, R0, R2, PT",
        f"ISETP.{how}{unsigned}.AND.EX P2, P3, R1, R3, PT, P1",
        f"ISETP.{how}.{sign}64.AND P4, PT, R0, R2, PT",
    ):
        lanes.values |= compute(instruction(text), lanes)
    found = {name: lanes.get(name)[: len(cases)].tolist() for name in ("P0", "P2", "P3", "P4")}
    expected = [compares(a, b) for a, b in cases]
    assert found == {
        "P0": [compares(a >> 32, b >> 32) for a, b in cases],
        "P2": expected,
        "P3": [not outcome for outcome in expected],
        "P4": expected,
    }


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("[0x20]", 32),
        ("[R2+-0x4]", 96),
        ("[R2.X4+UR4+0x10]", 400 + 7 + 16),
        ("[R2.X16+-0x700]", M + 1 - 192),
        ("desc[UR8][R2.64+-0x14]", (3 << 32) + 80),
        ("[R2.64+UR4]", (3 << 32) + 107),
    ],
)
def test_addresses(text: str, address: int) -> None:
    lanes = Lanes({}, {})
    lanes.values |= {name: in_lanes(n) for name, n in (("R2", 100), ("R3", 3), ("UR4", 7))}
    assert lanes.address(listing.operand(text)).tolist() == [address] * LANES


def test_any_logic() -> None:
    """Bits that number the rows of the table in turn give the table itself."""
    lanes = Lanes({}, {})
    lanes.values |= {"R0": in_lanes(0xF0), "R1": in_lanes(0xCC), "R2": in_lanes(0xAA)}
    lanes.values |= {f"P{bit}": np.arange(LANES) >> bit & 1 == 1 for bit in range(3)}
    for table in range(256):
        found = compute(instruction(f"LOP3.LUT R4, R0, R1, R2, {table:#x}, !PT"), lanes)
        assert found["R4"][0] & 0xFF == table
        text = f"PLOP3.LUT P3, P4, P2, P1, !P0, {table:#x}, {table ^ 0xFF:#x}"
        found = compute(instruction(text), lanes)
        assert found["P3"][:8].tolist() == [table >> (row ^ 1) & 1 for row in range(8)]
        assert np.array_equal(found["P4"], ~found["P3"])


@pytest.mark.parametrize(
    "text",
    [
        "LDG.E R4, desc[UR8][R0.64]",
        "XYZ R4, R0",
        "MOV R4, c[0x0][0x8]",
        "FSETP.LT.AND P0, PT, |R0|, 1, PT",
        "FSETP.LT.AND P0, PT, -R0, 1, PT",
        "FSETP.NAN.AND P0, PT, R0, R0, PT",
        "LDC.U8 R4, c[0x0][0x210]",
        "S2R R4, SR_CLOCKLO",
        "PRMT.F4E R4, R0, R1, R2",
        "P2R.B1 R4, PR, RZ, 0x7f",
        "HFMA2 R4, R0, R1, 1, 0",
        "HFMA2 R4, -RZ, RZ, R0.H0_H0, R1.H0_H0",
        "IADD.64.X R4, R0, R2, P0",
        "MUFU.SQRT R4, R0",
        "I2F.S64 R4, R0",
        "F2I.TRUNC.NTZ R4, R0",
        "F2I.U64.TRUNC R4, R0",
    ],
)
def test_what_is_not_known_stays_unknown(text: str) -> None:
    with pytest.raises(UnknownError):
        compute(instruction(text), Lanes(CONSTANTS, SPECIAL))
