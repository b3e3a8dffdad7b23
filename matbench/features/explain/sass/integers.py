"""Integer instructions on the 32 lanes of a warp, as far as addresses and branches need them.

Registers are arrays of 32 numbers from 0 to 2³² - 1, held in 64 bits without a sign, and predicates
arrays of 32 booleans. None stands for a value that is not known: whatever was loaded, and all that
depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from matbench.features.explain.sass.effects import result_count, row
from matbench.features.explain.sass.listing import CONSTANT_NAMES, Instruction, Operand

Numbers = npt.NDArray[Any]
Value = Numbers | None

LANES = 32
MASK = 0xFFFFFFFF
_LANE = np.arange(LANES)


class UnknownError(Exception):
    """A value that an instruction needs is not known."""


def alike(number: int) -> Numbers:
    """The same number for each lane."""
    return np.full(LANES, number, dtype=np.uint64)


_FULL, _ZERO, _TRUE = alike(MASK), alike(0), np.ones(LANES, dtype=bool)
_FALSE = ~_TRUE


class Lanes:
    """The registers of a warp, its constants (offset in bank 0 → 4 bytes) and special registers.

    What was never written is 0: nothing may depend on it.
    """

    def __init__(self, constants: Mapping[int, int], special: Mapping[str, Value]) -> None:
        self.values: dict[str, Value] = {"RZ": _ZERO, "URZ": _ZERO, "PT": _TRUE, "UPT": _TRUE}
        self.constants = constants
        self.special = special

    def get(self, name: str) -> Numbers:
        value = self.values.get(name, _FALSE if name.lstrip("U")[0] == "P" else _ZERO)
        if value is None:
            raise UnknownError(name)
        return value

    def number(self, operand: Operand, *, wide: bool = False) -> Numbers:
        """32 bits per lane, or 64 if `wide`; a negated operand of 32 bits is 2³² - x, so that sums
        carry as in hardware."""
        if operand.kind == "number":
            return alike(operand.number & (2**64 - 1 if wide else MASK))
        if wide:
            plain = operand._replace(negated=False)
            halves = [plain, plain._replace(number=plain.number + 4)]  # of a constant
            if plain.kind == "register":  # RZ is its own upper half
                halves = [plain._replace(name=name) for name in row(plain.name, 2)]
            pair = _joined(self.number(halves[-1]), self.number(halves[0]))
            return ~pair + 1 if operand.negated else pair
        if operand.absolute:  # of a float
            raise UnknownError(operand.text)
        if operand.kind == "constant" and operand.number in self.constants:
            values = alike(self.constants[operand.number])
        elif operand.kind == "register":
            values = self.get(operand.name)
        else:
            raise UnknownError(operand.text)
        if operand.inverted:
            values = values ^ MASK
        return (1 << 32) - values if operand.negated else values

    def truth(self, operand: Operand) -> Numbers:
        values = self.get(operand.name)
        return ~values if operand.inverted else values

    def address(self, operand: Operand) -> Numbers:
        """The addresses of a memory operand, one per lane."""
        total = alike(operand.number & 2**64 - 1)
        for name, scale, wide in operand.parts:
            total = total + self.number(Operand("register", name, name), wide=wide) * scale
        return total if any(wide for _, _, wide in operand.parts) else total & MASK


def _joined(high: Numbers, low: Numbers) -> Numbers:
    return (high & MASK) << 32 | low & MASK


def _signed(values: Numbers) -> Numbers:
    return values.astype(np.uint32).view(np.int32).astype(np.int64)


def compute(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    """What the instruction writes; `UnknownError` if that is not known."""
    how = _SEMANTICS.get(instruction.stem.removeprefix("U"))
    if how is None:
        raise UnknownError(instruction.opcode)
    written = how(instruction, lanes)
    return {name: value for name, value in written.items() if name not in CONSTANT_NAMES}


def _of_sum(
    instruction: Instruction, lanes: Lanes
) -> tuple[tuple[Operand, ...], list[Operand], Numbers]:
    """Of a sum: the carries written after the first operand, the numbers read, the carry read."""
    count = result_count(instruction.stem, instruction.operands)
    read = instruction.operands[count:]
    given = [o for o in read if o.kind == "predicate" and "X" in instruction.modifiers]
    numbers = [operand for operand in read if operand.kind != "predicate"]
    return instruction.operands[1:count], numbers, sum(map(lanes.truth, given), _ZERO)


def _result(instruction: Instruction, value: Numbers, *, wide: bool = False) -> dict[str, Numbers]:
    """The register that is the first operand; a `wide` value is in that and the next one."""
    value, names = value.astype(np.uint64), row(instruction.operands[0].name, 2 if wide else 1)
    return dict(zip(names, (value & MASK, value >> 32), strict=False))


def _move(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    wide = "64" in instruction.modifiers
    return _result(instruction, lanes.number(instruction.operands[1], wide=wide), wide=wide)


def _multiply_add(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    carries, (a, b, c), carry = _of_sum(instruction, lanes)
    modifiers = instruction.modifiers
    factors = [lanes.number(a) & MASK, lanes.number(b) & MASK]
    if "WIDE" not in modifiers and "HI" not in modifiers:
        return _result(instruction, factors[0] * factors[1] + lanes.number(c) + carry)
    if "U32" not in modifiers:
        factors = [_signed(factor).view(np.uint64) for factor in factors]
    product = factors[0] * factors[1]
    added = product + lanes.number(c, wide=True)
    total = added + carry
    overflows = {each.name: (added < product) | (total < added) for each in carries}
    if "HI" in modifiers:
        return overflows | _result(instruction, total >> 32)
    return overflows | _result(instruction, total, wide=True)


def _add(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    carries, numbers, carry = _of_sum(instruction, lanes)
    if "64" in instruction.modifiers:
        if "X" in instruction.modifiers:
            raise UnknownError(instruction.opcode)
        exact = np.zeros(LANES, dtype=object)
        for operand in numbers:
            value = lanes.number(operand._replace(negated=False), wide=True).astype(object)
            exact += 2**64 - value if operand.negated else value
        overflows = {each.name: exact >> 64 > i for i, each in enumerate(carries)}
        return overflows | _result(instruction, exact & 2**64 - 1, wide=True)
    total = sum(map(lanes.number, numbers), carry)
    overflows = {each.name: total >> 32 > i for i, each in enumerate(carries)}
    return overflows | _result(instruction, total)


def _shift_add(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    carries, (a, b, *high, by), carry = _of_sum(instruction, lanes)
    modifiers = instruction.modifiers
    x, shift = lanes.number(a), by.number & 31
    if "HI" in modifiers:
        upper = _signed(x).view(np.uint64) >> 32 if "SX32" in modifiers else lanes.number(high[0])
        x = _joined(upper, x) << shift >> 32
    elif a.negated:
        x = (1 << 32) - (lanes.number(a._replace(negated=False)) << shift & MASK)
    else:
        x = x << shift & MASK
    total = x + lanes.number(b) + carry
    overflows = {each.name: total >> 32 > 0 for each in carries}
    return overflows | _result(instruction, total)


def _shift(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    _, low, by, high = instruction.operands
    modifiers = instruction.modifiers
    amount = lanes.number(by) & (31 if "W" in modifiers else 63)
    value = _joined(lanes.number(high), lanes.number(low))
    if modifiers[0] == "L":
        value = value << amount
    elif "S32" in modifiers or "S64" in modifiers:
        value = (value.view(np.int64) >> amount.view(np.int64)).view(np.uint64)
    else:
        value = value >> amount
    return _result(instruction, value >> 32 if "HI" in modifiers else value)


def _logic(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    operands = instruction.operands
    *truth, target = operands[: 1 + (operands[0].kind == "predicate")]
    *read, table = operands[1 + len(truth) :][:4]
    a, b, c = (lanes.number(operand) & MASK for operand in read)
    bits = _looked_up(table.number, a, b, c)
    result = {target.name: bits}
    for predicate in truth:
        combine = _COMBINE["AND" if "PAND" in instruction.modifiers else "OR"]
        result[predicate.name] = combine(bits != 0, lanes.truth(operands[-1]))
    return result


def _looked_up(table: int, a: Numbers, b: Numbers, c: Numbers) -> Numbers:
    """Each bit is that bit of the table which the bits of a, b and c number."""
    bits = _ZERO
    for index in range(8):
        if table >> index & 1:
            term = _FULL
            for bit, value in ((4, a), (2, b), (1, c)):
                term = term & (value if index & bit else value ^ MASK)
            bits = bits | term
    return bits


def _logic_of_predicates(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    first, second, a, b, c, *tables = instruction.operands
    x, y, z = (lanes.truth(operand).astype(np.uint64) for operand in (a, b, c))
    return {
        target.name: _looked_up(table.number, x, y, z) & 1 == 1
        for target, table in zip((first, second), tables, strict=True)
    }


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
    "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor,
}  # fmt: skip


def _compared(operand: Operand, instruction: Instruction, lanes: Lanes) -> Numbers:
    """A number per lane as the instruction compares it: a float32, or signed or not, of 32 or 64
    bits."""
    modifiers = instruction.modifiers
    if instruction.stem.endswith("FSETP"):
        if operand.kind == "number":  # listings show floats without a fraction like integers
            return np.full(LANES, operand.number, dtype=np.float32)
        if operand.negated:
            raise UnknownError(operand.text)
        return lanes.number(operand).astype(np.uint32).view(np.float32)
    if "U64" in modifiers or "S64" in modifiers:
        value = lanes.number(operand, wide=True)
        return value if "U64" in modifiers else value.view(np.int64)
    value = lanes.number(operand)
    return value & MASK if "U32" in modifiers else _signed(value)


def _compare(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    first, second, a, b, given, *lower = instruction.operands
    modifiers = instruction.modifiers
    x, y = _compared(a, instruction, lanes), _compared(b, instruction, lanes)
    compare = _COMPARE.get(modifiers[0].removesuffix("U"))
    if compare is None:
        raise UnknownError(instruction.opcode)
    result = compare(x, y)
    if "EX" in modifiers:  # of upper halves: if they are the same, the lower halves decide
        result = np.where(x == y, lanes.truth(lower[0]), result)
    combine = next(_COMBINE[modifier] for modifier in modifiers if modifier in _COMBINE)
    other = lanes.truth(given)
    return {first.name: combine(result, other), second.name: combine(~result, other)}


def _select(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    wide = "64" in instruction.modifiers
    a, b = (lanes.number(operand, wide=wide) for operand in instruction.operands[1:3])
    which = lanes.truth(instruction.operands[3])
    return _result(instruction, np.where(which, a, b), wide=wide)


def _extreme(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    wide = instruction.operands[0].kind == "predicate"
    if wide:  # pairs, with two more results and one more predicate to read
        instruction = instruction._replace(operands=instruction.operands[2:-1])
    _, *read, which = instruction.operands
    a, b = _compared(read[0], instruction, lanes), _compared(read[-1], instruction, lanes)
    if instruction.stem == "VIADDMNMX":
        total = lanes.number(read[0]) + lanes.number(read[1]) & MASK
        a = total if "U32" in instruction.modifiers else _signed(total)
    extreme = np.where(lanes.truth(which), np.minimum(a, b), np.maximum(a, b))
    return _result(instruction, extreme, wide=wide)


def _permute(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    if instruction.modifiers:
        raise UnknownError(instruction.opcode)
    _, a, selector, b = instruction.operands
    value, chosen = _joined(lanes.number(b), lanes.number(a)), lanes.number(selector) & MASK
    word = _ZERO
    for i in range(4):
        nibble = chosen >> (4 * i) & 15
        byte = value >> 8 * (nibble & 7) & 255
        word = word | np.where(nibble & 8, (byte >> 7) * 255, byte) << (8 * i)
    return _result(instruction, word)


def _special(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    target, source = instruction.operands[:2]
    if source.name == "SRZ":
        return dict.fromkeys(row(target.name, 1 if "32" in instruction.modifiers else 2), _ZERO)
    value = lanes.special.get(source.name)
    if value is None:
        raise UnknownError(source.name)
    return {target.name: value}


def _constant(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    target, source = instruction.operands[:2]
    count = {(): 1, ("64",): 2, ("128",): 4}.get(instruction.modifiers)
    if count is None:  # parts of a word
        raise UnknownError(instruction.opcode)
    return {
        name: lanes.number(source._replace(number=source.number + 4 * i))
        for i, name in enumerate(row(target.name, count))
    }


def _absolute(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    return _result(instruction, np.abs(_signed(lanes.number(instruction.operands[1]))))


def _to_uniform(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    *_, target, source = instruction.operands
    return {target.name: alike(lanes.number(source)[0])}


def _halves(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    """`HFMA2 R, -RZ, RZ, x, y` sets a constant."""
    operands = instruction.operands
    if [operand.name for operand in operands[1:3]] != ["RZ", "RZ"] or len(operands) != 5:
        raise UnknownError(instruction.opcode)
    try:
        upper, lower = (np.float16(operand.text).view(np.uint16) for operand in operands[3:])
    except ValueError:
        raise UnknownError(instruction.opcode) from None
    return _result(instruction, alike(int(upper) << 16 | int(lower)))


def _shuffle(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    """Each lane's source lane as in *PTX ISA*, `shfl.sync`."""
    inside, target, source, *numbers = instruction.operands
    by_lanes, c = (lanes.number(operand).view(np.int64) for operand in numbers)
    by_lanes, segment, clamp = by_lanes & 31, c >> 8 & 31, c & 31
    first, last = _LANE & segment, _LANE & segment | clamp & ~segment
    how = {
        "IDX": first | by_lanes & ~segment,
        "BFLY": _LANE ^ by_lanes,
        "DOWN": _LANE + by_lanes,
        "UP": _LANE - by_lanes,
    }
    chosen = how[instruction.modifiers[0]]
    in_range = chosen >= last if instruction.modifiers[0] == "UP" else chosen <= last
    read = lanes.number(source)[np.where(in_range, chosen, _LANE)]
    return {inside.name: in_range, target.name: read}


def _predicates_to_register(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    target, _, kept, mask = instruction.operands
    if instruction.modifiers or mask.kind != "number":
        raise UnknownError(instruction.opcode)
    bits = lanes.number(kept) & (~mask.number & MASK)
    for i in range(7):
        if mask.number >> i & 1:
            bits = bits | lanes.get(f"P{i}").astype(np.uint64) << i
    return {target.name: bits}


def _reciprocal(instruction: Instruction, lanes: Lanes) -> dict[str, Numbers]:
    """The steps of an integer division: to float, 1/x, and back, rounded as the modifiers say."""
    value = lanes.number(instruction.operands[1])
    modifiers = instruction.modifiers
    as_float = value.astype(np.uint32).view(np.float32)
    if instruction.stem == "MUFU" and modifiers == ("RCP",):
        with np.errstate(all="ignore"):
            rounded = np.float32(1) / as_float
    elif instruction.stem == "I2F" and set(modifiers) <= {"U32", "RP"}:
        exact = (value & MASK if "U32" in modifiers else _signed(value)).astype(np.float64)
        rounded = exact.astype(np.float32)
        if "RP" in modifiers:
            up = np.nextafter(rounded, np.float32(np.inf))
            rounded = np.where(rounded < exact, up, rounded)
    elif instruction.stem == "F2I" and {"U32", "TRUNC"} <= set(modifiers):
        return _result(instruction, np.clip(np.nan_to_num(as_float.astype(np.float64)), 0, MASK))
    else:
        raise UnknownError(instruction.opcode)
    return _result(instruction, rounded.view(np.uint32))


Semantics = Callable[[Instruction, Lanes], dict[str, Numbers]]
#: By stem, without the U of uniform instructions.
_SEMANTICS: dict[str, Semantics] = {
    "MOV": _move, "IMAD": _multiply_add, "IADD3": _add, "IADD": _add, "VIADD": _add,
    "LEA": _shift_add, "SHF": _shift, "LOP3": _logic, "PLOP3": _logic_of_predicates,
    "ISETP": _compare, "FSETP": _compare, "SEL": _select, "VIMNMX": _extreme, "IMNMX": _extreme,
    "VIADDMNMX": _extreme, "PRMT": _permute, "S2R": _special, "S2UR": _special, "CS2R": _special,
    "LDC": _constant, "LDCU": _constant, "IABS": _absolute, "R2UR": _to_uniform,
    "HFMA2": _halves, "P2R": _predicates_to_register,
    "I2F": _reciprocal, "MUFU": _reciprocal, "F2I": _reciprocal, "SHFL": _shuffle,
}  # fmt: skip
#: The stems of instructions that `compute` can carry out, without the U.
KNOWN_STEMS = frozenset(_SEMANTICS)
