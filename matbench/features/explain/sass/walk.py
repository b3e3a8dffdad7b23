"""Follows one warp of a launch through the machine code.

Thread and block indices, the launch and the kernel's parameters are known, so the integer
instructions can be carried out: they give the addresses of all memory accesses and decide the
branches. What is loaded from memory is not known, nor is anything computed from it.

All instructions of a block of code are carried out the first few times; after that only those on
which branches depend, so that loops of thousands of iterations are counted exactly and fast.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import numpy as np

from matbench.features.explain.record import NotDerived
from matbench.features.explain.sass.effects import ARRIVES, WAITS
from matbench.features.explain.sass.flow import BasicBlock, FlowGraph
from matbench.features.explain.sass.integers import (
    KNOWN_STEMS,
    LANES,
    Lanes,
    Numbers,
    UnknownError,
    alike,
    compute,
)
from matbench.features.explain.sass.listing import VARIABLES, Instruction

#: How often a block of code is carried out in full. A ring of up to this many stages is seen whole.
FULL_VISITS = 4
INSTRUCTION_BYTES = 16
#: Visits of a block in which all of it is carried out: a ring of so many stages is seen whole.
_SEEN = 68
#: Instructions that are carried out before we give up.
MOST_INSTRUCTIONS = 300_000
#: Where constant memory says that the file's variables are: far apart, and aligned.
_VARIABLES = {
    VARIABLES + 4 * word: (word // 2 + 128) << 8 if word % 2 else 0 for word in range(2 * 128)
}


class Access(NamedTuple):
    """The addresses of one execution of a memory instruction.

    `active` are the lanes that take part. `addresses` is None if they depend on loaded values.
    """

    addresses: Numbers | None
    active: Numbers


class _EndError(UnknownError):
    """The warp cannot be followed any further: what is not derived, and the branch's address."""


class WarpPlace(NamedTuple):
    """Which warp of the launch."""

    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    block_index: tuple[int, int, int]
    warp: int


def special_registers(place: WarpPlace) -> dict[str, Numbers]:
    """Thread and block indices by the names of special registers, one number per lane."""
    lane = np.arange(LANES, dtype=np.uint64)
    thread = lane + LANES * place.warp
    x, y, _ = place.block
    threads = thread % x, thread // x % y, thread // (x * y)
    # Without clusters, a block is the only one of its own.
    registers = {"SR_LANEID": lane, "SR_CgaCtaId": alike(0)}
    for axis, own, block, blocks in zip("XYZ", threads, place.block_index, place.grid, strict=True):
        registers[f"SR_TID.{axis}"] = own
        registers[f"SR_CTAID.{axis}"], registers[f"SR_NCTAID.{axis}"] = alike(block), alike(blocks)
    return registers


def walk(
    code: FlowGraph, place: WarpPlace, constants: Mapping[int, int], *,
    full_visits: int = FULL_VISITS, most: int = MOST_INSTRUCTIONS,
) -> Walk:  # fmt: skip
    """Follow a warp from the first instruction until its lanes exit or `most` are carried out."""
    warp = Walk(code, place, constants, full_visits)
    try:
        while warp.waiting:
            # Lanes that are behind go first, so that lanes that parted meet again.
            start = min(warp.waiting)
            if start not in code.graph:
                raise _EndError("target", start)
            if warp.carried_out > most:
                raise _EndError("passes", start)
            warp.visit(code.graph[start], warp.waiting.pop(start))
    except _EndError as end:
        what, address = end.args
        warp.stopped = NotDerived(what, address=address)
    return warp


class Walk:
    """What one warp did: `visits` of each block of code, and `accesses` by instruction's address:
    none of those whose lanes took no part, and no entry for those that were not seen.

    `stopped` says why it could not be followed to its end; None if it was. `carried_out` is the
    number of instructions that it took. `waiting` are its lanes by the address where they go on.
    """

    def __init__(
        self, code: FlowGraph, place: WarpPlace, constants: Mapping[int, int], full_visits: int
    ) -> None:
        self.code = code
        self.full_visits = full_visits
        self.lanes = Lanes({**_VARIABLES, **constants}, special_registers(place))
        lane = np.arange(LANES) + LANES * place.warp
        self.waiting = {next(iter(code.graph)): lane < math.prod(place.block)}
        self.visits: Counter[int] = Counter()
        self.accesses: dict[int, list[Access]] = {}
        self.plans: dict[tuple[int, bool], list[Instruction | tuple[str, ...]]] = {}
        self.carried_out = 0
        self.stopped: NotDerived | None = None

    def visit(self, block: BasicBlock, rest: Numbers) -> None:
        """Carry out one block of code with the lanes that are there."""
        self.visits[block.start] += 1
        # All of it is carried out at first, then only what branches depend on.
        in_full = self.full_visits > 0 and self.visits[block.start] <= _SEEN
        notes = self.visits[block.start] <= self.full_visits
        for step in self._plan(block, in_full=in_full):
            if not isinstance(step, Instruction):
                self.lanes.values.update(dict.fromkeys(step))
                continue
            self.carried_out += 1
            taken = self._active(step, rest)
            if step.target is not None or step.stem in ("EXIT", "RET", "BRX", "JMX"):
                rest = self._branch(step, rest, taken)
                if not rest.any():
                    return
                continue
            reached = rest if taken is None else taken
            if notes:
                self._access(step, reached)
            self._carry_out(step, reached, known=taken is not None)
        self._wait(block.instructions[-1].address + INSTRUCTION_BYTES, rest)

    def _wait(self, start: int, lanes: Numbers) -> None:
        if lanes.any():
            self.waiting[start] = lanes | self.waiting.get(start, False)

    def _active(self, instruction: Instruction, rest: Numbers) -> Numbers | None:
        """The lanes that carry it out, by its guard and a branch's own predicates; None if these
        are not known."""
        own = instruction.operands if instruction.stem == "BRA" else ()
        guards = [operand for operand in own if operand.kind == "predicate"]
        if instruction.guard is not None:
            guards.append(instruction.guard)
        try:
            for guard in guards:
                rest = rest & self.lanes.truth(guard)
        except UnknownError:
            return None
        return rest

    def _branch(self, branch: Instruction, rest: Numbers, taken: Numbers | None) -> Numbers:
        """Send the lanes on their way; returns those that go on to the next instruction."""
        # With DIV, only if lanes have parted: they have met again.
        if branch.stem in ("BSSY", "WARPSYNC") or branch.modifiers[:1] == ("DIV",):
            return rest
        if taken is None:
            # Back to a load that waits for another block: such waits end at once, too.
            first = branch.address if branch.target is None else branch.target
            steps = (i for i in self.code.function.instructions if i.address in self.code.control)
            if _watches(i for i in steps if first <= i.address < branch.address):
                return rest
            # Past a loop that waits for another block: that is over already.
            loop = self.code.loops.get(branch.address + INSTRUCTION_BYTES, ())
            if not _watches(chain(*(self.code.graph[start].instructions for start in loop))):
                raise _EndError("branch", branch.address)
            taken = rest
        if branch.stem != "EXIT":
            goal = branch.target
            if goal is None and branch.stem == "RET":
                with suppress(UnknownError):
                    goal = int(self.lanes.number(branch.operands[0])[np.argmax(taken)])
            if goal is None:
                raise _EndError("target", branch.address)
            self._wait(goal, taken)
        others: Numbers = rest & ~taken
        return others

    def _carry_out(self, instruction: Instruction, active: Numbers, *, known: bool) -> None:
        names = self.code.written[instruction.address]
        values: dict[str, Numbers] = {}
        if instruction.opcode.startswith(WAITS):
            values = dict.fromkeys(names, np.ones(LANES, dtype=bool))
        elif instruction.stem == "ELECT":
            values = {instruction.operands[0].name: np.arange(LANES) == 0}
        elif instruction.opcode.startswith(ARRIVES):
            values = dict.fromkeys(names, alike(0))
        elif names and known:
            with suppress(UnknownError):
                values = compute(instruction, self.lanes)
        for name in names:
            value, old = values.get(name) if known else None, self.lanes.values.get(name)
            if value is None and not active.any():
                continue
            # Lanes that never held a value cannot be told from those that do.
            if value is not None and old is not None and not active.all():
                value = np.where(active, value, old)
            self.lanes.values[name] = value

    def _access(self, instruction: Instruction, active: Numbers) -> None:
        """Note where a memory instruction reads and writes: the last address first."""
        for operand in instruction.operands:
            if operand.kind == "address" and instruction.stem not in ("LDC", "ULDC", "LDCU"):
                noted = self.accesses.setdefault(instruction.address, [])
                addresses = None
                with suppress(UnknownError):
                    addresses = self.lanes.address(operand)
                if active.any():
                    noted.append(Access(addresses, active))

    def _plan(self, block: BasicBlock, *, in_full: bool) -> list[Instruction | tuple[str, ...]]:
        """What is carried out, in full or as far as branches depend on it; between, the names of
        registers that are no longer known."""
        plan = self.plans.get((block.start, in_full))
        if plan is None:
            plan = self.plans[block.start, in_full] = []
            forgotten: dict[str, None] = {}
            for instruction in block.instructions:
                if instruction.address in self.code.control or (in_full and _matters(instruction)):
                    plan += [tuple(forgotten), instruction]
                    forgotten.clear()
                else:
                    forgotten.update(dict.fromkeys(self.code.written[instruction.address]))
            plan.append(tuple(forgotten))
        return plan


def _matters(instruction: Instruction) -> bool:
    """Whether it accesses memory or gives a known number."""
    known = instruction.stem.removeprefix("U") in KNOWN_STEMS
    return known or any(operand.kind == "address" for operand in instruction.operands)


def _watches(instructions: Iterable[Instruction]) -> bool:
    """Whether one of them loads what another block may write meanwhile."""
    return any(i.stem in ("LD", "LDG") and "STRONG" in i.modifiers for i in instructions)
