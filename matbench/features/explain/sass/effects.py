"""What an instruction reads and writes: registers and predicates by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

import msgspec

from matbench.features.explain.sass.listing import CONSTANT_NAMES, Instruction, Operand

OPCODES = msgspec.toml.decode(Path(__file__).with_name("opcodes.toml").read_bytes())
_NO_RESULT = frozenset(OPCODES["no_result"].split())
#: Instructions whose predicate says that waiting is over: waits are assumed to end at once.
WAITS = ("SYNCS.PHASECHK", "ACQBULK", "UTCATOMSWS", "USETMAXREG.TRY_ALLOC")
#: Instructions that count the blocks to arrive before this one: none, so that it is not the last.
ARRIVES = ("ATOM.E.INC", "ATOMG.E.INC")
#: Instructions that read as much as they store.
STORING = ("STG", "STS", "STL", "ST", "RED", "REDG", "ATOM", "ATOMG", "ATOMS")
#: Instructions that read pairs, if their modifiers say 64 bits.
_OF_PAIRS = ("MOV", "IADD", "IADD3", "ISETP", "SEL", "IMNMX", "I2F")
#: Bits of the numbers that a warp's tensor instructions multiply.
_TENSOR_BITS = {"HMMA": 16, "IMMA": 8, "BMMA": 1, "DMMA": 64, "QMMA": 8, "OMMA": 4}
#: Shapes of tensor instructions, rows, columns and depth: `16816`, or `64x256x16`.
_SHAPE = re.compile(r"(16|8)(8)(4|8|16|32|64)|(\d+)x(\d+)x(\d+)")
#: By modifier, the bytes that each lane loads or stores; those with a type are atomic.
_BYTES = {
    "U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "F64": 8, "S64": 8, "128": 16, "256": 32,
}  # fmt: skip


def results(instruction: Instruction) -> tuple[tuple[str, ...], tuple[Operand, ...]]:
    """The names that it writes, and the operands that it reads (without its guard)."""
    stem, operands = instruction.stem, instruction.operands
    if stem == "R2P":
        return tuple(_in_mask(operands[-1])), operands[1:]
    if stem in _NO_RESULT or not operands or operands[0].kind not in ("predicate", "register"):
        return (), operands
    count, width = result_count(stem, operands), _width(instruction)
    names = (name for operand in operands[:count] for name in row(operand.name, width))
    return tuple(name for name in names if name not in CONSTANT_NAMES), operands[count:]


def _in_mask(mask: Operand) -> Iterator[str]:
    """The predicates that a mask of them names; all if it is not known."""
    return (f"P{i}" for i in range(7) if mask.kind != "number" or mask.number >> i & 1)


def tensor_shape(instruction: Instruction) -> tuple[int, int, int] | None:
    """Rows, columns and depth of a tensor instruction's product; None if they are not known."""
    match = _SHAPE.fullmatch(next(iter(instruction.modifiers), ""))
    if match is None:
        return None
    m, n, k = (int(side) for side in match.groups() if side)
    return m, n, k


def _fragments(instruction: Instruction) -> tuple[int, int, int]:
    """Registers of the operands A, B and C of a warp's tensor instruction, over 32 lanes."""
    stem, modifiers = instruction.stem, instruction.modifiers
    shape = tensor_shape(instruction)
    if shape is None:
        return 4, 2, 4
    m, n, k = shape
    bits = 4 if modifiers[1:2] in (("S4",), ("U4",)) else _TENSOR_BITS[stem]
    bits = 32 if "TF32" in modifiers else bits
    sums = 64 if stem == "DMMA" else 16 if "F16" in modifiers[1:2] else 32
    return m * k * bits // 1024 or 1, k * n * bits // 1024 or 1, m * n * sums // 1024


def result_count(stem: str, operands: tuple[Operand, ...]) -> int:
    """How many of the first operands are results: a register and carries, or predicates."""
    if operands[0].kind == "predicate":
        if stem in ("IMNMX", "UIMNMX"):  # of pairs
            return 3
        second = operands[1].kind if len(operands) > 1 else "other"
        of_lanes = stem in ("VOTE", "VOTEU", "ELECT", "SYNCS", "SHFL")
        return 2 if second == "register" or (second == "predicate" and not of_lanes) else 1
    carries = takewhile(lambda o: o.kind == "predicate" and not o.inverted, operands[1:-1])
    return 1 + len(list(carries))


def _width(instruction: Instruction) -> int:
    """How many registers a result takes."""
    stem, modifiers = instruction.stem, instruction.modifiers
    if stem in ("HGMMA", "QGMMA", "IGMMA"):
        _, columns, _ = tensor_shape(instruction) or (64, 256, 16)
        return columns // (4 if "F16" in modifiers[1:2] else 2)
    if stem in _TENSOR_BITS:
        return _fragments(instruction)[2]
    if stem == "LDSM":
        return matrix_count(instruction)
    if stem.startswith(("LD", "ULD", "ATOM")):
        return access_bytes(instruction) // 4 or 1
    is_pair = (
        stem in ("DFMA", "DADD", "DMUL")
        or "WIDE" in modifiers
        or (stem == "CS2R" and "32" not in modifiers)
        or ("64" in modifiers and stem not in ("SHF", "USHF"))
        or (stem in ("F2F", "I2F", "FRND") and modifiers[:1] == ("F64",))
        or (stem in ("F2I", "IMNMX", "UIMNMX") and modifiers[:1] in (("S64",), ("U64",)))
    )
    return 2 if is_pair else 1


def access_bytes(instruction: Instruction) -> int:
    """The bytes that each lane loads or stores."""
    if instruction.stem in ("LDSM", "STSM"):
        return 16
    return next((_BYTES[each] for each in instruction.modifiers if each in _BYTES), 4)


def matrix_count(instruction: Instruction) -> int:
    """The matrices that `LDSM` or `STSM` loads or stores."""
    return next((int(modifier) for modifier in instruction.modifiers if modifier in ("2", "4")), 1)


def row(name: str, count: int) -> list[str]:
    """The names of `count` registers from `name` on."""
    match = re.fullmatch(r"(U?R)(\d+)", name)
    return [f"{match[1]}{int(match[2]) + i}" for i in range(count)] if match else [name]


def sources(instruction: Instruction) -> list[str]:
    """The names that its guard and the operands that it reads take; no operands of a wait."""
    names = [instruction.guard.name] if instruction.guard is not None else []
    stored = access_bytes(instruction) // 4 if instruction.stem in STORING else 1
    read = () if instruction.opcode.startswith(WAITS) else results(instruction)[1]
    for index, operand in enumerate(read):
        if operand.kind in ("predicate", "register"):
            names += row(operand.name, max(stored, source_width(instruction, index, operand)))
        elif operand.text == "PR":
            names += _in_mask(instruction.operands[-1])
        for name, _, is_wide in operand.parts:
            names += row(name, 2 if is_wide else 1)
    return [name for name in names if name not in CONSTANT_NAMES]


def source_width(instruction: Instruction, index: int, operand: Operand) -> int:
    """How many registers an operand stands for; of what is stored, the first."""
    stem, modifiers = instruction.stem, instruction.modifiers
    if stem in _TENSOR_BITS:
        return _fragments(instruction)[index] if index < 3 else 1
    plain = stem.removeprefix("U")
    is_pair = (
        operand.is_wide
        or plain in ("DFMA", "DADD", "DMUL", "DSETP")
        or (plain == "IMAD" and index == 2 and not {"WIDE", "HI"}.isdisjoint(modifiers))
        or (plain in _OF_PAIRS and not {"64", "S64", "U64"}.isdisjoint(modifiers))
    )
    return 2 if is_pair else 1


def bank_reads(instructions: Iterable[Instruction]) -> Iterator[tuple[int, int]]:
    """Reads of the even and the odd bank of registers by each of successive instructions.

    What the instruction before read in the same position, marked for reuse, is not read again.
    """
    kept: dict[int, str] = {}
    for instruction in instructions:
        banks = [0, 0]
        next_kept: dict[int, str] = {}
        for position, operand in enumerate(results(instruction)[1]):
            for name in [name for name, _, _ in operand.parts] or [operand.name]:
                number = name.removeprefix("R")
                if not number.isdecimal():  # no register that has a bank
                    continue
                if kept.get(position) != name:
                    for i in range(source_width(instruction, position, operand)):
                        banks[(int(number) + i) % 2] += 1
                if operand.reuses:
                    next_kept[position] = name
        kept = next_kept
        yield banks[0], banks[1]
