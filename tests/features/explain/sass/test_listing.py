"""Reading nvdisasm's listing: operands, encodings, parameters, and text that is none;
what instructions do."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.golden import TableRegression
from support.machine_code import listed, listing_of, needs_nvdisasm

from matbench.features.explain.sass import effects, listing, pipes
from matbench.features.explain.sass.integers import LANES, Lanes, UnknownError, compute
from matbench.features.explain.sass.listing import ListingError, Operand, operand

COPY = (
    'extern "C" __global__ void k(float *p, int n, double x)\n{\n    p[threadIdx.x] = n * x;\n}\n'
)


def told(text: str) -> str:
    """What an operand is, besides its text: only what is not as usual."""
    found = operand(text)
    assert found.text == text
    usual = {"text": text, **Operand._field_defaults}
    about = {name: value for name, value in found._asdict().items() if value != usual.get(name)}
    return ", ".join(f"{name} {value}" for name, value in about.items())


def test_operands(table_regression: TableRegression) -> None:
    table_regression("operands.txt", told)


def test_instructions_their_branches_and_what_the_scheduler_is_told() -> None:
    told = (13 | 2 << 5 | 7 << 8 | 0b100001 << 11) << 41
    text = listing_of(
        ("@!P0 BRA `(.L_x_2)", 0),
        ("BRA 0x20", (1 | 7 << 5 | 3 << 8) << 41),
        ("IADD3.X R1, R2, -R3, RZ, P0, !PT", told),
        ("STG.E desc[UR4][R2.64+0x4], R1", 0),
    ).replace("        /*0020*/", ".L_x_1:\n.L_x_2:\n        /*0020*/")
    found = listing.function(text, "k")
    away, near, add, store = found.instructions
    assert (away.guard, away.target, near.guard, near.target) == (operand("!P0"), 32, None, 32)
    assert near.control == listing.Control(1, None, 0)
    assert add == listing.Instruction(
        address=32, guard=None, opcode="IADD3.X", stem="IADD3", modifiers=("X",),
        operands=tuple(operand(each) for each in ("R1", "R2", "-R3", "RZ", "P0", "!PT")),
        target=None, control=listing.Control(13, 2, 33),
    )  # fmt: skip
    assert [each.text for each in store.operands] == ["desc[UR4][R2.64+0x4]", "R1"]
    assert (found.parameters, found.cluster_blocks) == ({}, 1)
    other = listing_of(("EXIT", 0)).replace(".text.k ", ".text.kk ")
    assert listing.function(other + text + other, "k") == found


@example("1E100")
@given(st.text(max_size=30))
def test_any_text_is_an_operand_of_some_kind(text: str) -> None:
    assert operand(text).text == text


@needs_nvdisasm
def test_parameters_and_encodings() -> None:
    found = listing.function(listed(COPY), "k")
    assert found.parameters == {0: (0x210, 8), 1: (0x218, 4), 2: (0x220, 8)}
    assert all(0 <= each.control.stall <= 15 for each in found.instructions)
    assert any(each.control.write_barrier is not None for each in found.instructions)
    addresses = [each.address for each in found.instructions]
    assert addresses == list(range(0, 16 * len(addresses), 16))
    assert found.cluster_blocks == 1


@needs_nvdisasm
def test_clusters_and_structures() -> None:
    """Of 2 by 1 by 3 blocks, and 300 bytes."""
    source = COPY.replace("__global__", "__global__ __cluster_dims__(2, 1, 3)")
    source = source.replace("double x", "Bytes x").replace("* x", "* x.values[n]")
    found = listing.function(listed("struct Bytes { char values[300]; };" + source), "k")
    assert found.cluster_blocks == 6
    assert found.parameters[2] == (0x21C, 300)


@needs_nvdisasm
@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text.replace(".text.k ", ".text.other "),
        lambda text: text[: text.index("/*0000*/")],
        lambda text: text.replace("*/\n", "\n"),
        lambda text: re.sub(r"^\s+/\* 0x[0-9a-f]{16} \*/\n", "", text, flags=re.MULTILINE),
    ],
)
def test_other_text_is_refused_in_one_line(damage: object) -> None:
    assert callable(damage)
    with pytest.raises(ListingError) as refused:
        listing.function(damage(listed(COPY)), "k")
    assert "\n" not in str(refused.value)


# What instructions read and write


def instruction(text: str) -> listing.Instruction:
    return listing._instruction(0, text, 0, {})


def runs(names: Iterable[str]) -> str:
    """Names, of those that follow each other the first and the last: `R4-7 P0`."""
    found: list[tuple[str, int, int]] = []
    for name in names:
        kind = name.rstrip("0123456789")
        number = int(name.removeprefix(kind))
        if found and (found[-1][0], found[-1][2]) == (kind, number - 1):
            found[-1] = kind, found[-1][1], number
        else:
            found.append((kind, number, number))
    return " ".join(f"{kind}{a}" if a == b else f"{kind}{a}-{b}" for kind, a, b in found)


def done(line: str) -> str:
    """What it writes and reads, the bytes of a lane, and the work of tensor cores."""
    each = instruction(line)
    said = [f"{runs(effects.results(each)[0])} <- {runs(effects.sources(each))}".strip()]
    if (pipes.class_of(each) or "").endswith("memory"):
        said.append(f"{effects.access_bytes(each)} B")
    if pipes.class_of(each) == "tensor":
        adds, precision = pipes.tensor_multiply_adds(each), pipes.tensor_precision(each)
        said.append(f"{adds} multiply-adds of {precision}")
    return "; ".join(said)


def test_what_each_instruction_does(table_regression: TableRegression) -> None:
    table_regression("effects.txt", done)


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


# Integer instructions on lanes, against arithmetic by hand


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


def written(line: str) -> str:
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
    table_regression("integers.txt", written)


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


def test_addresses() -> None:
    lanes = Lanes({}, {})
    lanes.values |= {name: in_lanes(n) for name, n in (("R2", 100), ("R3", 3), ("UR4", 7))}
    addresses = {
        "[0x20]": 32, "[R2+-0x4]": 96, "[R2.X4+UR4+0x10]": 400 + 7 + 16,
        "[R2.X16+-0x700]": M + 1 - 192, "desc[UR8][R2.64+-0x14]": (3 << 32) + 80,
        "[R2.64+UR4]": (3 << 32) + 107,
    }  # fmt: skip
    for text, address in addresses.items():
        assert lanes.address(listing.operand(text)).tolist() == [address] * LANES, text


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
