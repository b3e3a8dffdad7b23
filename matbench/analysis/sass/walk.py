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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from matbench.analysis.sass.effects import WAITS, polls
from matbench.analysis.sass.flow import Block, Code, Loop, is_linear
from matbench.analysis.sass.integers import LANES, MASK, Lanes, UnknownError, Value, compute
from matbench.analysis.sass.listing import Instruction

#: How often a block of code is carried out in full. A ring of up to this many stages is seen whole.
FULL_VISITS = 4
#: Equal passes of a loop after which the rest is taken to be alike, and tried.
_STEADY = 2
INSTRUCTION_BYTES = 16
#: Instructions that are carried out before we give up, and passes skipped at a time.
MOST_INSTRUCTIONS = 60_000
_LONGEST_JUMP = 1 << 32


class Access(NamedTuple):
    """The addresses of one execution of a memory instruction.

    `active` are the lanes that take part. `addresses` is None if they depend on loaded values.
    """

    addresses: npt.NDArray[Any] | None
    active: npt.NDArray[Any]


class Walk(NamedTuple):
    """What one warp did: visits of each block of code, and accesses by instruction's address.

    `stopped` says why it could not be followed to its end; None if it was. `carried_out` is the
    number of instructions that it took to follow it.
    """

    visits: Counter[int]
    accesses: dict[int, list[Access]]
    stopped: str | None
    carried_out: int


class Place(NamedTuple):
    """Which warp of the launch."""

    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    block_index: tuple[int, int, int]
    warp: int


def special_registers(place: Place) -> dict[str, Value]:
    """Thread and block indices by the names of special registers, one number per lane."""
    thread = np.arange(LANES, dtype=np.int64) + LANES * place.warp
    x, y, _ = place.block
    index = dict(zip("XYZ", (thread % x, thread // x % y, thread // (x * y)), strict=True))
    found: dict[str, Value] = {f"SR_TID.{axis}": value for axis, value in index.items()}
    for axis, number in zip("XYZ", place.block_index, strict=True):
        found[f"SR_CTAID.{axis}"] = np.full(LANES, number, dtype=np.int64)
    for axis, number in zip("XYZ", place.grid, strict=True):
        found[f"SR_NCTAID.{axis}"] = np.full(LANES, number, dtype=np.int64)
    found["SR_LANEID"] = np.arange(LANES, dtype=np.int64)
    # Without clusters, a block is the only one of its own.
    found["SR_CgaCtaId"] = np.zeros(LANES, dtype=np.int64)
    return found


def walk(
    code: Code,
    place: Place,
    constants: Mapping[int, int],
    *,
    full_visits: int = FULL_VISITS,
    most: int = MOST_INSTRUCTIONS,
) -> Walk:
    """Follow a warp from the first instruction until its lanes exit or `most` are carried out."""
    walker = _Walker(code, place, constants, full_visits, most)
    stopped = walker.run()
    return Walk(walker.visits, walker.accesses, stopped, walker.carried_out)


class _Passes:
    """How a loop went from one visit of its header to the next, to tell when nothing else changes.

    After `steady` equal passes (same path, same change of every register on which branches depend)
    `jump` passes are skipped at a time; `grows` until a jump turns out to be too far.
    """

    def __init__(self) -> None:
        self.registers: dict[str, Value] = {}
        self.visits: dict[int, int] = {}
        self.changes: dict[str, Value] = {}
        self.path: dict[int, int] = {}
        self.steady = 0
        self.jump = 4
        self.grows = True
        self.is_linear: bool | None = None
        self.arrivals = 0
        self.others: dict[str, Value] = {}
        self.others_change: dict[str, Value] = {}
        self.last_change: dict[str, Value] = {}

    def arrive(self, registers: dict[str, Value], visits: dict[int, int]) -> bool:
        """Note a visit; true if the pass since the last was like the one before."""
        self.arrivals += 1
        path = {start: count - self.visits.get(start, 0) for start, count in visits.items()}
        changes = {name: _change(self.registers.get(name), now) for name, now in registers.items()}
        same = path == self.path and all(
            _equal(changes[name], self.changes.get(name)) for name in changes
        )
        self.registers, self.visits, self.path, self.changes = registers, visits, path, changes
        self.steady = self.steady + 1 if same else 0
        return same

    def note_others(self, values: dict[str, Value]) -> None:
        """How the registers changed that no branch depends on; None if not as before."""
        rest = {name: value for name, value in values.items() if name not in self.registers}
        changes = {name: _change(self.others.get(name), now) for name, now in rest.items()}
        self.others_change = {
            name: change if _equal(change, self.last_change.get(name)) else None
            for name, change in changes.items()
        }
        self.last_change = changes
        self.others = rest


def _change(before: Value, now: Value) -> Value:
    """What is added to a register; for a predicate, whether it changes."""
    if before is None or now is None:
        return None
    return before ^ now if now.dtype == bool else now - before & MASK


def _equal(one: Value, other: Value) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


class _Trial(NamedTuple):
    """A jump ahead whose next pass must be like the others; if not, all this is restored."""

    loop: Loop
    values: dict[str, Value]
    visits: Counter[int]
    active: npt.NDArray[Any]
    path: dict[int, int]
    changes: dict[str, Value]
    signs: dict[int, npt.NDArray[Any]]


class _Walker:
    def __init__(
        self,
        code: Code,
        place: Place,
        constants: Mapping[int, int],
        full_visits: int,
        most: int,
    ) -> None:
        self.code = code
        self.graph = code.graph
        self.full_visits = full_visits
        self.most = most
        self.lanes = Lanes(constants, special_registers(place))
        threads = place.block[0] * place.block[1] * place.block[2]
        self.waiting = {next(iter(self.graph)): np.arange(LANES) + LANES * place.warp < threads}
        self.visits: Counter[int] = Counter()
        self.accesses: dict[int, list[Access]] = {}
        self.plans: dict[int, list[Instruction | tuple[str, ...]]] = {}
        self.headers = {loop.header: loop for loop in code.loops}
        self.passes = {loop.header: _Passes() for loop in code.loops}
        #: Those of outer loops first.
        self.trials: list[_Trial] = []
        self.resumed = False
        self.carried_out = 0
        self.equalities = {
            each.address
            for block in code.control.instructions.values()
            for each in block
            if each.stem.endswith("ISETP") and each.modifiers[0] in ("NE", "EQ")
        }
        #: For each test for equality: on which side of each other its operands were.
        self.signs: dict[int, npt.NDArray[Any]] = {}

    def run(self) -> str | None:
        """Follow it; returns why it could not be followed to its end."""
        while self.waiting:
            # Lanes that are behind go first, so that lanes that parted meet again.
            start = min(self.waiting)
            stopped = None
            if self.trials and start not in self.trials[-1].loop.blocks:
                self._undo()
                continue
            if len(self.waiting) == 1 and start in self.headers and not self.resumed:
                try:
                    self._hasten(self.headers[start])
                except UnknownError as reason:
                    return str(reason)
            self.resumed = False
            if start not in self.graph:
                stopped = f"the branch to {start:#x} leaves the code"
            elif self.carried_out > self.most:
                stopped = f"the loop at {start:#x} takes too many iterations to follow"
            else:
                try:
                    self._visit(self.graph[start], self.waiting.pop(start))
                except UnknownError as reason:
                    stopped = str(reason)
            if stopped is not None:
                if not self.trials or self.carried_out > self.most:
                    return stopped
                self._undo()
        return None

    def _hasten(self, loop: Loop) -> None:
        """At a loop's header: skip passes if the last ones were all alike."""
        passes, values = self.passes[loop.header], self.lanes.values
        for inner in self.headers.values():
            if inner.blocks < loop.blocks:  # it is about to be entered anew
                self.passes[inner.header].arrivals = 0
        registers = {name: values.get(name) for name in self.code.control.live[loop.header]}
        visits = {start: self.visits[start] for start in loop.blocks}
        same = passes.arrive(registers, visits)
        if self.full_visits:
            passes.note_others(values)
        if self.trials and self.trials[-1].loop is loop:
            crossed = any(
                not np.array_equal(sign, self.signs[address])
                for address, sign in self.trials[-1].signs.items()
            )
            if not same or crossed:
                self._undo()
                self.resumed = False
                return
            self.trials.pop()
            passes.jump = passes.jump * 2 if passes.grows else passes.jump // 2
        elif not same:
            passes.jump, passes.grows, passes.is_linear = 4, True, None
        if passes.steady < _STEADY or visits[loop.header] <= self.full_visits or not passes.jump:
            return
        if passes.is_linear is None:
            varying = (n for n, c in passes.changes.items() if c is not None and c.any())
            path = [start for start, count in passes.path.items() if count]
            passes.is_linear = is_linear(self.code, path, frozenset(varying))
        if passes.jump > _LONGEST_JUMP:
            raise UnknownError(f"the loop at {loop.header:#x} has no end that could be derived")
        if passes.is_linear:
            self._jump(loop)

    def _jump(self, loop: Loop) -> None:
        """Skip passes, on trial: the next one must be like those before."""
        passes, values = self.passes[loop.header], self.lanes.values
        before = dict(values), self.visits.copy(), self.waiting[loop.header]
        self.trials.append(_Trial(loop, *before, passes.path, passes.changes, dict(self.signs)))
        for name, change in (passes.changes | passes.others_change).items():
            value = values.get(name)
            if change is None:
                values[name] = None
            elif value is not None and value.dtype != bool:
                values[name] = value + passes.jump * change & MASK
        for start, count in passes.path.items():
            self.visits[start] += passes.jump * count
        self._seen(loop)

    def _seen(self, loop: Loop) -> None:
        passes = self.passes[loop.header]
        passes.registers = {name: self.lanes.values.get(name) for name in passes.changes}
        passes.others = {name: self.lanes.values.get(name) for name in passes.others_change}
        passes.visits = {start: self.visits[start] for start in loop.blocks}

    def _undo(self) -> None:
        """Back to before the last jump, which went too far, and half as far; or on without one."""
        trial = self.trials.pop()
        passes = self.passes[trial.loop.header]
        self.lanes.values, self.visits = dict(trial.values), trial.visits.copy()
        self.signs = dict(trial.signs)
        self.waiting = {trial.loop.header: trial.active}
        passes.path, passes.changes = trial.path, trial.changes
        passes.jump, passes.grows, passes.steady = passes.jump // 2, False, _STEADY
        self._seen(trial.loop)
        if passes.jump:
            self._jump(trial.loop)
        self.resumed = True

    def _visit(self, block: Block, active: npt.NDArray[Any]) -> None:
        self.visits[block.start] += 1
        rest = active
        in_full = self._in_full(block)
        notes = in_full and self.visits[block.start] <= self.full_visits and not self.trials
        for each in block.instructions if in_full else self._plan(block):
            if not isinstance(each, Instruction):
                self.lanes.values.update(dict.fromkeys(each))
                continue
            self.carried_out += 1
            taken = self._active(each, rest)
            if each.target is not None or each.stem in ("EXIT", "RET", "BRX", "JMX"):
                rest = self._branch(each, rest, taken)
                if not rest.any():
                    return
                continue
            reached = rest if taken is None else taken
            if notes and any(operand.kind == "address" for operand in each.operands):
                self._access(each, reached)
            self._carry_out(each, reached, known=taken is not None)
        follows = block.instructions[-1].address + INSTRUCTION_BYTES
        self._wait(follows, rest)

    def _in_full(self, block: Block) -> bool:
        """Whether all of it is carried out: in the first passes of each loop around it."""
        if not self.full_visits:
            return False
        around = [self.passes[header] for header in self.code.around[block.start]]
        return all(
            passes.is_linear
            or (passes.is_linear is None and passes.arrivals <= 3 * self.full_visits)
            for passes in around
        )

    def _wait(self, start: int, lanes: npt.NDArray[Any]) -> None:
        if not lanes.any():
            return
        others = self.waiting.get(start)
        self.waiting[start] = lanes if others is None else lanes | others

    def _active(self, each: Instruction, rest: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
        """The lanes that carry it out; None if its predicate is not known."""
        if each.guard is None:
            return rest
        try:
            lanes: npt.NDArray[Any] = rest & self.lanes.truth(each.guard)
            return lanes
        except UnknownError:
            return None

    def _branch(
        self, each: Instruction, rest: npt.NDArray[Any], taken: npt.NDArray[Any] | None
    ) -> npt.NDArray[Any]:
        """Send the lanes on their way; returns those that go on to the next instruction."""
        if each.stem == "BRA" and taken is not None and each.modifiers[:1] != ("DIV",):
            for operand in each.operands:
                if operand.kind == "predicate":
                    try:
                        taken = taken & self.lanes.truth(operand)
                    except UnknownError:
                        taken = None
                        break
        if each.stem in ("BSSY", "WARPSYNC"):
            return rest
        if each.modifiers[:1] == ("DIV",):  # only if lanes have parted: they have met again
            return rest
        if taken is None and polls(each, self.code.control.instructions):
            return rest
        if taken is None:
            raise UnknownError(f"the branch at {each.address:#x} depends on loaded values")
        if each.stem == "CALL":
            self._wait(each.target or 0, taken)
        elif each.stem == "RET":
            target = self.lanes.number(each.operands[0])
            self._wait(int(target[np.argmax(taken)]), taken)
        elif each.target is not None:
            self._wait(each.target, taken)
        elif each.stem != "EXIT":
            raise UnknownError(f"the branch at {each.address:#x} goes to a computed address")
        others: npt.NDArray[Any] = rest & ~taken
        return others

    def _carry_out(self, each: Instruction, active: npt.NDArray[Any], *, known: bool) -> None:
        names = self.code.written[each.address]
        if not names:
            return
        if each.address in self.equalities:
            self._note_sign(each)
        try:
            found = self._computed(each)
        except UnknownError:
            found = {}
        for name in names:
            value = found.get(name)
            if value is not None and not known:
                value = None
            elif value is not None and not active.all():
                old = self.lanes.values.get(name)
                # Lanes that never held a value cannot be told from those that do.
                value = value if old is None else np.where(active, value, old)
            elif value is None and not active.any():
                continue
            self.lanes.values[name] = value

    def _note_sign(self, each: Instruction) -> None:
        """A counter that jumps over the number that ends its loop changes sides."""
        try:
            a, b = (self.lanes.number(operand) for operand in each.operands[2:4])
        except UnknownError:
            return
        self.signs[each.address] = np.sign(((a - b + (1 << 31)) & MASK) - (1 << 31))

    def _computed(self, each: Instruction) -> dict[str, npt.NDArray[Any]]:
        if each.opcode.startswith(WAITS):
            return {each.operands[0].name: np.ones(LANES, dtype=bool)}
        if each.stem == "ELECT":
            return {each.operands[0].name: np.arange(LANES) == 0}
        return compute(each, self.lanes)

    def _access(self, each: Instruction, active: npt.NDArray[Any]) -> None:
        """Note where a memory instruction reads and writes: the last address first."""
        if each.stem in ("LDC", "ULDC", "LDCU") or not active.any():
            return
        noted = self.accesses.setdefault(each.address, [])
        for operand in each.operands:
            if operand.kind == "address":
                try:
                    noted.append(Access(self.lanes.address(operand), active))
                except UnknownError:
                    noted.append(Access(None, active))

    def _plan(self, block: Block) -> list[Instruction | tuple[str, ...]]:
        """What branches depend on; between, the names of registers that are no longer known."""
        if block.start not in self.plans:
            done = {each.address for each in self.code.control.instructions[block.start]}
            plan: list[Instruction | tuple[str, ...]] = []
            forgotten: dict[str, None] = {}
            for each in block.instructions:
                if each.address in done:
                    plan += [tuple(forgotten), each]
                    forgotten.clear()
                else:
                    forgotten.update(dict.fromkeys(self.code.written[each.address]))
            plan.append(tuple(forgotten))
            self.plans[block.start] = plan
        return self.plans[block.start]
