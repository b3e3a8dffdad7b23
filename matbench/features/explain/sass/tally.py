"""Adds up what the warps of one block do: instructions, cycles of each resource, and traffic."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from matbench.features.explain.record import NotDerived
from matbench.features.explain.sass import memory, pipes
from matbench.features.explain.sass.effects import STORING, access_bytes, bank_reads, matrix_count
from matbench.features.explain.sass.flow import FlowGraph
from matbench.features.explain.sass.integers import LANES, Numbers
from matbench.features.explain.sass.listing import Instruction
from matbench.features.explain.sass.walk import MOST_INSTRUCTIONS, Access, Walk, WarpPlace, walk

#: Warps of a block that are followed; in larger blocks as many, evenly spread.
_MOST_WARPS = 16
#: Instructions that are carried out for all of them before we give up.
_MOST_INSTRUCTIONS = 30_000_000
_BULK = ("UTMA", "UBLK")


class Tally(NamedTuple):
    """What an average warp of the block does.

    `classes` counts instructions by class, `in_loop` those of the hot `loop`, whose blocks are
    given by their starts. `bank_reads` are the reads of the two register banks. `traffic` is by
    kind: shared or global, loads or stores.
    `path` are the instructions of an ordinary pass of the hot loop, and `costs` the cycles of an
    access by the address of its instruction and by kind. `has_bulk`: some instructions copy whole
    tiles; their bytes are not counted. `unknown` says what could not be derived;
    `is_complete` if every warp was followed to its end.
    """

    warps: int
    classes: dict[str, float]
    bank_reads: tuple[float, float]
    tensor_cycles: float
    traffic: dict[str, memory.Cost]
    loop: frozenset[int]
    passes: float
    in_loop: dict[str, float]
    path: tuple[Instruction, ...]
    costs: dict[int, dict[str, float]]
    has_bulk: bool
    is_complete: bool
    unknown: tuple[NotDerived, ...]

    @property
    def instructions(self) -> float:
        return sum(self.classes.values())

    def cost(self, kind: str) -> memory.Cost:
        """The sum of the kinds of traffic that begin so."""
        costs = [cost for name, cost in self.traffic.items() if name.startswith(kind)]
        return memory.Cost(*map(sum, zip(memory.Cost(), *costs, strict=True)))


def tally(
    code: FlowGraph, block: tuple[int, int, int], grid: tuple[int, int, int],
    constants: Mapping[int, int], tensor_rates: Mapping[str, int],
) -> Tally:  # fmt: skip
    """Follow warps of the block in the middle of the grid, and add up what they do."""
    warps = -(-math.prod(block) // LANES)
    ways = _followed(code, block, grid, constants, warps)
    followed = sum(alike for _, alike in ways)
    traffic, costs, unknown = _accesses(code, ways)

    visits: Counter[int] = Counter()
    for full, alike in ways:
        visits.update({start: alike * count for start, count in full.visits.items()})
    by_block: dict[int, Counter[str]] = {}
    banks, tensor_cycles, has_bulk = [0.0, 0.0], 0.0, False
    for start, count in visits.items():
        counts = by_block[start] = Counter()
        for instruction in code.graph[start].instructions:
            has_bulk |= instruction.stem.startswith(_BULK)
            name = pipes.class_of(instruction)
            if name is None:
                unknown[NotDerived("opcode", instruction.stem)] = None
            counts[name or "not known"] += count
            if name == "tensor":
                work = pipes.tensor_multiply_adds(instruction)
                rate = tensor_rates.get(pipes.tensor_precision(instruction) or "")
                if work and rate:
                    tensor_cycles += count * work / rate
                else:
                    unknown[NotDerived("rate", instruction.opcode)] = None
        for even, odd in bank_reads(code.graph[start].instructions):
            banks[0] += count * even
            banks[1] += count * odd

    def average(counts: Mapping[str, float]) -> dict[str, float]:
        return {name: count / followed for name, count in counts.items()}

    header = _hottest(code, {start: counts.total() for start, counts in by_block.items()})
    loop = code.loops.get(header, frozenset())
    inside, passes = sorted(loop & visits.keys()), visits[header]
    path: list[Instruction] = []
    for start in inside if passes else ():
        path += round(visits[start] / passes) * code.graph[start].instructions
    return Tally(
        warps=warps,
        classes=average(sum(by_block.values(), Counter[str]())),
        bank_reads=(banks[0] / followed, banks[1] / followed),
        tensor_cycles=tensor_cycles / followed,
        traffic={
            kind: memory.Cost(*(value / followed for value in cost))
            for kind, cost in traffic.items()
        },
        loop=loop,
        passes=passes / followed,
        in_loop=average(sum((by_block[start] for start in inside), Counter[str]())),
        path=tuple(path),
        costs=costs,
        has_bulk=has_bulk,
        is_complete=all(full.stopped is None for full, _ in ways),
        unknown=tuple(unknown),
    )


def _followed(
    code: FlowGraph, block: tuple[int, int, int], grid: tuple[int, int, int],
    constants: Mapping[int, int], warps: int,
) -> list[tuple[Walk, int]]:  # fmt: skip
    """A walk of each kind of warp, and how many such warps were followed.

    Warps that take the same way are alike: one of them is followed in full.
    """
    many, left = min(warps, _MOST_WARPS), _MOST_INSTRUCTIONS
    index = (grid[0] // 2, grid[1] // 2, grid[2] // 2)
    ways: dict[frozenset[tuple[int, int]], tuple[Walk, int]] = {}
    for i in range(many):
        place = WarpPlace(block, grid, index, i * warps // many)
        seen = walk(code, place, constants, full_visits=0, most=min(left, MOST_INSTRUCTIONS))
        left -= seen.carried_out
        way = frozenset(seen.visits.items())
        full, alike = ways.pop(way, (seen, 0))
        if not alike and seen.stopped is None:
            full = walk(code, place, constants, most=_MOST_INSTRUCTIONS)
        ways[way] = full, alike + 1
        if seen.stopped is not None:
            break  # the others are not going further
    return list(ways.values())


def _accesses(
    code: FlowGraph, ways: list[tuple[Walk, int]]
) -> tuple[dict[str, memory.Cost], dict[int, dict[str, float]], dict[NotDerived, None]]:
    """The traffic of all warps by kind, the cycles of an access, and what is not known."""
    traffic: defaultdict[str, memory.Cost] = defaultdict(memory.Cost)
    cycles: dict[int, dict[str, float]] = {}
    unknown: dict[NotDerived, None] = {}
    for full, alike in ways:
        if full.stopped is not None:
            unknown[full.stopped] = None
        visited = (
            (instruction, count)
            for start, count in full.visits.items()
            for instruction in code.graph[start].instructions
        )
        unseen = [] if full.stopped is not None else [Access(None, np.zeros(LANES, bool))] * 2
        for instruction, count in visited:
            accesses = full.accesses.get(instruction.address, unseen)
            for kind, part in _parts(instruction, accesses) if accesses else ():
                # Where some visits had inactive lanes only, the rest stand for all.
                known = ((a, active) for a, active in part if a is not None)
                costs = [_cost(instruction, kind, *access) for access in known]
                if not costs:
                    unknown[NotDerived("addresses", instruction.opcode, instruction.address)] = None
                    continue
                for cost in costs:
                    traffic[kind] = traffic[kind].plus(cost, alike * count / len(costs))
                mean = sum(cost.cycles for cost in costs) / len(costs)
                cycles.setdefault(instruction.address, {})[kind] = mean
    return traffic, cycles, unknown


def _hottest(code: FlowGraph, instructions: Mapping[int, int]) -> int:
    """The header of the innermost loop in which most instructions are carried out; -1: of none."""
    loops = code.loops
    work = {header: sum(instructions.get(start, 0) for start in loops[header]) for header in loops}
    innermost = (
        header
        for header in loops
        if work[header]
        and not any(loops[o] < loops[header] and 2 * work[o] > work[header] for o in loops)
    )
    return max(innermost, key=lambda header: work[header], default=-1)


def _parts(instruction: Instruction, accesses: list[Access]) -> Iterator[tuple[str, list[Access]]]:
    """The kinds of access of an instruction; an asynchronous copy writes first, then reads."""
    if instruction.stem == "LDGSTS":
        yield "shared stores", accesses[0::2]
        yield "global loads", accesses[1::2]
        return
    where, _, what = (pipes.class_of(instruction) or "").partition(" ")
    is_bulk = instruction.stem.startswith((*_BULK, "CCTL"))
    if what == "memory" and where != "constant" and not is_bulk:
        stores = instruction.stem in (*STORING, "STSM")
        yield f"{where} {'stores' if stores else 'loads'}", accesses


def _cost(instruction: Instruction, kind: str, addresses: Numbers, active: Numbers) -> memory.Cost:
    if instruction.stem in ("LDSM", "STSM"):
        return memory.matrices(addresses, matrix_count(instruction))
    cost_of = memory.shared if kind.startswith("shared") else memory.global_
    return cost_of(addresses, active, access_bytes(instruction))
