"""Integer instructions on lanes, against arithmetic by hand."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence

import numpy as np
import pytest
from support.golden import TableRegression

from matbench.features.explain.sass import listing
from matbench.features.explain.sass.integers import LANES, Lanes, UnknownError, compute

M = 2**32 - 1
#: Constant bank 0 by offset, and special registers.
CONSTANTS = {0x210: 7, 0x214: 1, 0x218: 8, 0x21C: 9}
SPECIAL = {"SR_TID.X": np.arange(LANES, dtype=np.uint64)}


def pair(name: str, *values: int) -> dict[str, list[int]]:
    """64 bits in a register and the next one."""
    kind, number = name.rstrip("0123456789"), int(name.lstrip("UR"))
    return {
        name: [value & M for value in values],
        f"{kind}{number + 1}": [value >> 32 & M for value in values],
    }


def in_lanes(values: int | Sequence[int] | np.ndarray) -> np.ndarray:
    numbers = np.resize(np.array(values), LANES)
    return numbers if numbers.dtype == bool else numbers.astype(np.uint64)


def instruction(text: str) -> listing.Instruction:
    return listing._instruction(0, text, 0, {})


def told(line: str) -> str:
    """What an instruction writes, in the first lanes; the others repeat these."""
    text, _, read = line.partition(" | ")
    lanes = Lanes(CONSTANTS, SPECIAL)
    for name, *digits in map(str.split, filter(None, read.split(", "))):
        kind = bool if name.removeprefix("U").startswith("P") else int
        lanes.values[name] = in_lanes([kind(int(digit, 16)) for digit in digits])
    try:
        return ", ".join(
            f"{name} {shown(value)}" for name, value in compute(instruction(text), lanes).items()
        )
    except UnknownError:
        return "not known"


def shown(values: np.ndarray) -> str:
    count = next(n for n in range(1, LANES + 1) if np.array_equal(in_lanes(values[:n]), values))
    return " ".join(f"{int(value):x}" for value in values[:count])


def test_each_instruction(table_regression: TableRegression) -> None:
    """As nvdisasm shows it, what it reads, and what it writes: worked out by hand. All numbers are
    hexadecimal."""
    table_regression("integers.txt", told)


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
