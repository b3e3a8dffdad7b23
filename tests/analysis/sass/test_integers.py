"""Integer instructions on lanes, against Python's whole numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matbench.analysis.sass import listing
from matbench.analysis.sass.integers import LANES, Lanes, UnknownError, compute

WORD = st.integers(0, 2**32 - 1)
M = 2**32 - 1


def instruction(text: str) -> listing.Instruction:
    return listing._instruction(0, text, 0, {})


def run(*texts: str, **registers: int | bool) -> dict[str, int]:
    """The values after instructions, in lane 0; all lanes start with the same."""
    lanes = Lanes({0x210: 7, 0x214: 1}, {"SR_TID.X": np.arange(LANES)})
    for name, value in registers.items():
        kind = bool if isinstance(value, bool) else np.int64
        lanes.values[name] = np.full(LANES, value, dtype=kind)
    for text in texts:
        lanes.values.update(compute(instruction(text), lanes))
    return {name: int(value[0]) for name, value in lanes.values.items() if value is not None}


@given(WORD, WORD, WORD, WORD)
def test_sums_of_pairs_carry(a: int, b: int, c: int, d: int) -> None:
    after = run(
        "IADD3 R4, P0, R0, R2, RZ", "IADD3.X R5, R1, R3, RZ, P0, !PT", R0=a, R1=b, R2=c, R3=d
    )
    assert after["R5"] << 32 | after["R4"] == ((b << 32 | a) + (d << 32 | c)) % 2**64


@given(WORD, WORD, WORD, WORD)
def test_differences_of_pairs_borrow(a: int, b: int, c: int, d: int) -> None:
    after = run(
        "IADD3 R4, P0, R0, -R2, RZ", "IADD3.X R5, R1, ~R3, RZ, P0, !PT", R0=a, R1=b, R2=c, R3=d
    )
    assert after["R5"] << 32 | after["R4"] == ((b << 32 | a) - (d << 32 | c)) % 2**64


@given(st.integers(-(2**31), 2**31 - 1), WORD, WORD)
def test_an_address_is_the_base_and_four_times_the_index(i: int, low: int, high: int) -> None:
    base = high << 32 | low
    after = run(
        "LEA R4, P0, R0, R2, 0x2", "LEA.HI.X.SX32 R5, R0, R3, 0x2, P0", R0=i & M, R2=low, R3=high
    )
    assert after["R5"] << 32 | after["R4"] == (base + 4 * i) % 2**64
    after = run("IMAD.WIDE R4, R0, 0x4, R2", R0=i & M, R2=low, R3=high)
    assert after["R5"] << 32 | after["R4"] == (base + 4 * i) % 2**64


@given(st.integers(1, 2**29), WORD)
def test_a_negated_index_carries_like_a_sum(i: int, low: int) -> None:
    after = run("LEA R4, P0, -R0, R2, 0x2", R0=i, R2=low)
    total = (-4 * i) % 2**32 + low
    assert (after["R4"], after["P0"]) == (total & M, total >> 32)


@given(WORD, WORD, st.integers(0, 31))
def test_shifts(a: int, b: int, by: int) -> None:
    both = b << 32 | a
    after = run(
        f"SHF.L.U32 R4, R0, {by:#x}, RZ",
        f"SHF.R.U32.HI R5, RZ, {by:#x}, R1",
        f"SHF.R.S32.HI R6, RZ, {by:#x}, R1",
        f"SHF.L.U64.HI R7, R0, {by:#x}, R1",
        R0=a,
        R1=b,
    )
    signed = b - (b >> 31 << 32)
    assert after["R4"] == a << by & M
    assert after["R5"] == b >> by
    assert after["R6"] == signed >> by & M
    assert after["R7"] == both << by >> 32 & M


@given(WORD, WORD, WORD, st.integers(0, 255))
def test_any_logic(a: int, b: int, c: int, table: int) -> None:
    after = run(f"LOP3.LUT R4, R0, R1, R2, {table:#x}, !PT", R0=a, R1=b, R2=c)
    bits = [table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1 for i in range(32)]
    assert after["R4"] == sum(bit << i for i, bit in enumerate(bits))


@given(st.booleans(), st.booleans(), st.booleans(), st.integers(0, 255), st.integers(0, 255))
def test_any_logic_of_predicates(a: bool, b: bool, c: bool, first: int, second: int) -> None:
    text = f"PLOP3.LUT P3, P4, P0, P1, !P2, {first:#x}, {second:#x}"
    after = run(text, P0=a, P1=b, P2=c)
    number = 4 * a + 2 * b + (not c)
    assert (after["P3"], after["P4"]) == (first >> number & 1, second >> number & 1)


def bits_of(number: float) -> int:
    return int(np.float32(number).view(np.uint32))


@given(WORD)
def test_whole_numbers_become_floats_and_back(a: int) -> None:
    """As the steps of a division by a number that is not known when compiling."""
    after = run(
        "I2F.U32.RP R4, R0", "I2F.RP R5, R0", "I2F R6, R0", "MUFU.RCP R7, R4",
        "F2I.FTZ.U32.TRUNC.NTZ R8, R4", R0=a,
    )  # fmt: skip
    signed = a - (a >> 31 << 32)
    for name, exact in (("R4", a), ("R5", signed)):
        up = np.float32(exact)
        if int(up) < exact:
            up = np.nextafter(up, np.float32(np.inf))
        assert after[name] == bits_of(up)
    assert after["R6"] == bits_of(signed)
    with np.errstate(divide="ignore"):
        assert after["R7"] == bits_of(np.float32(1) / np.uint32(after["R4"]).view(np.float32))
    assert after["R8"] == min(int(np.uint32(after["R4"]).view(np.float32)), M)


@given(WORD, WORD, WORD, WORD)
def test_comparisons_of_pairs(a: int, b: int, c: int, d: int) -> None:
    after = run(
        "ISETP.GE.U32.AND P0, PT, R0, R2, PT",
        "ISETP.GE.AND.EX P1, PT, R1, R3, PT, P0",
        R0=a, R1=b, R2=c, R3=d,
    )  # fmt: skip
    signed = [(x << 32 | y) - (x >> 31 << 64) for x, y in ((b, a), (d, c))]
    assert after["P1"] == (signed[0] >= signed[1])


def test_bytes_constants_and_threads() -> None:
    assert run("PRMT R4, R0, 0x5410, R1", R0=0x11112222, R1=0x33334444)["R4"] == 0x44442222
    after = run("LDC.64 R4, c[0x0][0x210]", "MOV R6, c[0x0][0x214]", "S2R R7, SR_TID.X")
    assert (after["R4"], after["R5"], after["R6"], after["R7"]) == (7, 1, 1, 0)
    assert run("HFMA2.MMA R4, -RZ, RZ, 1, 0")["R4"] == 0x3C000000
    assert run("SEL R4, R0, R1, !P0", R0=1, R1=2, P0=True)["R4"] == 2


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("SHFL.IDX P0, R4, R0, 0x5, 0x1f", lambda lane: 5),
        ("SHFL.IDX P0, R4, R0, 0x5, 0x181f", lambda lane: lane // 8 * 8 + 5),  # in groups of eight
        ("SHFL.BFLY P0, R4, R0, 0x3, 0x1f", lambda lane: lane ^ 3),
        ("SHFL.DOWN P0, R4, R0, 0x2, 0x1f", lambda lane: lane + 2 if lane < 30 else lane),
        ("SHFL.UP P0, R4, R0, 0x2, RZ", lambda lane: lane - 2 if lane > 1 else lane),
    ],
)
def test_a_shuffle_takes_the_value_of_another_lane(text: str, source: Callable[[int], int]) -> None:
    lanes = Lanes({}, {})
    lanes.values["R0"] = 100 + np.arange(LANES)
    found = compute(instruction(text), lanes)
    assert list(found["R4"]) == [100 + source(lane) for lane in range(LANES)]
    if "UP" in text or "DOWN" in text:
        assert list(found["P0"]) == [source(lane) != lane for lane in range(LANES)]
    else:
        assert found["P0"].all()


@pytest.mark.parametrize(
    "text",
    [
        "LDG.E R4, desc[UR8][R0.64]",
        "XYZ R4, R0",
        "MOV R4, c[0x0][0x8]",
        "FSETP.LT.AND P0, PT, |R0|, 1, PT",
    ],
)
def test_what_is_not_known_stays_unknown(text: str) -> None:
    with pytest.raises(UnknownError):
        run(text)
