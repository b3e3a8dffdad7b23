"""How long the resident warps of a multiprocessor take for a pass of the hot loop.

Counting the cycles of each resource sees no waiting. Here the instructions of a pass are started
one by one, each as soon as these rules allow:

- each of four schedulers starts one instruction per cycle, of the warp of its last one if that is
  ready, else of the oldest that is. After an instruction a warp pauses for the cycles that the
  encoding says, and it waits for the counters that the next one names (Z. Jia et al. 2018, as in
  `listing.py`);
- the registers of an instruction are read within three cycles, one of each bank per cycle, or else
  it holds up its scheduler; memory instructions do not, but up to five queue at each scheduler
  (R. Huerta et al., *Analyzing Modern NVIDIA GPU Cores*, arXiv 2503.20481, for an RTX A6000);
- accesses to shared memory are served in order, in the cycles that `memory.py` gives. So are the
  lines of asynchronous copies, one per cycle;
- what is loaded comes after the latency of shared memory or of the L1 cache (W. Luo et al.,
  *Benchmarking and Dissecting the Nvidia Hopper GPU Architecture*, arXiv 2402.13499).

All else takes no time: misses of caches, copies on their way, what global loads and stores take
from shared memory, other latencies, conversions and special functions, barriers after the last
arrival, and fetching instructions. So the result is nearly a lower bound, but no proof of one:
another order of the warps might be faster. Some of the rules were chosen because they agree with
measurements on compute capability 9.0; docs/explain.md says which, and how well they agree.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from matbench.features.explain.sass.effects import bank_reads
from matbench.features.explain.sass.listing import Instruction
from matbench.features.explain.sass.pipes import RATES, SCHEDULERS, class_of

#: Cycles in which the registers of an instruction are read; memory instructions that queue.
_WINDOW, _QUEUE = 3, 5
#: Cycles until what is loaded can be used, by compute capability: shared memory, L1 cache.
LATENCIES: dict[tuple[int, int], tuple[int, int]] = {(9, 0): (29, 40)}
#: Passes until the warps have drifted apart, and those that are timed.
_FIRST, _TIMED = 4, 6
_MOST_STARTED = 250_000
_NEVER = 1 << 60
_MEMORY = ("shared memory", "global memory", "local memory")
#: Pipes of a scheduler that do not take an instruction every cycle.
_PIPES = ("integer and logic", "integer multiply", "float64")


class WaitStep(NamedTuple):
    """What one instruction of a pass needs.

    Reads of the `even` and the `odd` bank of registers. Its `pipe` takes the next instruction
    `interval` cycles later. A memory instruction takes `data` cycles of shared memory and `lines`
    of the L1 cache, and what it loads sets counter `sets` `latency` cycles later. The instruction
    `waits` for counters itself. After it, the warp pauses for `stall` cycles.
    """

    even: int = 0
    odd: int = 0
    pipe: int = 0
    interval: int = 0
    is_memory: bool = False
    data: float = 0.0
    lines: float = 0.0
    latency: int = 0
    stall: int = 1
    sets: int | None = None
    waits: tuple[int, ...] = ()
    is_barrier: bool = False


def steps(
    path: Sequence[Instruction],
    costs: Mapping[int, Mapping[str, float]],
    capability: tuple[int, int],
) -> list[WaitStep]:
    """The steps of a pass; `costs` are the cycles of memory instructions, by address and kind."""
    rates, latencies = RATES[capability], LATENCIES[capability]
    intervals = dict(zip(_PIPES, (rates.alu, rates.imad, rates.fp64), strict=True))
    path_steps = []
    for instruction, banks in zip(path, bank_reads(path), strict=True):
        control, kind = instruction.control, class_of(instruction) or ""
        cost = costs.get(instruction.address, {})
        is_shared, copies = kind == "shared memory", instruction.stem == "LDGSTS"
        reads = (0, 0) if kind == "special and conversion" else banks
        loads = kind in _MEMORY and instruction.stem.startswith(("LD", "ATOM")) and not copies
        path_steps.append(
            WaitStep(
                *reads,
                pipe=_PIPES.index(kind) if kind in _PIPES else 0,
                interval=round(SCHEDULERS / intervals[kind]) if kind in _PIPES else 0,
                is_memory=kind in _MEMORY,
                data=sum(cost.values()) if is_shared else 0.0,
                lines=cost.get("global loads", 0.0) if copies else 0.0,
                latency=latencies[0 if is_shared else 1] if loads else 0,
                stall=max(1, control.stall),
                sets=control.write_barrier,
                waits=tuple(i for i in range(6) if control.waits >> i & 1),
                is_barrier=instruction.stem == "BAR" and "ARV" not in instruction.modifiers,
            )
        )
    return path_steps


def pass_cycles(path: Sequence[WaitStep], warps: int, blocks: int) -> float:
    """Cycles of a pass of all warps of the resident blocks, `warps` each."""
    multiprocessor = _Multiprocessor(path, warps, blocks)
    a_pass = len(path) * warps * blocks
    timed = max(1, min(_TIMED, _MOST_STARTED // a_pass - _FIRST))
    begin: float = multiprocessor.until(_FIRST * a_pass, 0)
    return (multiprocessor.until((_FIRST + timed) * a_pass, begin) - begin) / timed


@dataclass(eq=False)
class _Warp:
    block: int
    scheduler: int
    next: int = 0
    ready: float = 0
    counters: list[float] = field(default_factory=lambda: [0.0] * 6)


@dataclass(eq=False)
class _Scheduler:
    """`look` is the next cycle at which one of its warps may start an instruction."""

    warps: list[_Warp]
    last: _Warp
    look: float = 0
    even_free: float = 0
    odd_free: float = 0
    pipes: list[float] = field(default_factory=lambda: [0.0] * len(_PIPES))
    queue: deque[float] = field(default_factory=deque)


class _Multiprocessor:
    def __init__(self, path: Sequence[WaitStep], warps: int, blocks: int) -> None:
        self.path, self.block_warps = path, warps
        # Warps go to the schedulers in turn.
        resident = [_Warp(i // warps, i % SCHEDULERS) for i in range(warps * blocks)]
        self.schedulers = [
            _Scheduler(resident[number::SCHEDULERS], first)
            for number, first in enumerate(resident[:SCHEDULERS])
        ]
        self.arrived: list[list[_Warp]] = [[] for _ in range(blocks)]
        self.data_free: float = 0
        self.lines_free: float = 0
        self.started = 0

    def until(self, started: int, now: float) -> float:
        """The cycle in which so many instructions have been started."""
        while True:
            for scheduler in self.schedulers:
                if scheduler.look <= now:
                    scheduler.look = self._look(scheduler, now)
            if self.started >= started:
                return now
            now = min(scheduler.look for scheduler in self.schedulers)

    def _look(self, scheduler: _Scheduler, now: float) -> float:
        """Start an instruction if one can be; when to look again."""
        soonest: float = _NEVER
        for warp in (scheduler.last, *scheduler.warps):
            at = warp.ready
            if at <= now:
                step = self.path[warp.next]
                at = warp.ready = max([at, *(warp.counters[i] for i in step.waits)])
                if step.interval:
                    at = max(at, scheduler.pipes[step.pipe])
                if step.is_memory:
                    at = max(at, _turn(scheduler.queue, now))
                if at <= now:
                    even = max(scheduler.even_free, now) + step.even
                    odd = max(scheduler.odd_free, now) + step.odd
                    late = max(even, odd) - now - max(_WINDOW, step.even, step.odd)
                    if late > 0 and not step.is_memory:
                        return now + late
                    scheduler.even_free, scheduler.odd_free = even, odd
                    scheduler.last = warp
                    self._start(warp, step, scheduler, now)
                    return now + 1
            soonest = min(soonest, at)
        return soonest

    def _start(self, warp: _Warp, step: WaitStep, scheduler: _Scheduler, now: float) -> None:
        self.started += 1
        warp.next = (warp.next + 1) % len(self.path)
        warp.ready = now + step.stall
        if step.interval:
            scheduler.pipes[step.pipe] = now + step.interval
        begin = now
        if step.is_memory:
            begin = max(self.lines_free, now)
            self.lines_free = begin + step.lines
            if step.data:
                begin = max(self.data_free, begin)
                self.data_free = begin + step.data
            scheduler.queue.append(begin)
        if step.sets is not None and step.latency:
            done = begin + max(step.data - 1, 0) + step.latency
            warp.counters[step.sets] = max(warp.counters[step.sets], done)
        if step.is_barrier:
            # The last warp of a block to arrive lets the others go on in the next cycle.
            arrived = self.arrived[warp.block]
            arrived.append(warp)
            if len(arrived) < self.block_warps:
                warp.ready = _NEVER
                return
            for other in arrived[:-1]:
                other.ready = now + 1
                waiting = self.schedulers[other.scheduler]
                waiting.look = min(waiting.look, now + 1)
            arrived.clear()


def _turn(queue: deque[float], now: float) -> float:
    """When a scheduler can take one more memory instruction: those served have left its queue."""
    while queue and queue[0] <= now:
        queue.popleft()
    return queue[0] if len(queue) >= _QUEUE else now
