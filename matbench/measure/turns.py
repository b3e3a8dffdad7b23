"""Two cases timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from matbench.analysis.statistics import ComparisonPlan
from matbench.measure import sustained
from matbench.measure.launches import Launches, Times, own_times
from matbench.measure.options import Options
from matbench.measure.repeated import require_same_work
from matbench.measure.sampling import Sampler, clock, sample_in_turns, timing_of
from matbench.measure.sustained import Block, Meter
from matbench.records.comparison import Comparison


class Side(NamedTuple):
    """One of two cases: what samples it, what runs a block, the time of its verification so far,
    and what ends its turns. After blocks, that gets the mean time of a launch."""

    sampler: Callable[[], Sampler]
    block: Callable[[float], Block]
    verifying_ns: Callable[[], int]
    end: Callable[[float | None], object]


def side_of(launches: Launches) -> Side:
    """A side in this process."""

    def end(mean_ns: float | None) -> None:
        if mean_ns is not None:
            require_same_work(launches, mean_ns)
        launches.verify()

    return Side(launches.sampler, launches.block, lambda: launches.verifying_ns, end)


def taken(
    sides: Sequence[Side],
    plan: ComparisonPlan,
    seed: int,
    inputs_seed: int,
    options: Options,
    meter: Meter | None,
    place: Callable[[int], None],
) -> tuple[list[Times], Comparison]:
    """The times of both; with a `meter`, those of sustained launches."""
    means_ns: list[float | None] = [None, None]
    if meter is not None:
        blocks, comparison = sustained.in_turns([side.block for side in sides], plan, seed, meter)
        means_ns = [one.mean_ns for one in blocks]
        times = [Times(hot=timing_of(b.blocks_ns, inputs_seed), sustained=b) for b in blocks]
    else:
        spent = clock(lambda: sum(side.verifying_ns() for side in sides))
        samplers = [side.sampler() for side in sides]
        samples, comparison = sample_in_turns(samplers, plan, seed, spent, place=place)
        times = [own_times(one, options, inputs_seed) for one in samples]
    for side, mean_ns in zip(sides, means_ns, strict=True):
        side.end(mean_ns)
    return times, comparison
