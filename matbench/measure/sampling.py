"""Takes samples until their median is known, with notes on their quality."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from matbench.analysis import statistics
from matbench.errors import CaseError
from matbench.measure.options import Options
from matbench.model import Conditions
from matbench.records.comparison import Comparison
from matbench.records.outcome import Timing

#: How often a case is sampled at most if clocks were unstable, how often clocks are read, and the
#: share by which they may vary.
_MOST_TRIES = 3
_LOOK_AT_CLOCKS_NS = 50_000_000
_CLOCK_TOLERANCE = 0.02
#: The minimum time for taking cold samples of a GPU.
_LEAST_TIME_NS = 30e6

Sampler = Callable[[], float]


def clock(verifying_ns: Callable[[], int]) -> Callable[[], int]:
    """The host's time from now on, without verification, but at least half of all time.

    The limit lets launches that are much shorter than their verification end in time, too.
    """
    began_ns, before_ns = time.perf_counter_ns(), verifying_ns()

    def clock_ns() -> int:
        passed = time.perf_counter_ns() - began_ns
        return max(passed - (verifying_ns() - before_ns), passed // 2)

    return clock_ns


def sample_until_known(
    sample: Sampler,
    seed: int,
    options: Options,
    conditions: Callable[[], Conditions],
    *,
    cold: bool = False,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Timing:
    """Take samples (nanoseconds) until the median is known to the requested uncertainty.

    If a GPU's clocks were throttled or varied meanwhile, up to two more attempts are made. The most
    stable attempt counts, with notes if it was not stable either. `clock` gives the nanoseconds
    that count towards the time limit.
    """
    tries: list[_Try] = []
    while len(tries) < _MOST_TRIES:
        tries.append(_try(sample, options, conditions, cold, clock))
        if not tries[-1].unrest:
            break
    best = min(tries, key=lambda attempt: len(attempt.unrest))
    return msgspec.structs.replace(
        timing_of(best.samples, seed, graph=options.graph and not cold, notes=best.unrest),
        warmups=best.warmups,
        settled=best.stopped == statistics.SETTLED,
        stopped=best.stopped,
        conditions=best.conditions,
        attempts=len(tries),
    )


class _Try(NamedTuple):
    samples: list[float]
    warmups: int
    stopped: str
    conditions: tuple[Conditions, ...]

    @property
    def unrest(self) -> tuple[str, ...]:
        """Notes on a GPU's clocks if they were throttled or varied during sampling."""
        during = self.conditions[1:]  # before the first launch, a GPU is idle
        notes = []
        throttled = sorted({reason for moment in during for reason in moment.throttled})
        if throttled:
            notes.append(f"clocks throttled during sampling: {', '.join(throttled)}")
        clocks = [moment.sm_mhz for moment in during if moment.sm_mhz]
        if clocks and max(clocks) - min(clocks) > _CLOCK_TOLERANCE * max(clocks):
            notes.append(
                f"SM clock varied from {min(clocks):,} to {max(clocks):,} MHz during sampling "
                "(`matbench info` says how to hold it)"
            )
        return tuple(notes)


def _try(
    sample: Sampler,
    options: Options,
    conditions: Callable[[], Conditions],
    cold: bool,
    clock: Callable[[], int],
) -> _Try:
    assert options.uncertainty is not None
    assert options.max_time_s is not None
    before = conditions()
    warmups = [sample()]
    while not statistics.settled_warm_up(warmups):
        warmups.append(sample())
    rule = statistics.StoppingRule(
        precision=options.uncertainty,
        minimum=options.minimum_samples,
        minimum_time_ns=_LEAST_TIME_NS if cold else 0.0,
        maximum_time_ns=options.max_time_s * 1e9,
    )
    samples: list[float] = []
    seen = [before, conditions()]
    started = looked = clock()
    stopped = None
    while stopped is None:
        samples.append(positive(sample()))
        now = clock()
        stopped = rule.decide(samples, now - started)
        if stopped is not None or now - looked > _LOOK_AT_CLOCKS_NS:
            seen.append(conditions())
            looked = now
    return _Try(samples, len(warmups), stopped, tuple(seen))


def sample_in_turns(
    samplers: Sequence[Sampler],
    plan: statistics.ComparisonPlan,
    seed: int,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> tuple[tuple[list[float], list[float]], Comparison]:
    """Samples of a baseline and a candidate, pair by pair, until the plan has a verdict.

    The order within each pair is random, with a seed, so that neither side gains from coming
    second. `clock` gives the nanoseconds that count towards the time limit.
    """
    samples: tuple[list[float], list[float]] = ([], [])
    for sample in (*samplers, *samplers):
        sample()  # warm-up
    started = clock()
    for order in statistics.interleaved_order(plan.looks[-1], seed):
        for which in order:
            samples[which].append(positive(samplers[which]()))
        comparison = plan.decide(*samples, clock() - started)
        if comparison is not None:
            return samples, comparison
    raise AssertionError("a plan ends at its last look")


def timing_of(
    samples: Sequence[float], seed: int, *, graph: bool = False, notes: Sequence[str] = ()
) -> Timing:
    """Samples with their median and its interval; `seed` is that of the inputs."""
    return Timing(
        samples_ns=tuple(samples),
        median_ns=float(np.median(samples)),
        interval_ns=statistics.median_interval(samples),
        graph=graph,
        seed=f"{seed:x}",
        notes=tuple(notes),
    )


def positive(sample_ns: float) -> float:
    """The sample; `CaseError` if the clock did not advance."""
    if not 0 < sample_ns < math.inf:
        raise CaseError("the device's clock did not advance during a launch")
    return sample_ns
