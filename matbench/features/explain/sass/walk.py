"""Follows one warp of a launch through the machine code.

Thread and block indices, the launch and the kernel's parameters are known, so the integer
instructions can be carried out: they give the addresses of all memory accesses and decide the
branches. What is loaded from memory is not known, nor is anything computed from it.

All instructions of a block of code are carried out the first few times; after that only those on
which branches depend, so that loops of thousands of iterations are counted exactly and fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from matbench.features.explain.record import NotDerived
from matbench.features.explain.sass.effects import ARRIVES, WAITS, polls, watches
from matbench.features.explain.sass.flow import BasicBlock, FlowGraph
from matbench.features.explain.sass.integers import (
    KNOWN_STEMS,
    LANES,
    Lanes,
    UnknownError,
    Value,
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

    addresses: npt.NDArray[Any] | None
    active: npt.NDArray[Any]


class _EndError(UnknownError):
    """The warp cannot be followed any further."""

    def __init__(self, what: Literal["branch", "target", "passes"], address: int) -> None:
        super().__init__(what)
        self.reason = NotDerived(what, address=address)


class Walk(NamedTuple):
    """What one warp did: visits of each block of code, and accesses by instruction's address: none
    of those whose lanes took no part, and no entry for those that were not seen.

    `stopped` says why it could not be followed to its end; None if it was. `carried_out` is the
    number of instructions that it took to follow it.
    """

    visits: Counter[int]
    accesses: dict[int, list[Access]]
    stopped: NotDerived | None
    carried_out: int


class WarpPlace(NamedTuple):
    """Which warp of the launch."""

    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    block_index: tuple[int, int, int]
    warp: int


def special_registers(place: WarpPlace) -> dict[str, Value]:
    """Thread and block indices by the names of special registers, one number per lane."""
    thread = np.arange(LANES, dtype=np.int64) + LANES * place.warp
    x, y, _ = place.block
    index = dict(zip("XYZ", (thread % x, thread // x % y, thread // (x * y)), strict=True))
    registers: dict[str, Value] = {f"SR_TID.{axis}": value for axis, value in index.items()}
    for name, numbers in (("SR_CTAID", place.block_index), ("SR_NCTAID", place.grid)):
        for axis, number in zip("XYZ", numbers, strict=True):
            registers[f"{name}.{axis}"] = np.full(LANES, number, dtype=np.int64)
    registers["SR_LANEID"] = np.arange(LANES, dtype=np.int64)
    # Without clusters, a block is the only one of its own.
    registers["SR_CgaCtaId"] = np.zeros(LANES, dtype=np.int64)
    return registers


def walk(
    code: FlowGraph,
    place: WarpPlace,
    constants: Mapping[int, int],
    *,
    full_visits: int = FULL_VISITS,
    most: int = MOST_INSTRUCTIONS,
) -> Walk:
    """Follow a warp from the first instruction until its lanes exit or `most` are carried out."""
    return _Walker(code, place, constants, full_visits, most).run()


class _Walker:
    def __init__(
        self,
        code: FlowGraph,
        place: WarpPlace,
        constants: Mapping[int, int],
        full_visits: int,
        most: int,
    ) -> None:
        self.code = code
        self.graph = code.graph
        self.full_visits = full_visits
        self.most = most
        self.lanes = Lanes({**_VARIABLES, **constants}, special_registers(place))
        threads = place.block[0] * place.block[1] * place.block[2]
        self.waiting = {next(iter(self.graph)): np.arange(LANES) + LANES * place.warp < threads}
        self.visits: Counter[int] = Counter()
        self.accesses: dict[int, list[Access]] = {}
        self.plans: dict[tuple[int, bool], list[Instruction | tuple[str, ...]]] = {}
        self.headers = {loop.header: loop for loop in code.loops}
        self.carried_out = 0

    def run(self) -> Walk:
        stopped = None
        try:
            while self.waiting:
                self._step()
        except _EndError as end:
            stopped = end.reason
        return Walk(self.visits, self.accesses, stopped, self.carried_out)

    def _step(self) -> None:
        """Carry out one block of code."""
        # Lanes that are behind go first, so that lanes that parted meet again.
        start = min(self.waiting)
        if start not in self.graph:
            raise _EndError("target", start)
        if self.carried_out > self.most:
            raise _EndError("passes", start)
        self._visit(self.graph[start], self.waiting.pop(start))

    def _visit(self, block: BasicBlock, active: npt.NDArray[Any]) -> None:
        self.visits[block.start] += 1
        rest = active
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
            if notes and any(operand.kind == "address" for operand in step.operands):
                self._access(step, reached)
            self._carry_out(step, reached, known=taken is not None)
        follows = block.instructions[-1].address + INSTRUCTION_BYTES
        self._wait(follows, rest)

    def _wait(self, start: int, lanes: npt.NDArray[Any]) -> None:
        if not lanes.any():
            return
        others = self.waiting.get(start)
        self.waiting[start] = lanes if others is None else lanes | others

    def _active(self, instruction: Instruction, rest: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
        """The lanes that carry it out; None if its predicate is not known."""
        if instruction.guard is None:
            return rest
        try:
            lanes: npt.NDArray[Any] = rest & self.lanes.truth(instruction.guard)
            return lanes
        except UnknownError:
            return None

    def _branch(
        self, instruction: Instruction, rest: npt.NDArray[Any], taken: npt.NDArray[Any] | None
    ) -> npt.NDArray[Any]:
        """Send the lanes on their way; returns those that go on to the next instruction."""
        # With DIV, only if lanes have parted: they have met again.
        if instruction.stem in ("BSSY", "WARPSYNC") or instruction.modifiers[:1] == ("DIV",):
            return rest
        if taken is not None and instruction.stem == "BRA":
            taken = self._agreed(instruction, taken)
        if taken is None and polls(instruction, self.code.control):
            return rest
        if taken is None and self._enters_wait(instruction):
            taken = rest
        if taken is None:
            raise _EndError("branch", instruction.address)
        if instruction.stem != "EXIT":
            self._wait(self._goal(instruction, taken), taken)
        others: npt.NDArray[Any] = rest & ~taken
        return others

    def _agreed(self, branch: Instruction, taken: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
        """The lanes for which a branch's own predicates are true, too; None if not known."""
        try:
            for operand in branch.operands:
                if operand.kind == "predicate":
                    taken = taken & self.lanes.truth(operand)
        except UnknownError:
            return None
        return taken

    def _goal(self, branch: Instruction, taken: npt.NDArray[Any]) -> int:
        """The address that a branch goes to."""
        if branch.target is not None:
            return branch.target
        if branch.stem == "RET":
            with suppress(UnknownError):
                return int(self.lanes.number(branch.operands[0])[np.argmax(taken)])
        raise _EndError("target", branch.address)

    def _enters_wait(self, branch: Instruction) -> bool:
        """Whether it goes past a loop that waits for another block, if that is over already."""
        loop = self.headers.get(branch.address + INSTRUCTION_BYTES)
        blocks = loop.blocks if loop is not None else ()
        return any(watches(step) for start in blocks for step in self.graph[start].instructions)

    def _carry_out(
        self, instruction: Instruction, active: npt.NDArray[Any], *, known: bool
    ) -> None:
        names = self.code.written[instruction.address]
        if not names:
            return
        try:
            values = self._computed(instruction)
        except UnknownError:
            values = {}
        for name in names:
            value = values.get(name)
            if value is not None and not known:
                value = None
            elif value is not None and not active.all():
                old = self.lanes.values.get(name)
                # Lanes that never held a value cannot be told from those that do.
                value = value if old is None else np.where(active, value, old)
            elif value is None and not active.any():
                continue
            self.lanes.values[name] = value

    def _computed(self, instruction: Instruction) -> dict[str, npt.NDArray[Any]]:
        if instruction.opcode.startswith(WAITS):
            return {instruction.operands[0].name: np.ones(LANES, dtype=bool)}
        if instruction.stem == "ELECT":
            return {instruction.operands[0].name: np.arange(LANES) == 0}
        if instruction.opcode.startswith(ARRIVES):
            return {
                name: np.zeros(LANES, dtype=np.int64)
                for name in self.code.written[instruction.address]
            }
        return compute(instruction, self.lanes)

    def _access(self, instruction: Instruction, active: npt.NDArray[Any]) -> None:
        """Note where a memory instruction reads and writes: the last address first."""
        if instruction.stem in ("LDC", "ULDC", "LDCU"):
            return
        noted = self.accesses.setdefault(instruction.address, [])
        for operand in instruction.operands:
            if operand.kind == "address" and active.any():
                try:
                    noted.append(Access(self.lanes.address(operand), active))
                except UnknownError:
                    noted.append(Access(None, active))

    def _plan(self, block: BasicBlock, *, in_full: bool) -> list[Instruction | tuple[str, ...]]:
        """What is carried out, in full or as far as branches depend on it; between, the names of
        registers that are no longer known."""
        plan = self.plans.get((block.start, in_full))
        if plan is None:
            needed = {instruction.address for instruction in self.code.control[block.start]}
            plan = self.plans[block.start, in_full] = []
            forgotten: dict[str, None] = {}
            for instruction in block.instructions:
                if instruction.address in needed or (in_full and _matters(instruction)):
                    plan += [tuple(forgotten), instruction]
                    forgotten.clear()
                else:
                    forgotten.update(dict.fromkeys(self.code.written[instruction.address]))
            plan.append(tuple(forgotten))
        return plan


def _matters(instruction: Instruction) -> bool:
    """Whether it accesses memory or gives a known number."""
    accesses = any(operand.kind == "address" for operand in instruction.operands)
    return accesses or instruction.stem.removeprefix("U") in KNOWN_STEMS
