"""Control flow of machine code: basic blocks, natural loops, and what the branches depend on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from matbench.features.explain.sass.effects import results, sources
from matbench.features.explain.sass.listing import CodeListing, Instruction

#: Instructions after which the warp continues elsewhere, or nowhere.
_LEAVES = frozenset({"EXIT", "RET", "BRX", "JMX", "KILL"})
_BRANCHES = frozenset({"BRA", "JMP"})


class BasicBlock(NamedTuple):
    """Instructions that run one after the other; `next` are the starts of blocks that follow."""

    start: int
    instructions: tuple[Instruction, ...]
    next: tuple[int, ...]


class FlowGraph(NamedTuple):
    """A function with its control flow.

    `loops` has the starts of the blocks of each natural loop by that of its header, `control` the
    addresses of the instructions on which branches depend, `written` the names that each
    instruction writes.
    """

    function: CodeListing
    graph: dict[int, BasicBlock]
    loops: dict[int, frozenset[int]]
    control: set[int]
    written: dict[int, tuple[str, ...]]


def code(function: CodeListing) -> FlowGraph:
    """The control flow of a function."""
    graph = blocks(function)
    written = {each.address: results(each)[0] for each in function.instructions}
    return FlowGraph(function, graph, loops(graph), controlling(graph, written), written)


def blocks(function: CodeListing) -> dict[int, BasicBlock]:
    """The basic blocks by their start. A call is followed by its target and by its return."""
    after = [*(instruction.address for instruction in function.instructions[1:]), None]
    ways = list(zip(function.instructions, after, strict=True))
    starts: set[int | None] = {None}
    for instruction, follows in ways:
        if instruction.target is not None or instruction.stem in _LEAVES:
            starts |= {instruction.target, follows}
    graph: dict[int, BasicBlock] = {}
    current: list[Instruction] = []
    for instruction, follows in ways:
        current.append(instruction)
        if follows not in starts:
            continue
        # `BSSY` only names the place where lanes meet again.
        target = instruction.target if instruction.stem != "BSSY" else None
        guard, stops = instruction.guard, instruction.stem in _LEAVES | _BRANCHES
        always = guard is None or (guard.name in ("PT", "UPT") and not guard.inverted)
        conditional = any(operand.kind == "predicate" for operand in instruction.operands)
        goes_on = not stops or not always or (conditional and instruction.target is not None)
        goals = dict.fromkeys([target, follows if goes_on else None])
        following = tuple(goal for goal in goals if goal is not None)
        graph[current[0].address] = BasicBlock(current[0].address, tuple(current), following)
        current = []
    return graph


def loops(graph: dict[int, BasicBlock]) -> dict[int, frozenset[int]]:
    """The natural loops by back edges; those with the same header are one loop."""
    bodies: dict[int, set[int]] = {}
    before: dict[int, list[int]] = {start: [] for start in graph}
    for block in graph.values():
        for goal in block.next:
            before[goal].append(block.start)
    for last, header in _back_edges(graph):
        body = bodies.setdefault(header, {header})
        stack = [last]
        while stack:
            start = stack.pop()
            if start not in body:
                body.add(start)
                stack += before[start]
    return {header: frozenset(body) for header, body in sorted(bodies.items())}


def _back_edges(graph: dict[int, BasicBlock]) -> Iterator[tuple[int, int]]:
    """Branches to a block on the way to them: compilers make no other way into a loop."""
    entry = next(iter(graph))
    seen, path = {entry}, {entry: iter(graph[entry].next)}
    while path:
        start = next(reversed(path))
        goal = next(path[start], None)
        if goal is None:
            del path[start]
        elif goal in path:
            yield start, goal
        elif goal not in seen:
            seen.add(goal)
            path[goal] = iter(graph[goal].next)


def controlling(graph: dict[int, BasicBlock], written: dict[int, tuple[str, ...]]) -> set[int]:
    """The addresses of branches, and of the instructions on which some branch depends.

    Liveness of what branches read, backwards to a fixed point: an instruction counts if something
    it writes is live after it.
    """
    live: dict[int, set[str]] = {start: set() for start in graph}
    before: dict[int, set[str]] = {}
    found: set[int] = set()
    every = (instruction for block in graph.values() for instruction in block.instructions)
    read = {instruction.address: sources(instruction) for instruction in every}
    while live != before:
        before = dict(live)
        for block in reversed(graph.values()):
            alive = set().union(*(live[goal] for goal in block.next))
            for instruction in reversed(block.instructions):
                names = written[instruction.address]
                branches = instruction.target is not None or instruction.stem in _LEAVES
                if branches or not alive.isdisjoint(names):
                    # Lanes that take no part in an election do not look at who won it.
                    if instruction.guard is None or instruction.stem == "ELECT":
                        alive.difference_update(names)
                    alive.update(read[instruction.address])
                    found.add(instruction.address)
            live[block.start] = alive
    return found
