"""Sustained speed, clock and power: launches back to back until the device is steady, and then
for as long as requested.

The launches of a block take turns on sets of buffers that fill the last-level cache twice, each
with inputs that the kernel has not seen before; all are verified after the last. At the end,
`checks.require_same_work` finds a kernel that skips work because those of a set have not changed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from matbench.analysis.statistics import ComparisonPlan
from matbench.backends.protocol import Backend
from matbench.bench.loop import sample_in_turns
from matbench.model import Conditions
from matbench.records.comparison import Comparison
from matbench.records.outcome import Sustained

#: The blocks of one case that count, and the most before them.
_BLOCKS = 5
_MOST_WARM_UPS = 2 * _BLOCKS
#: The length of a block in a comparison, in seconds.
BLOCK_S = 1.0
#: NVIDIA's guidelines for measuring matrix products (CUTLASS' documentation): how long the device
#: warms up, and the fewest launches that count. How long a block of these takes, and the fewest.
_GUIDED_WARM_UP_S, _GUIDED_LAUNCHES = 3.0, 1001
_GUIDED_BLOCK_S, _GUIDED_BLOCKS = 0.4, 9
#: For how long launches are counted, by the host's clock, though they are fewer then; and how many
#: times as long as it should be the warm-up may take by that clock.
_GUIDED_MOST_S = 20.0
_MOST_OF_WARM_UP = 10
#: How much the mean time of a launch, the clock and the power may differ between two blocks of a
#: steady device, as shares, and its temperature, in degrees.
_TIME_TOLERANCE = 0.01
_CLOCK_TOLERANCE = 0.01
_POWER_TOLERANCE = 0.02
_WARMER_C = 1
#: How often the energy counter is read, and after how many times the rest.
_READING_S = 0.02
_READINGS = 5
#: A counter counts in steps of up to a tenth of a second: for how long it must count.
_LEAST_COUNTED_S = 2.0
_LEAST_COUNTED_IDLE_S = 1.0
#: For how long the energy of the idle device is counted, and the time before it.
_IDLE_S = 1.5
_SETTLE_S = 1.0


class Block(NamedTuple):
    """Launches without a pause: when, by the host's clock, how many, and the mean time of one."""

    began_ns: int
    ended_ns: int
    launches: int
    mean_ns: float

    @property
    def launched_ns(self) -> float:
        return self.launches * self.mean_ns


class Readings(NamedTuple):
    """The mean clock and power, the last temperature, and all that limited the clock meanwhile."""

    sm_mhz: float | None
    power_w: float | None
    temperature_c: int | None
    throttled: tuple[str, ...]


class Meter:
    """What a device says of itself while it works, read by a thread of its own; `idle_w` is its
    power while nothing runs on it, in watts."""

    def __init__(self, backend: Backend, idle_w: float | None) -> None:
        self.backend = backend
        self.idle_w = idle_w
        self._conditions: list[tuple[int, Conditions]] = []
        self._energy: list[tuple[int, float]] = []  # whenever it changed
        self._counted_j: float | None = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read from now on, until the end of the block."""
        ended = threading.Event()

        def read() -> None:
            count = 0
            while not ended.wait(_READING_S):
                self._read(with_conditions=count % _READINGS == 0)
                count += 1

        with ThreadPoolExecutor(1) as thread:
            reading = thread.submit(read)
            try:
                yield
            finally:
                ended.set()
            reading.result()

    def _read(self, *, with_conditions: bool) -> None:
        counted_j = self.backend.energy_j()
        now_ns = time.perf_counter_ns()
        if counted_j is not None and counted_j != self._counted_j is not None:
            self._energy.append((now_ns, counted_j))
        self._counted_j = counted_j
        if with_conditions:
            self._conditions.append((now_ns, self.backend.conditions()))

    def power_w(self, spans: Sequence[tuple[int, int]], least_s: float) -> float | None:
        """The mean power over the spans; None if the counter counted for less than `least_s`."""
        used_j = counted_s = 0.0
        for began_ns, ended_ns in spans:
            counts = [(at, value) for at, value in self._energy if began_ns <= at <= ended_ns]
            if len(counts) > 1:
                (first_ns, first_j), (last_ns, last_j) = counts[0], counts[-1]
                used_j += last_j - first_j
                counted_s += (last_ns - first_ns) / 1e9
        return used_j / counted_s if counted_s >= least_s else None

    def during(self, blocks: Sequence[Block]) -> Readings:
        """What was read while these blocks ran."""
        spans = [(block.began_ns, block.ended_ns) for block in blocks]
        read = [now for at, now in self._conditions if any(a <= at <= b for a, b in spans)]
        degrees = [now.temperature_c for now in read if now.temperature_c is not None]
        return Readings(
            _mean(now.sm_mhz for now in read),
            _mean(now.power_w for now in read),
            degrees[-1] if degrees else None,
            tuple(sorted({reason for now in read for reason in now.throttled})),
        )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def idle_w(backend: Backend) -> float | None:
    """The power of the device while nothing runs on it, in watts; takes seconds to measure."""
    if backend.energy_j() is None:
        return None
    meter = Meter(backend, None)
    backend.synchronize()
    time.sleep(_SETTLE_S)
    began_ns = time.perf_counter_ns()
    with meter.reading():
        time.sleep(_IDLE_S)
    return meter.power_w([(began_ns, time.perf_counter_ns())], _LEAST_COUNTED_IDLE_S)


def blocks_of(run: Callable[[float], Block], seconds: float | None, meter: Meter) -> Sustained:
    """The blocks of one case, which take so many seconds together, once the device is steady;
    without `seconds`, as NVIDIA's guidelines ask: a longer warm-up, and over 1,000 launches."""
    count, launches, warm_up_s = _GUIDED_BLOCKS, _GUIDED_LAUNCHES, _GUIDED_WARM_UP_S
    if seconds is not None:
        count, launches, warm_up_s = _BLOCKS, 0, 0.0
    block = partial(run, _GUIDED_BLOCK_S if seconds is None else seconds / count)
    with meter.reading():
        (warm_ups,) = _warmed_up([block], meter, warm_up_s)
        blocks = [block() for _ in range(count)]
        while sum(b.launches for b in blocks) < launches and _taken_s(blocks) <= _GUIDED_MOST_S:
            blocks.append(block())
        return _summary(warm_ups, blocks, meter)


def in_turns(
    runs: Sequence[Callable[[float], Block]], plan: ComparisonPlan, seed: int, meter: Meter
) -> tuple[list[Sustained], Comparison]:
    """The blocks of a baseline and a candidate in turns, as many pairs as the plan has."""
    blocks: list[list[Block]] = [[] for _ in runs]

    def sample(run: Callable[[float], Block], own: list[Block]) -> float:
        own.append(run(BLOCK_S))
        return own[-1].mean_ns

    with meter.reading():
        warm_ups = _warmed_up([partial(run, BLOCK_S) for run in runs], meter)
        samplers = [partial(sample, run, own) for run, own in zip(runs, blocks, strict=True)]
        _, comparison = sample_in_turns(samplers, plan, seed, is_warm=True)
    pairs = zip(warm_ups, blocks, strict=True)
    return [_summary(before, own, meter) for before, own in pairs], comparison


def _warmed_up(
    runs: Sequence[Callable[[], Block]], meter: Meter, least_s: float = 0.0
) -> list[list[Block]]:
    """The blocks of each kernel, in turns, for at least so long: until its last two are alike, at
    most the limit. What checks calls of a function takes longer than these."""
    blocks = [[run()] for run in runs]

    def is_short(own: Sequence[Block]) -> bool:
        launched_s = sum(block.launched_ns for block in own) / 1e9
        return launched_s < least_s and _taken_s(own) < _MOST_OF_WARM_UP * least_s

    while is_short(blocks[0]) or (
        len(blocks[0]) < _MOST_WARM_UPS and not all(_is_steady(own, meter) for own in blocks)
    ):
        for own, run in zip(blocks, runs, strict=True):
            own.append(run())
    return blocks


def _taken_s(blocks: Sequence[Block]) -> float:
    """How long they took by the host's clock."""
    return sum(block.ended_ns - block.began_ns for block in blocks) / 1e9


def _is_steady(blocks: Sequence[Block], meter: Meter) -> bool:
    """Whether time, clock, power and temperature were the same in the last two blocks."""
    if len(blocks) < 2:
        return False
    before, last = blocks[-2:]
    was, now = meter.during([before]), meter.during([last])
    return (
        _are_close(before.mean_ns, last.mean_ns, _TIME_TOLERANCE)
        and _are_close(was.sm_mhz, now.sm_mhz, _CLOCK_TOLERANCE)
        and _are_close(was.power_w, now.power_w, _POWER_TOLERANCE)
        and (now.temperature_c or 0) <= (was.temperature_c or 0) + _WARMER_C
    )


def _are_close(one: float | None, other: float | None, tolerance: float) -> bool:
    """Whether they differ by no more than that share; what is not known does not differ."""
    return one is None or other is None or abs(one - other) <= tolerance * max(one, other)


def _summary(warm_ups: Sequence[Block], blocks: Sequence[Block], meter: Meter) -> Sustained:
    """What the blocks after the warm-up show."""
    launched_ns = sum(block.launched_ns for block in blocks)
    launches = sum(block.launches for block in blocks)
    seen = meter.during(blocks)
    return Sustained(
        blocks_ns=tuple(block.mean_ns for block in blocks),
        mean_ns=launched_ns / launches,
        launches=launches,
        duration_s=launched_ns / 1e9,
        warm_up_s=sum(block.launched_ns for block in warm_ups) / 1e9,
        steady=_is_steady(warm_ups, meter),
        sm_mhz=seen.sm_mhz,
        temperature_c=seen.temperature_c,
        power_w=meter.power_w([(one.began_ns, one.ended_ns) for one in blocks], _LEAST_COUNTED_S),
        idle_w=meter.idle_w,
        throttled=seen.throttled,
    )
