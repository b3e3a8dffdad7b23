"""Integer instructions on the 32 lanes of a warp, as far as addresses and branches need them.

Registers are arrays of 32 numbers from 0 to 2³² - 1, predicates arrays of 32 booleans. None stands
for a value that is not known: whatever was loaded, and all that depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from matbench.features.explain.sass.effects import result_count, row
from matbench.features.explain.sass.listing import CONSTANT_NAMES, Instruction, Operand

Value = npt.NDArray[Any] | None

LANES = 32
MASK = 0xFFFFFFFF
_FULL = np.full(LANES, MASK, dtype=np.int64)
_ZERO = np.zeros(LANES, dtype=np.int64)
_TRUE = np.ones(LANES, dtype=bool)
_FALSE = ~_TRUE


class UnknownError(Exception):
    """A value that an instruction needs is not known."""


class Lanes:
    """The registers of a warp, its constants (offset in bank 0 → 4 bytes) and special registers.

    What was never written is 0: nothing may depend on it.
    """

    def __init__(self, constants: Mapping[int, int], special: Mapping[str, Value]) -> None:
        self.values: dict[str, Value] = {"RZ": _ZERO, "URZ": _ZERO, "PT": _TRUE, "UPT": _TRUE}
        self.constants = constants
        self.special = special

    def get(self, name: str) -> npt.NDArray[Any]:
        value = self.values.get(name, _FALSE if name.lstrip("U")[0] == "P" else _ZERO)
        if value is None:
            raise UnknownError(name)
        return value

    def number(self, operand: Operand) -> npt.NDArray[Any]:
        """32 bits per lane; a negated operand is 2³² - x, so that sums carry as in hardware."""
        if operand.absolute:  # of a float
            raise UnknownError(operand.text)
        if operand.kind == "number":
            return np.full(LANES, operand.number & MASK, dtype=np.int64)
        if operand.kind == "constant":
            if operand.number not in self.constants:
                raise UnknownError(operand.text)
            values = np.full(LANES, self.constants[operand.number], dtype=np.int64)
        elif operand.kind == "register":
            values = self.get(operand.name)
        else:
            raise UnknownError(operand.text)
        if operand.inverted:
            values = values ^ MASK
        if operand.negated:
            values = (1 << 32) - values
        return values

    def pair(self, operand: Operand) -> npt.NDArray[Any]:
        """64 bits per lane, as unsigned numbers."""
        if operand.kind == "register" and operand.name not in ("RZ", "URZ"):
            low, high = row(operand.name, 2)
            return _joined(self.get(high), self.get(low))
        if operand.kind == "constant":
            upper = operand._replace(number=operand.number + 4)
            return _joined(self.number(upper), self.number(operand))
        if operand.kind == "number":
            return np.full(LANES, operand.number & ((1 << 64) - 1), dtype=np.uint64)
        return self.number(operand).astype(np.uint64)

    def truth(self, operand: Operand) -> npt.NDArray[Any]:
        values = self.get(operand.name)
        return ~values if operand.inverted else values

    def address(self, operand: Operand) -> npt.NDArray[Any]:
        """The addresses of a memory operand, one per lane."""
        start = operand.number & ((1 << 64) - 1)
        total: npt.NDArray[np.uint64] = np.full(LANES, start, dtype=np.uint64)
        for name, scale, wide in operand.parts:
            plain = Operand("register", name, name)
            part = self.pair(plain) if wide else self.number(plain).astype(np.uint64)
            total = np.add(total, part * np.uint64(scale))
        if not any(wide for _, _, wide in operand.parts):
            total = np.bitwise_and(total, np.uint64(MASK))
        return total


def _joined(high: npt.NDArray[Any], low: npt.NDArray[Any]) -> npt.NDArray[Any]:
    joined: npt.NDArray[Any] = high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)
    return joined


def _signed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    values = values & MASK
    return values - ((values >> 31) << 32)


def compute(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    """What the instruction writes; `UnknownError` if that is not known."""
    how = _SEMANTICS.get(instruction.stem.removeprefix("U"))
    if how is None:
        raise UnknownError(instruction.opcode)
    written = how(instruction, lanes)
    return {name: value for name, value in written.items() if name not in CONSTANT_NAMES}


def _carries(instruction: Instruction) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """Carries written after the first operand, and the operands read."""
    count = result_count(instruction.stem, instruction.operands)
    return instruction.operands[1:count], instruction.operands[count:]


def _result(instruction: Instruction, value: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    return {instruction.operands[0].name: value & MASK}


def _wide(instruction: Instruction, value: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    value = value.astype(np.uint64)
    low, high = row(instruction.operands[0].name, 2)
    return {
        low: (value & np.uint64(MASK)).astype(np.int64),
        high: (value >> np.uint64(32)).astype(np.int64),
    }


def _move(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    if "64" in instruction.modifiers:
        return _wide(instruction, lanes.pair(instruction.operands[1]))
    return _result(instruction, lanes.number(instruction.operands[1]))


def _multiply_add(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    carries, (a, b, c, *more) = _carries(instruction)
    modifiers = instruction.modifiers
    x, y = lanes.number(a) & MASK, lanes.number(b) & MASK
    if "WIDE" in modifiers or "HI" in modifiers:
        if "U32" not in modifiers:
            x, y = _signed(x), _signed(y)
        product = x.astype(np.uint64) * y.astype(np.uint64)
        added = product + lanes.pair(c)
        overflow = added < product
        if more and "X" in modifiers:
            before, added = added, added + lanes.truth(more[0]).astype(np.uint64)
            overflow |= added < before
        overflows = {carry.name: overflow for carry in carries}
        if "HI" in modifiers:
            high = (added >> np.uint64(32)).astype(np.int64)
            return overflows | _result(instruction, high)
        return overflows | _wide(instruction, added)
    low = (x.astype(np.uint64) * y.astype(np.uint64)).astype(np.int64) & MASK
    total = low + lanes.number(c)
    if "X" in modifiers and more:
        total = total + lanes.truth(more[0])
    return _result(instruction, total)


def _add(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    carries, read = _carries(instruction)
    numbers = [operand for operand in read if operand.kind != "predicate"]
    if "64" in instruction.modifiers:
        if "X" in instruction.modifiers:
            raise UnknownError(instruction.opcode)
        exact = np.zeros(LANES, dtype=object)
        for operand in numbers:
            value = lanes.pair(operand._replace(negated=False)).astype(object)
            exact += 2**64 - value if operand.negated else value
        overflows = {carry.name: exact >> 64 > i for i, carry in enumerate(carries)}
        return overflows | _wide(instruction, exact & 2**64 - 1)
    total = sum((lanes.number(operand) for operand in numbers), _ZERO)
    if "X" in instruction.modifiers:
        for operand in read:
            if operand.kind == "predicate":
                total = total + lanes.truth(operand)
    overflows = {carry.name: total >> 32 > i for i, carry in enumerate(carries)}
    return overflows | _result(instruction, total)


def _shift_add(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    carries, read = _carries(instruction)
    modifiers = instruction.modifiers
    a, b = read[0], read[1]
    x = lanes.number(a) & MASK
    inputs = [operand for operand in read[2:] if operand.kind == "predicate"]
    shift = [operand for operand in read[2:] if operand.kind == "number"][-1].number & 31
    if "HI" in modifiers:
        sign = "SX32" in modifiers
        upper = (_signed(x) >> 31 if sign else lanes.number(read[2])) & MASK
        x = (_joined(upper, x) << np.uint64(shift) >> np.uint64(32)).astype(np.int64)
    else:
        x = x << shift & MASK
    if a.negated and "HI" not in modifiers:
        x = (1 << 32) - (lanes.number(a._replace(negated=False)) << shift & MASK)
    total = x + lanes.number(b)
    if "X" in modifiers:
        total = total + lanes.truth(inputs[-1])
    overflows = {carry.name: total >> 32 > 0 for carry in carries}
    return overflows | _result(instruction, total)


def _shift(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    _, low, by, high = instruction.operands
    modifiers = instruction.modifiers
    amount = (lanes.number(by) & (31 if "W" in modifiers else 63)).astype(np.uint64)
    upper = lanes.number(high) & MASK
    value = _joined(upper, lanes.number(low) & MASK)
    if modifiers[0] == "L":
        value = value << amount
    elif "S32" in modifiers or "S64" in modifiers:
        value = (value.astype(np.int64) >> amount.astype(np.int64)).astype(np.uint64)
    else:
        value = value >> amount
    if "HI" in modifiers:
        value = value >> np.uint64(32)
    return _result(instruction, (value & np.uint64(MASK)).astype(np.int64))


def _logic(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    operands = instruction.operands
    if operands[0].kind == "predicate":
        truth, operands = operands[0].name, operands[1:]
    else:
        truth = ""
    a, b, c = (lanes.number(operand) & MASK for operand in operands[1:4])
    bits = _looked_up(operands[4].number, a, b, c, _FULL)
    result = {operands[0].name: bits}
    if truth:
        combine = _COMBINE["AND" if "PAND" in instruction.modifiers else "OR"]
        result[truth] = combine(bits != 0, lanes.truth(operands[5]))
    return result


def _looked_up(table: int, a: Any, b: Any, c: Any, ones: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Each bit is that bit of the table which the bits of a, b and c number."""
    bits = a ^ a
    for index in range(8):
        if table >> index & 1:
            term = ones
            for bit, value in ((4, a), (2, b), (1, c)):
                term = term & (value if index & bit else value ^ ones)
            bits = bits | term
    return np.asarray(bits)


def _logic_of_predicates(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    first, second, a, b, c, *tables = instruction.operands
    x, y, z = (lanes.truth(operand) for operand in (a, b, c))
    return {
        target.name: _looked_up(table.number, x, y, z, _TRUE)
        for target, table in zip((first, second), tables, strict=True)
    }


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
    "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor,
}  # fmt: skip


def _float(operand: Operand, lanes: Lanes) -> npt.NDArray[Any]:
    """A float32 per lane; listings show those without a fraction like integers."""
    if operand.kind == "number":
        return np.full(LANES, operand.number, dtype=np.float32)
    if operand.negated:
        raise UnknownError(operand.text)
    return lanes.number(operand).astype(np.uint32).view(np.float32)


def _compared(operand: Operand, instruction: Instruction, lanes: Lanes) -> npt.NDArray[Any]:
    """A number per lane as the instruction compares it: signed or not, of 32 or 64 bits."""
    modifiers = instruction.modifiers
    if "U64" in modifiers:
        return lanes.pair(operand)
    if "S64" in modifiers:
        return lanes.pair(operand).astype(np.int64)
    value = lanes.number(operand) & MASK
    return value if "U32" in modifiers else _signed(value)


def _compare(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    first, second, a, b, given, *lower = instruction.operands
    modifiers = instruction.modifiers
    if instruction.stem.endswith("FSETP"):
        x, y = _float(a, lanes), _float(b, lanes)
    else:
        x, y = _compared(a, instruction, lanes), _compared(b, instruction, lanes)
    how = modifiers[0] if modifiers[0] in _COMPARE else modifiers[0].removesuffix("U")
    if how not in _COMPARE:
        raise UnknownError(instruction.opcode)
    result = _COMPARE[how](x, y)
    if "EX" in modifiers:
        below = lanes.truth(lower[0])
        strict = {"GE": np.greater, "GT": np.greater, "LE": np.less, "LT": np.less}
        if how == "NE":
            result = (x != y) | below
        elif how == "EQ":
            result = (x == y) & below
        else:
            result = strict[how](x, y) | ((x == y) & below)
    combine = next(_COMBINE[modifier] for modifier in modifiers if modifier in _COMBINE)
    other = lanes.truth(given)
    return {first.name: combine(result, other), second.name: combine(~result, other)}


def _select(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    _, a, b, which = instruction.operands
    if "64" in instruction.modifiers:
        both = np.where(lanes.truth(which), lanes.pair(a), lanes.pair(b))
        return _wide(instruction, both)
    return _result(instruction, np.where(lanes.truth(which), lanes.number(a), lanes.number(b)))


def _extreme(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    is_wide = instruction.operands[0].kind == "predicate"
    if is_wide:  # pairs, with two more results and one more predicate to read
        instruction = instruction._replace(operands=instruction.operands[2:-1])
    _, *read, which = instruction.operands
    if instruction.stem == "VIADDMNMX":
        total = lanes.number(read[0]) + lanes.number(read[1]) & MASK
        a = total if "U32" in instruction.modifiers else _signed(total)
    else:
        a = _compared(read[0], instruction, lanes)
    b = _compared(read[-1], instruction, lanes)
    extreme = np.where(lanes.truth(which), np.minimum(a, b), np.maximum(a, b))
    return (_wide if is_wide else _result)(instruction, extreme)


def _permute(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    if len(instruction.modifiers) > 0:
        raise UnknownError(instruction.opcode)
    _, a, selector, b = instruction.operands
    value = _joined(lanes.number(b) & MASK, lanes.number(a) & MASK)
    chosen = lanes.number(selector) & MASK
    word = _ZERO
    for i in range(4):
        nibble = chosen >> (4 * i) & 15
        byte = (value >> (8 * (nibble & 7)).astype(np.uint64) & np.uint64(255)).astype(np.int64)
        byte = np.where(nibble & 8, np.where(byte & 128, 255, 0), byte)
        word = word | byte << (8 * i)
    return _result(instruction, word)


def _special(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    target, source = instruction.operands[:2]
    if source.name == "SRZ":
        names = row(target.name, 1 if "32" in instruction.modifiers else 2)
        return dict.fromkeys(names, _ZERO)
    value = lanes.special.get(source.name)
    if value is None:
        raise UnknownError(source.name)
    return {target.name: value}


def _constant(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    target, source = instruction.operands[:2]
    if not set(instruction.modifiers) <= {"64", "128"}:  # parts of a word
        raise UnknownError(instruction.opcode)
    count = {"64": 2, "128": 4}.get(next(iter(instruction.modifiers), ""), 1)
    return {
        name: lanes.number(source._replace(number=source.number + 4 * i))
        for i, name in enumerate(row(target.name, count))
    }


def _absolute(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    value = _signed(lanes.number(instruction.operands[1]))
    return _result(instruction, np.abs(value))


def _to_uniform(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    *_, target, source = instruction.operands
    value = lanes.number(source)
    return {target.name: np.full(LANES, value[0], dtype=np.int64)}


def _halves(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    """`HFMA2 R, -RZ, RZ, x, y` sets a constant."""
    operands = instruction.operands
    if [operand.name for operand in operands[1:3]] != ["RZ", "RZ"] or len(operands) != 5:
        raise UnknownError(instruction.opcode)
    try:
        upper, lower = (np.float16(operand.text).view(np.uint16) for operand in operands[3:])
    except ValueError:
        raise UnknownError(instruction.opcode) from None
    return _result(instruction, np.full(LANES, int(upper) << 16 | int(lower), dtype=np.int64))


def _shuffle(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    """Each lane's source lane as in *PTX ISA*, `shfl.sync`."""
    inside, target, source, by, limits = instruction.operands
    lane, by_lanes, c = np.arange(LANES), lanes.number(by) & 31, lanes.number(limits)
    segment, clamp = c >> 8 & 31, c & 31
    first, last = lane & segment, lane & segment | clamp & ~segment
    how = {
        "IDX": first | by_lanes & ~segment,
        "BFLY": lane ^ by_lanes,
        "DOWN": lane + by_lanes,
        "UP": lane - by_lanes,
    }
    chosen = how[instruction.modifiers[0]]
    in_range = chosen >= last if instruction.modifiers[0] == "UP" else chosen <= last
    return {
        inside.name: in_range,
        target.name: lanes.number(source)[np.where(in_range, chosen, lane)],
    }


def _predicates_to_register(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    target, _, kept, mask = instruction.operands
    if instruction.modifiers or mask.kind != "number":
        raise UnknownError(instruction.opcode)
    bits = lanes.number(kept) & ~mask.number & MASK
    for i in range(7):
        if mask.number >> i & 1:
            bits = bits | lanes.get(f"P{i}").astype(np.int64) << i
    return {target.name: bits}


def _reciprocal(instruction: Instruction, lanes: Lanes) -> dict[str, npt.NDArray[Any]]:
    """The steps of an integer division: to float, 1/x, and back, rounded as the modifiers say."""
    value = lanes.number(instruction.operands[1]) & MASK
    modifiers = instruction.modifiers
    if instruction.stem == "MUFU" and modifiers == ("RCP",):
        with np.errstate(all="ignore"):
            inverse = (np.float32(1) / value.astype(np.uint32).view(np.float32)).astype(np.float32)
        return _result(instruction, inverse.view(np.uint32).astype(np.int64))
    if instruction.stem == "I2F" and set(modifiers) <= {"U32", "RP"}:
        exact = (value if "U32" in modifiers else _signed(value)).astype(np.float64)
        rounded = exact.astype(np.float32)
        if "RP" in modifiers:
            up = np.nextafter(rounded, np.float32(np.inf))
            rounded = np.where(rounded.astype(np.float64) < exact, up, rounded).astype(np.float32)
        return _result(instruction, rounded.view(np.uint32).astype(np.int64))
    if instruction.stem == "F2I" and {"U32", "TRUNC"} <= set(modifiers):
        number = value.astype(np.uint32).view(np.float32).astype(np.float64)
        return _result(instruction, np.clip(np.nan_to_num(number), 0, MASK).astype(np.int64))
    raise UnknownError(instruction.opcode)


Semantics = Callable[[Instruction, Lanes], dict[str, npt.NDArray[Any]]]
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
