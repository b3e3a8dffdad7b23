"""Reads nvdisasm's listing of a cubin (`nvdisasm -hex`) into typed instructions.

Besides the text, each instruction's encoding is read: its upper bits hold what the compiler tells
the scheduler (Z. Jia et al., *Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking*,
2018, section 2): how many cycles to wait before the warp's next instruction, and which of six
counters to set and to wait for.
"""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

from matbench.errors import MatbenchError

#: The zero registers and the true predicates: reads need no register file, writes are lost.
CONSTANT_NAMES = frozenset({"RZ", "URZ", "PT", "UPT"})

Kind = Literal["register", "predicate", "number", "constant", "address", "special", "other"]


class ListingError(MatbenchError):
    """The text is not nvdisasm's listing of a kernel."""


class Operand(NamedTuple):
    """One operand. `name` is a register, a predicate or a special register.

    `number` is an immediate, the offset in constant bank 0 (from `VARIABLES` on:
    in bank 4), or that of an address, whose registers are in `parts` (with their scale). `is_wide`:
    the register is the first of a pair. `reuses`: it is kept for the same operand of the next
    instruction.
    """

    kind: Kind
    text: str
    name: str = ""
    number: int = 0
    negated: bool = False
    inverted: bool = False
    absolute: bool = False
    is_wide: bool = False
    reuses: bool = False
    parts: tuple[tuple[str, int, bool], ...] = ()


class Control(NamedTuple):
    """What the encoding tells the scheduler. When what an instruction loads is there, it sets a
    counter from 0 to 5, the `write_barrier`; None if there is none."""

    stall: int
    write_barrier: int | None
    waits: int


class Instruction(NamedTuple):
    """One instruction; `guard` is the predicate on which it depends, `target` a branch's goal.

    `stem` is the opcode without its modifiers.
    """

    address: int
    guard: Operand | None
    opcode: str
    stem: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    target: int | None
    control: Control


class CodeListing(NamedTuple):
    """A kernel's machine code.

    `parameters` by position: offset in constant bank 0, and bytes; `cluster_blocks` as compiled.
    """

    instructions: tuple[Instruction, ...]
    parameters: dict[int, tuple[int, int]]
    cluster_blocks: int = 1


#: A label, or an instruction with the lower and, on a line of its own, the upper half of its
#: encoding.
_LINE = re.compile(
    r"^(?:(?P<label>[.$\w]+):"
    r"|\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>\S.*?)\s*;\s*/\* 0x[0-9a-f]{16} \*/\s*\n"
    r"\s*/\* (?P<upper>0x[0-9a-f]{16}) \*/)\s*$",
    re.MULTILINE,
)
_GUARD = re.compile(r"@(!?U?P\w+)\s+(.*)")
_PARAMETER = re.compile(
    r"EIATTR_KPARAM_INFO.*?\.word\s+\S+\s+/\*\w+\*/\s*\.short\s+(0x\w+)\s+/\*\w+\*/\s*\.short\s+"
    r"(0x\w+)\s+/\*\w+\*/\s*\.byte\s+0x\w+, 0x\w+, (0x\w+), (0x\w+)",
    re.DOTALL,
)
_CLUSTER = re.compile(r"EIATTR_CTA_PER_CLUSTER.*?" + 3 * r"\.word\s+(0x\w+)\s.*?", re.DOTALL)
_BANK = re.compile(r"EIATTR_PARAM_CBANK.*?\.word.*?\.short\s+(0x\w+)", re.DOTALL)


def function(listing: str, entry: str) -> CodeListing:
    """The machine code of one entry; `ListingError` if the listing does not have it."""
    _, *parts = re.split(r"^//-+ (\S+)\s+-+$", listing, flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    if f".text.{entry}" not in sections:
        raise ListingError(f"nvdisasm's listing has no code of {entry!r}")
    labels: dict[str, int] = {}
    lines: list[tuple[int, str, int]] = []
    found = list(_LINE.finditer(sections[f".text.{entry}"]))
    for line in reversed(found):  # a label names the address after it
        if line["address"]:
            lines.append((int(line["address"], 16), line["text"], int(line["upper"], 16)))
        elif lines:
            labels[line["label"]] = lines[-1][0]
    if not lines:
        what = f"instructions of {entry!r} with their encodings (-hex)"
        raise ListingError(f"nvdisasm's listing has no {what}")
    instructions = tuple(_instruction(*line, labels) for line in reversed(lines))
    info = sections.get(f".nv.info.{entry}", "")
    cluster, bank = _CLUSTER.search(info), _BANK.search(info)
    blocks = math.prod(int(side, 16) for side in cluster.groups()) if cluster else 1
    # Where the launch puts each argument: offset in constant bank 0, and its size in bytes.
    parameters = {}
    if bank is not None:
        for number, offset, low, high in _PARAMETER.findall(info):
            size = (int(high, 16) << 8 | int(low, 16)) >> 2
            parameters[int(number, 16)] = int(bank[1], 16) + int(offset, 16), size
    return CodeListing(instructions, parameters, blocks)


def _instruction(address: int, text: str, upper: int, labels: dict[str, int]) -> Instruction:
    guard = None
    if guarded := _GUARD.match(text):
        guard, text = operand(guarded[1]), guarded[2]
    opcode, _, rest = text.partition(" ")
    # A return says after its register where the address in it counts from.
    rest = re.sub(r"(?<=\w) `\(.*", "", rest)
    pieces = filter(None, map(str.strip, re.split(r",(?![^\[]*\])", rest)))
    operands = tuple(map(operand, pieces))
    target = None
    for argument in operands:
        if argument.text.startswith("`("):
            target = labels.get(argument.text.strip("`()"))
        elif opcode.startswith("BRA") and argument.kind == "number":
            target = argument.number
    stem, *modifiers = opcode.split(".")
    bits = upper >> 41  # the scheduler's are bits 105 to 121 of 128
    write = bits >> 5 & 7
    control = Control(bits & 15, write if write != 7 else None, waits=bits >> 11 & 63)
    return Instruction(address, guard, opcode, stem, tuple(modifiers), operands, target, control)


_REGISTER = re.compile(r"(-?)([~!]?)(\|?)(U?R(?:\d+|Z)|U?P(?:\d+|T))\b((?:\.\w+)*)\|?((?:\.\w+)*)$")
_NUMBER = re.compile(r"[-+]?(?:0x[0-9a-f]+|\d+)$")
_CONSTANT = re.compile(r"(-?)([~]?)(\|?)cx?\[([^\]]+)\]\[([^\]]+)\]")
#: Banks of constant memory: what a launch fills in, and the addresses of the file's variables.
VARIABLES = 1 << 16
_BANKS = {"0x0": 0, "0x4": VARIABLES}
_ADDRESS = re.compile(r"(?:g?desc\[\w+\])?\[([^\]]*)\]|(?:g?desc\[\w+\])")


def operand(text: str) -> Operand:
    """One operand from its text; kind `other` if it is none that addresses are computed from."""
    if match := _REGISTER.match(text):
        *signs, name, more, after = match.groups()
        negated, inverted, absolute = map(bool, signs)
        suffixes = (more + after).split(".")
        is_wide, reuses = "64" in suffixes, "reuse" in suffixes
        kind: Kind = "predicate" if name.lstrip("U").startswith("P") else "register"
        return Operand(kind, text, name, 0, negated, inverted, absolute, is_wide, reuses)
    if _NUMBER.match(text):
        return Operand("number", text, number=int(text, 0))
    if match := _CONSTANT.match(text):
        *signs, bank, offset = match.groups()
        offset = "0x0" if offset in CONSTANT_NAMES else offset
        if bank not in _BANKS or not _NUMBER.match(offset):
            return Operand("other", text)
        negated, inverted, absolute = map(bool, signs)
        number = _BANKS[bank] + int(offset, 0)
        return Operand("constant", text, "", number, negated, inverted, absolute)
    if text.startswith("SR"):
        return Operand("special", text, text)
    match = _ADDRESS.match(text)
    if match is None:
        return Operand("other", text)
    # An address: registers with their scale (`.X4`), and an offset.
    parts, number = [], 0
    for piece in re.findall(r"[-+]?[^-+]+", match[1] or ""):
        name, *more = piece.lstrip("+").split(".")
        if re.fullmatch(r"U?R(\d+|Z)", name):
            scale = next((int(suffix[1:]) for suffix in more if re.fullmatch(r"X\d+", suffix)), 1)
            parts.append((name, scale, "64" in more))
        elif _NUMBER.match(piece):
            number += int(piece, 0)
        else:
            return Operand("other", text)
    return Operand("address", text, number=number, parts=tuple(parts))
