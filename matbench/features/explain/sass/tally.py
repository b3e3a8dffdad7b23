"""Adds up what the warps of one block do: instructions, cycles of each resource, and traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy.typing as npt

from matbench.features.explain.record import NotDerived
from matbench.features.explain.sass import memory, pipes
from matbench.features.explain.sass.effects import access_bytes, bank_reads, matrix_count
from matbench.features.explain.sass.flow import FlowGraph, Loop
from matbench.features.explain.sass.listing import Instruction
from matbench.features.explain.sass.walk import MOST_INSTRUCTIONS, Access, Walk, WarpPlace, walk

#: Warps of a block that are followed; in larger blocks as many, evenly spread.
_MOST_WARPS = 16
#: Instructions that are carried out for all of them before we give up.
_MOST_INSTRUCTIONS = 30_000_000
_BULK = ("UTMA", "UBLK")
_STORES = ("STG", "ST", "STL", "RED", "REDG", "ATOMG", "ATOM", "STS", "ATOMS", "STSM")


class Tally(NamedTuple):
    """What an average warp of the block does.

    `classes` counts instructions by class, `in_loop` those of the hot loop. `bank_reads` are the
    reads of the two register banks. `traffic` is by kind: shared or global, loads or stores.
    `path` are the instructions of an ordinary pass of the hot loop, and `costs` the cycles of an
    access by the address of its instruction and by kind. `bulk` are the stems of instructions that
    copy whole tiles; their bytes are not counted. `unknown` says what could not be derived;
    `is_complete` if every warp was followed to its end.
    """

    warps: int
    classes: dict[str, float]
    bank_reads: tuple[float, float]
    tensor_cycles: float
    traffic: dict[str, memory.Cost]
    loop: Loop | None
    passes: float
    in_loop: dict[str, float]
    path: tuple[Instruction, ...]
    costs: dict[int, dict[str, float]]
    bulk: frozenset[str]
    is_complete: bool
    unknown: tuple[NotDerived, ...]

    @property
    def instructions(self) -> float:
        return sum(self.classes.values())


def tally(
    code: FlowGraph,
    block: tuple[int, int, int],
    grid: tuple[int, int, int],
    constants: Mapping[int, int],
    tensor_rates: Mapping[str, int],
) -> Tally:
    """Follow warps of the block in the middle of the grid, and add up what they do."""
    x, y, z = block
    warps = -(-x * y * z // 32)
    chosen = sorted({i * warps // min(warps, _MOST_WARPS) for i in range(min(warps, _MOST_WARPS))})
    index = (grid[0] // 2, grid[1] // 2, grid[2] // 2)
    adder = _Adder(code, tensor_rates)
    left = _MOST_INSTRUCTIONS
    for warp in chosen:
        place = WarpPlace(block, grid, index, warp)
        visits = walk(code, place, constants, full_visits=0, most=min(left, MOST_INSTRUCTIONS))
        left -= visits.carried_out
        adder.add(visits, place, constants)
        if visits.stopped is not None:
            break  # the others are not going further
    return adder.tally(warps)


class _Adder:
    def __init__(self, code: FlowGraph, tensor_rates: Mapping[str, int]) -> None:
        self.code = code
        self.tensor_rates = tensor_rates
        self.visits: Counter[int] = Counter()
        self.walks: dict[frozenset[tuple[int, int]], Walk] = {}
        self.traffic: dict[str, memory.Cost] = {}
        self.unknown: dict[NotDerived, None] = {}
        self.costs: dict[tuple[object, ...], memory.Cost] = {}
        self.access_cycles: dict[int, dict[str, float]] = {}
        self.followed = 0

    def add(self, visits: Walk, place: WarpPlace, constants: Mapping[int, int]) -> None:
        """Warps that take the same way are alike: one of them is followed in full."""
        self.followed += 1
        way = frozenset(visits.visits.items())
        if way not in self.walks:
            self.walks[way] = visits
            if visits.stopped is None:
                self.walks[way] = walk(self.code, place, constants, most=_MOST_INSTRUCTIONS)
        full = self.walks[way]
        self.visits.update(full.visits)
        if full.stopped is not None:
            self.unknown[full.stopped] = None
        instructions = {
            instruction.address: (instruction, start)
            for start, count in full.visits.items()
            if count
            for instruction in self.code.graph[start].instructions
        }
        for address, (instruction, start) in instructions.items():
            accesses = full.accesses.get(address)
            if accesses is None and full.stopped is None and any(_parts(instruction, [])):
                self._do_not_know(instruction)
            elif accesses:
                self._access(instruction, accesses, full.visits[start])

    def _access(self, instruction: Instruction, accesses: list[Access], visits: int) -> None:
        for kind, part in _parts(instruction, accesses):
            known = [access for access in part if access.addresses is not None]
            if not known:
                self._do_not_know(instruction)
                continue
            # Where some visits had inactive lanes only, the rest stand for all.
            costs = [self._cost(instruction, kind, access) for access in known]
            for cost in costs:
                before = self.traffic.get(kind, memory.Cost())
                self.traffic[kind] = before.plus(cost, visits / len(known))
            self.access_cycles.setdefault(instruction.address, {})[kind] = sum(
                cost.cycles for cost in costs
            ) / len(costs)

    def _do_not_know(self, instruction: Instruction) -> None:
        self.unknown[NotDerived("addresses", instruction.opcode, instruction.address)] = None

    def _cost(self, instruction: Instruction, kind: str, access: Access) -> memory.Cost:
        """Computed once for accesses that differ by whole lines only, as most do."""
        assert access.addresses is not None
        line = access.addresses.min() // memory.LINE_BYTES * memory.LINE_BYTES
        addresses = access.addresses - line
        key = (instruction.opcode, kind, addresses.tobytes(), access.active.tobytes())
        if key not in self.costs:
            self.costs[key] = _cost(instruction, kind, addresses, access.active)
        return self.costs[key]

    def tally(self, warps: int) -> Tally:
        followed = self.followed
        classes: Counter[str] = Counter()
        banks = [0.0, 0.0]
        tensor_cycles = 0.0
        by_block: dict[int, Counter[str]] = {}
        for start, count in self.visits.items():
            block = self.code.graph[start].instructions
            counts = by_block.setdefault(start, Counter())
            for instruction in block:
                known = pipes.class_of(instruction)
                if known is None:
                    self.unknown[NotDerived("opcode", instruction.stem)] = None
                counts[known or "not known"] += count
                if known == "tensor":
                    tensor_cycles += count * self._tensor(instruction)
            classes.update(counts)
            for even, odd in bank_reads(block):
                banks[0] += count * even
                banks[1] += count * odd
        loop, passes = self._hottest(by_block)
        inside: Counter[str] = Counter()
        for start in loop.blocks if loop is not None else ():
            inside.update(by_block.get(start, {}))
        return Tally(
            warps=warps,
            classes={name: count / followed for name, count in classes.items()},
            bank_reads=(banks[0] / followed, banks[1] / followed),
            tensor_cycles=tensor_cycles / followed,
            traffic={
                kind: memory.Cost(*(value / followed for value in cost))
                for kind, cost in self.traffic.items()
            },
            loop=loop,
            passes=passes / followed,
            in_loop={name: count / followed for name, count in inside.items()},
            path=self._path(loop, passes),
            costs=self.access_cycles,
            bulk=frozenset(
                instruction.stem
                for start in self.visits
                for instruction in self.code.graph[start].instructions
                if instruction.stem.startswith(_BULK)
            ),
            is_complete=all(walk.stopped is None for walk in self.walks.values()),
            unknown=tuple(self.unknown),
        )

    def _path(self, loop: Loop | None, passes: float) -> tuple[Instruction, ...]:
        """The blocks of code that at least every other pass visits, as often as it does."""
        path: list[Instruction] = []
        for start in sorted(loop.blocks if loop is not None else ()):
            path += round(self.visits[start] / passes) * self.code.graph[start].instructions
        return tuple(path)

    def _tensor(self, instruction: Instruction) -> float:
        """Cycles of a multiprocessor's tensor cores."""
        work, precision = (
            pipes.tensor_multiply_adds(instruction),
            pipes.tensor_precision(instruction),
        )
        rate = self.tensor_rates.get(precision or "")
        if work is None or not rate:
            self.unknown[NotDerived("rate", instruction.opcode)] = None
            return 0.0
        return work / rate

    def _hottest(self, by_block: Mapping[int, Counter[str]]) -> tuple[Loop | None, float]:
        """The innermost loop in which most instructions are carried out, and its passes."""
        best: tuple[float, Loop] | None = None
        for loop in self.code.loops:
            inner = any(
                other is not loop and other.blocks < loop.blocks and self.visits[other.header]
                and _work(other, by_block) > 0.5 * _work(loop, by_block)
                for other in self.code.loops
            )  # fmt: skip
            work = _work(loop, by_block)
            if not inner and work and (best is None or work > best[0]):
                best = work, loop
        if best is None:
            return None, 0.0
        return best[1], float(self.visits[best[1].header])


def _work(loop: Loop, by_block: Mapping[int, Counter[str]]) -> float:
    return sum(sum(by_block[start].values()) for start in loop.blocks if start in by_block)


def _parts(instruction: Instruction, accesses: list[Access]) -> Iterator[tuple[str, list[Access]]]:
    """The kinds of access of an instruction; an asynchronous copy writes first, then reads."""
    if instruction.stem == "LDGSTS":
        yield "shared stores", accesses[0::2]
        yield "global loads", accesses[1::2]
        return
    class_name = pipes.class_of(instruction)
    if class_name not in ("shared memory", "global memory", "local memory"):
        return
    if instruction.stem.startswith((*_BULK, "CCTL")):
        return
    kind = "stores" if instruction.stem in _STORES else "loads"
    yield f"{class_name.split()[0]} {kind}", accesses


def _cost(
    instruction: Instruction, kind: str, addresses: npt.NDArray[Any], active: npt.NDArray[Any]
) -> memory.Cost:
    nbytes = access_bytes(instruction)
    if instruction.stem in ("LDSM", "STSM"):
        return memory.matrices(addresses, matrix_count(instruction))
    if kind.startswith("shared"):
        return memory.shared(addresses, active, nbytes)
    return memory.global_(addresses, active, nbytes)
