"""What instructions read and write, as nvdisasm shows them."""

from __future__ import annotations

import pytest

from matbench.features.explain.sass import effects, listing, pipes


def instruction(text: str) -> listing.Instruction:
    return listing._instruction(0, text, 0, {})


def names(text: str) -> list[str]:
    """`R4-7 P0` are R4, R5, R6, R7 and P0."""
    found = []
    for part in text.split():
        first, _, last = part.partition("-")
        kind = first.rstrip("0123456789")
        start = int(first.removeprefix(kind))
        found += [f"{kind}{i}" for i in range(start, int(last or start) + 1)]
    return found


@pytest.mark.parametrize(
    ("text", "written", "read"),
    [
        ("IADD3 R4, P0, R0, R2, RZ", "R4 P0", "R0 R2"),
        ("IADD3.X R5, PT, PT, R1, ~R3, RZ, P0, !PT", "R5", "R1 R3 P0"),
        ("IADD.64 R4, R0, -R2", "R4-5", "R0-1 R2-3"),
        ("IMAD.HI.U32 R4, R0, R1, R2", "R4", "R0 R1 R2-3"),
        ("@!P3 IMAD.WIDE R4, R0, 0x4, R2", "R4-5", "P3 R0 R2-3"),
        ("IMAD.WIDE.U32 R4, P1, R0, R1, R2", "R4-5 P1", "R0 R1 R2-3"),
        ("UIMAD.WIDE UR4, UR6, 0x4, UR8", "UR4-5", "UR6 UR8-9"),
        ("LEA.HI.X R5, R0, R3, R1, 0x2, P0", "R5", "R0 R3 R1 P0"),
        ("SHF.R.U64 R4, R0, 0x4, R1", "R4", "R0 R1"),
        ("USHF.L.U64.HI UR5, UR4, 0x1, UR7", "UR5", "UR4 UR7"),
        ("LOP3.LUT P0, RZ, R0, 0x1, RZ, 0xc0, !PT", "P0", "R0"),
        ("PLOP3.LUT P0, P1, P2, !P3, PT, 0x80, 0x8", "P0-1", "P2-3"),
        ("MOV.64 R4, UR8", "R4-5", "UR8-9"),
        ("SEL R4, R0, R1, !P0", "R4", "R0 R1 P0"),
        ("SEL.64 R6, R8, UR8, P0", "R6-7", "R8-9 UR8-9 P0"),
        ("IMNMX R4, R0, R1, P2", "R4", "R0 R1 P2"),
        ("IMNMX.S64 PT, PT, R12, R6, UR8, PT, !PT", "R12-13", "R6-7 UR8-9"),
        ("UIMNMX.U64 UPT, UPT, UR4, UR6, UR8, UP0, !UPT", "UR4-5", "UR6-7 UR8-9 UP0"),
        ("ISETP.GE.U32.AND P0, P1, R0, R2, P2", "P0-1", "R0 R2 P2"),
        ("ISETP.GE.AND.EX P0, PT, R1, R3, PT, P0", "P0", "R1 R3 P0"),
        ("ISETP.GT.S64.AND P0, PT, R6, UR8, PT", "P0", "R6-7 UR8-9"),
        ("P2R R6, PR, R7, 0x21", "R6", "P0 P5 R7"),
        ("R2P PR, R6, 0x7e", "P1-6", "R6"),
        ("VOTE.ANY R10, PT, !P3", "R10", "P3"),
        ("VOTE.ALL P3, !P2", "P3", "P2"),
        ("VOTEU.ANY UR4, UPT, PT", "UR4", ""),
        ("ELECT P2, URZ, PT", "P2", ""),
        ("SHFL.BFLY P0, R4, R0, R1, 0x1f", "P0 R4", "R0 R1"),
        ("CS2R R4, SRZ", "R4-5", ""),
        ("CS2R.32 R4, SRZ", "R4", ""),
        # Floats.
        ("FFMA R0, R4.reuse, R6, -R8", "R0", "R4 R6 R8"),
        ("DFMA R4, R6, R8, -R10", "R4-5", "R6-7 R8-9 R10-11"),
        ("DSETP.GT.AND P0, PT, R10, RZ, PT", "P0", "R10-11"),
        ("I2F.F64 R10, R9", "R10-11", "R9"),
        ("I2F.U64.RP R6, R2", "R6", "R2-3"),
        ("F2I.S64.TRUNC R12, R0", "R12-13", "R0"),
        ("F2I.FTZ.U32.TRUNC.NTZ R12, R0", "R12", "R0"),
        # Memory.
        ("LDCU.128 UR4, c[0x0][0x210]", "UR4-7", ""),
        ("LDG.E R4, desc[UR8][R2.64+0x10]", "R4", "R2-3"),
        ("LDG.E.U16 R4, desc[UR8][R2.64]", "R4", "R2-3"),
        ("LDG.E.128 R4, [R2.64+UR6]", "R4-7", "R2-3 UR6"),
        ("LDSM.16.M88 R4, [R2]", "R4", "R2"),
        ("LDSM.16.MT88.4 R4, [R2]", "R4-7", "R2"),
        ("STG.E.128 desc[UR4][R2.64], R8", "", "R2-3 R8-11"),
        ("STS.U8 [R2], R8", "", "R2 R8"),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R20], desc[UR4][R22.64]", "", "R20 R22-23"),
        ("ATOMG.E.ADD.STRONG.GPU PT, R5, desc[UR4][R2.64], R6", "R5", "R2-3 R6"),
        ("ATOMG.E.CAS.64.STRONG.GPU PT, R14, [R4], R16, R18", "R14-15", "R4 R16-17 R18-19"),
        ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R10.64], R29", "", "R10-11 R29"),
        ("REDG.E.ADD.F64.RN.STRONG.GPU desc[UR4][R10.64], R30", "", "R10-11 R30-31"),
        # Tensor cores: A of m×k, B of k×n and C of m×n numbers, spread over 32 lanes.
        ("HMMA.16816.F32.BF16 R4, R8, R12, R20", "R4-7", "R8-11 R12-13 R20-23"),
        ("HMMA.16816.F16 R4, R8, R12, R20", "R4-5", "R8-11 R12-13 R20-21"),
        ("HMMA.1688.F32 R4, R8, R12, R20", "R4-7", "R8-9 R12 R20-23"),
        ("HMMA.1688.F32.TF32 R4, R8, R12, R20", "R4-7", "R8-11 R12-13 R20-23"),
        ("HMMA.1684.F32.TF32 R4, R8, R12, RZ", "R4-7", "R8-9 R12"),
        ("IMMA.16816.S8.S8 R4, R8.ROW, R12.COL, R20", "R4-7", "R8-9 R12 R20-23"),
        ("IMMA.16864.S4.S4 R4, R8.ROW, R12.COL, R20", "R4-7", "R8-11 R12-13 R20-23"),
        ("DMMA.8x8x4 R4, R8, R12, R20", "R4-7", "R8-9 R12-13 R20-23"),
        ("DMMA.16x8x8 R4, R16, R32, R40", "R4-11", "R16-23 R32-35 R40-47"),
        # Control.
        ("@P1 BRA 0x40", "", "P1"),
        ("@!UP1 EXIT", "", "UP1"),
        ("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], R6", "", "UR4 R6"),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R5", "P0", ""),  # taken to be over
        ("USETMAXREG.DEALLOC.CTAPOOL 0x18", "", ""),
        ("USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xd8", "UP0", ""),
    ],
)
def test_what_is_written_and_read(text: str, written: str, read: str) -> None:
    found = instruction(text)
    assert list(effects.results(found)[0]) == names(written)
    assert list(effects.sources(found)) == names(read)


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("HGMMA.64x8x16.F32", 27),
        ("HGMMA.64x8x16.F16", 25),
        ("HGMMA.64x256x16.F32.BF16", 151),
        ("QGMMA.64x128x32.F32.E4M3.E4M3", 87),
        ("IGMMA.64x64x32.S8.S8", 55),
    ],
)
def test_sums_of_a_warpgroup_are_spread_over_128_lanes(text: str, last: int) -> None:
    found = instruction(f"{text} R24, gdesc[UR8], RZ, !UPT")
    assert list(effects.results(found)[0]) == names(f"R24-{last}")


@pytest.mark.parametrize(
    ("opcode", "multiply_adds", "precision"),
    [
        ("HMMA.16816.F32", 16 * 8 * 16, "float16"),
        ("HMMA.16816.F32.BF16", 16 * 8 * 16, "bfloat16"),
        ("HMMA.1688.F32.TF32", 16 * 8 * 8, "tf32"),
        ("DMMA.8x8x4", 8 * 8 * 4, "float64"),
        ("IMMA.16832.S8.S8", 16 * 8 * 32, "int8"),
        ("IMMA.16832.U8.S8.SAT", 16 * 8 * 32, "int8"),
        ("IMMA.16864.S4.S4", 16 * 8 * 64, None),
        ("QMMA.16832.F32.E5M2.E4M3", 16 * 8 * 32, "e5m2"),
        ("QGMMA.64x256x32.F32.E4M3.E4M3", 64 * 256 * 32 / 4, "e4m3"),
        ("IGMMA.64x8x32.U8.S8", 64 * 8 * 32 / 4, "int8"),
        ("OMMA.16864.F32.E2M1.E2M1", 16 * 8 * 64, None),
        ("HGMMA.64x8x16.F32", 64 * 8 * 16 / 4, "float16"),  # by each of four warps
        ("HMMA.SP.16832.F32", None, "float16"),
    ],
)
def test_tensor_work(opcode: str, multiply_adds: float | None, precision: str | None) -> None:
    found = instruction(f"{opcode} R4, R8, R12, R4")
    assert pipes.tensor_multiply_adds(found) == multiply_adds
    assert pipes.tensor_precision(found) == precision


@pytest.mark.parametrize(
    ("opcode", "nbytes"),
    [
        ("LDG.E", 4), ("LDG.E.U8", 1), ("LDG.E.S8", 1), ("LDG.E.U16", 2), ("LDG.E.S16", 2),
        ("LDG.E.64.CONSTANT", 8), ("LDGSTS.E.BYPASS.LTC128B.128", 16), ("LDG.E.LTC128B", 4),
        ("LDG.E.ENL2.256", 32), ("LDSM.16.M88.2", 16), ("STSM.16.M88", 16),
        ("ATOMG.E.MIN.S64.STRONG.GPU", 8), ("REDG.E.ADD.F64.RN.STRONG.GPU", 8),
        ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU", 4),
    ],
)  # fmt: skip
def test_bytes_of_a_lane(opcode: str, nbytes: int) -> None:
    assert effects.access_bytes(instruction(f"{opcode} R4, [R2]")) == nbytes


def test_reads_of_the_even_and_the_odd_bank() -> None:
    """Each register is read once, unless the instruction before kept it in the same place."""
    path = {
        "FFMA R0, R1.reuse, R2, R4": (2, 1),
        "FFMA R0, R1, R2.reuse, R3": (1, 1),
        "FFMA R0, R1, R3, R2": (1, 2),  # R2 was kept elsewhere
        "DFMA R4, R6, R8, R11": (3, 3),
        "LDS.64 R4, [R2+UR6]": (1, 0),
        "HMMA.16816.F32 R4, R8, R12, RZ": (3, 3),
        "IADD3 R4, R0, 0x4, UR5": (1, 0),
    }
    assert list(effects.bank_reads(map(instruction, path))) == list(path.values())
