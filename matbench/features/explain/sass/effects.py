"""What an instruction reads and writes: registers and predicates by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_STORING = ("STG", "STS", "STL", "ST", "RED", "REDG", "ATOM", "ATOMG", "ATOMS")
#: Instructions that read pairs, if their modifiers say 64 bits.
_OF_PAIRS = ("MOV", "IADD", "IADD3", "ISETP", "SEL", "IMNMX", "I2F")
#: Bits of the numbers that a warp's tensor instructions multiply, and shapes: rows, columns, depth.
_TENSOR_BITS = {"HMMA": 16, "IMMA": 8, "BMMA": 1, "DMMA": 64, "QMMA": 8, "OMMA": 4}
_SHAPES = {
    "16816": (16, 8, 16), "1688": (16, 8, 8), "1684": (16, 8, 4), "884": (8, 8, 4),
    "16832": (16, 8, 32), "16864": (16, 8, 64), "8816": (8, 8, 16), "8832": (8, 8, 32),
}  # fmt: skip


def polls(branch: Instruction, blocks: Mapping[int, Sequence[Instruction]]) -> bool:
    """Whether it goes back to a load that waits for another block: such waits end at once, too."""
    first = branch.address if branch.target is None else branch.target
    return any(
        watches(instruction)
        for block in blocks.values()
        for instruction in block
        if first <= instruction.address < branch.address
    )


def watches(instruction: Instruction) -> bool:
    """Whether it loads what another block may write meanwhile."""
    return instruction.stem in ("LD", "LDG") and "STRONG" in instruction.modifiers


def results(instruction: Instruction) -> tuple[tuple[str, ...], tuple[Operand, ...]]:
    """The names that it writes, and the operands that it reads (without its guard)."""
    stem, operands = instruction.stem, instruction.operands
    if stem in _NO_RESULT or not operands:
        if stem == "R2P":
            return tuple(_in_mask(operands[-1])), operands[1:]
        return (), operands
    if stem in ("SYNCS", "USETMAXREG") and operands[0].kind not in ("predicate", "register"):
        return (), operands
    count = result_count(stem, operands)
    names: list[str] = []
    for operand in operands[:count]:
        if operand.kind == "predicate":
            names.append(operand.name)
        elif operand.kind == "register":
            names += row(operand.name, _width(instruction))
    written = tuple(name for name in names if name not in CONSTANT_NAMES)
    return written, operands[count:]


def _in_mask(mask: Operand) -> Iterator[str]:
    """The predicates that a mask of them names; all if it is not known."""
    return (f"P{i}" for i in range(7) if mask.kind != "number" or mask.number >> i & 1)


def tensor_shape(instruction: Instruction) -> tuple[int, int, int] | None:
    """Rows, columns and depth of a tensor instruction's product; None if they are not known."""
    shape = next(iter(instruction.modifiers), "")
    if match := re.fullmatch(r"(\d+)x(\d+)x(\d+)", shape):
        m, n, k = map(int, match.groups())
        return m, n, k
    return _SHAPES.get(shape)


def _fragments(instruction: Instruction) -> tuple[int, int, int]:
    """Registers of the operands A, B and C of a warp's tensor instruction, over 32 lanes."""
    stem, modifiers = instruction.stem, instruction.modifiers
    shape = tensor_shape(instruction)
    if shape is None:
        return 4, 2, 4
    m, n, k = shape
    bits = 32 if "TF32" in modifiers else 4 if modifiers[1:2] in (("S4",), ("U4",)) else None
    bits = bits or _TENSOR_BITS[stem]
    sums = 64 if stem == "DMMA" else 16 if "F16" in modifiers[1:2] else 32
    return m * k * bits // 1024 or 1, k * n * bits // 1024 or 1, m * n * sums // 1024


def result_count(stem: str, operands: tuple[Operand, ...]) -> int:
    """How many of the first operands are results: a register and carries, or predicates."""
    if operands[0].kind == "predicate":
        both = len(operands) > 1 and operands[1].kind in ("predicate", "register")
        if stem in ("VOTE", "VOTEU", "ELECT", "SYNCS"):
            return 1 + (operands[1].kind == "register" if len(operands) > 1 else 0)
        if stem in ("IMNMX", "UIMNMX"):  # of pairs
            return 3
        return 2 if both and (stem != "SHFL" or operands[1].kind == "register") else 1
    if stem in ("P2R", "MOV", "SEL", "FSEL", "USEL", "PRMT", "VOTE", "VOTEU"):
        return 1 + (stem.startswith("VOTE") and len(operands) > 2)
    count = 1
    for operand in operands[1:-1]:
        if operand.kind != "predicate" or operand.inverted:
            break
        count += 1
    return count


def _width(instruction: Instruction) -> int:
    """How many registers a result takes."""
    stem, modifiers = instruction.stem, instruction.modifiers
    if stem in ("HGMMA", "QGMMA", "IGMMA"):
        columns = re.match(r"64x(\d+)x", modifiers[0]) if modifiers else None
        return int(columns[1]) // (4 if "F16" in modifiers[1:2] else 2) if columns else 128
    if stem in _TENSOR_BITS:
        return _fragments(instruction)[2]
    if stem == "LDSM":
        return matrix_count(instruction)
    if stem.startswith(("LD", "ULD", "ATOM")):
        return access_bytes(instruction) // 4 or 1
    if stem in ("DFMA", "DADD", "DMUL") or "WIDE" in modifiers:
        return 2
    if stem == "CS2R":
        return 1 if "32" in modifiers else 2
    if "64" in modifiers and stem != "SHF" and stem != "USHF":
        return 2
    if stem in ("F2F", "I2F", "FRND"):
        return 2 if modifiers[:1] == ("F64",) else 1
    if stem in ("F2I", "IMNMX", "UIMNMX"):
        return 2 if modifiers[:1] in (("S64",), ("U64",)) else 1
    return 1


def access_bytes(instruction: Instruction) -> int:
    """The bytes that each lane loads or stores."""
    sizes = {"128": 16, "64": 8, "U8": 1, "S8": 1, "U16": 2, "S16": 2, "256": 32}
    sizes |= {"F64": 8, "S64": 8}  # of atomic operations
    if instruction.stem == "LDSM" or instruction.stem == "STSM":
        return 16
    return next((sizes[modifier] for modifier in instruction.modifiers if modifier in sizes), 4)


def matrix_count(instruction: Instruction) -> int:
    """The matrices that `LDSM` or `STSM` loads or stores."""
    return next((int(modifier) for modifier in instruction.modifiers if modifier in ("2", "4")), 1)


def row(name: str, count: int) -> Iterator[str]:
    """The names of `count` registers from `name` on."""
    match = re.fullmatch(r"(U?R)(\d+)", name)
    if match is None:
        yield name
        return
    for i in range(count):
        yield f"{match[1]}{int(match[2]) + i}"


def sources(instruction: Instruction) -> Iterator[str]:
    """The names that its guard and the operands that it reads take; no operands of a wait."""
    if instruction.guard is not None and instruction.guard.name not in CONSTANT_NAMES:
        yield instruction.guard.name
    if instruction.opcode.startswith(WAITS):
        return
    stored = max(1, access_bytes(instruction) // 4 if instruction.stem in _STORING else 1)
    for index, operand in enumerate(results(instruction)[1]):
        if operand.kind == "address":
            for name, _, wide in operand.parts:
                if name not in CONSTANT_NAMES:
                    yield from row(name, 2 if wide else 1)
        elif operand.kind == "register" and operand.name not in CONSTANT_NAMES:
            yield from row(operand.name, source_width(instruction, index, operand, stored))
        elif operand.kind == "predicate" and operand.name not in CONSTANT_NAMES:
            yield operand.name
        elif operand.text == "PR":
            yield from _in_mask(instruction.operands[-1])


def source_width(instruction: Instruction, index: int, operand: Operand, stored: int = 1) -> int:
    """How many registers an operand stands for."""
    stem, modifiers = instruction.stem, instruction.modifiers
    if operand.is_wide:
        return 2
    if stored > 1:
        return stored
    if stem in ("DFMA", "DADD", "DMUL", "DSETP"):
        return 2
    if stem in ("IMAD", "UIMAD") and index == 2 and ("WIDE" in modifiers or "HI" in modifiers):
        return 2
    if stem in _TENSOR_BITS:
        return _fragments(instruction)[index] if index < 3 else 1
    is_wide = not {"64", "S64", "U64"}.isdisjoint(modifiers)
    return 2 if is_wide and stem.removeprefix("U") in _OF_PAIRS else 1


def bank_reads(instructions: Iterable[Instruction]) -> Iterator[tuple[int, int]]:
    """Reads of the even and the odd bank of registers by each of successive instructions.

    What the instruction before read in the same position, marked for reuse, is not read again.
    """
    kept: dict[int, str] = {}
    for instruction in instructions:
        banks = [0, 0]
        next_kept: dict[int, str] = {}
        for position, operand in enumerate(results(instruction)[1]):
            if operand.kind == "address":
                names = [name for name, _, _ in operand.parts]
            elif operand.kind == "register":
                names = [operand.name]
            else:
                names = []
            for name in names:
                if name in CONSTANT_NAMES or name.startswith("U"):
                    continue
                if kept.get(position) != name:
                    number = int(name[1:])
                    for i in range(source_width(instruction, position, operand)):
                        banks[(number + i) % 2] += 1
                if operand.reuses:
                    next_kept[position] = name
        kept = next_kept
        yield banks[0], banks[1]
