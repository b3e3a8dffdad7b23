"""Takes samples until their median is known, with notes on their quality."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from matbench.analysis import statistics
from matbench.bench.options import Options
from matbench.errors import CaseError
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
#: The fewest samples in a later round, so that one outlier does not move its median; one if a
#: launch takes longer. The first round has more: after the checks, a processor is unsteady.
LEAST_SAMPLES = 3
_QUICK_NS = 10e6

#: Launches slower than this are repeated as little as possible.
SLOW_NS = 100e6

Sampler = Callable[[], float]


def sample_until_known(
    sample: Sampler,
    seed: int,
    options: Options,
    conditions: Callable[[], Conditions],
    *,
    cold: bool = False,
    launching_ns: Callable[[], int] = time.perf_counter_ns,
    number: int = 1,
    earlier: Sequence[float] = (),
) -> Timing:
    """Take samples (nanoseconds) until the median is known to the requested uncertainty.

    If a GPU's clocks were throttled or varied meanwhile, up to two more attempts are made. The most
    stable attempt counts, with notes if it was not stable either. `launching_ns`, the host's time
    of launches alone, counts towards the time limit, but at least half of all time: so launches
    that are much shorter than their verification end in time, too.

    If there are several rounds, this is the one with that `number`: all samples count, also those
    `earlier`, but the result has only its own.
    """
    assert options.uncertainty is not None
    assert options.max_time_s is not None
    assert options.rounds is not None
    known_ns = float(np.median(earlier)) if earlier else None
    best: Timing | None = None
    for attempt in range(1, _MOST_TRIES + 1):
        # A GPU is idle before the first round. Each look takes milliseconds.
        idle = [conditions()] if number == 1 else []
        # In later rounds one launch warms up, or none if it is slow.
        warmups = [sample()] if known_ns is None or known_ns < _QUICK_NS else []
        while known_ns is None and not statistics.settled_warm_up(warmups):
            warmups.append(sample())
        launch_ns = known_ns or warmups[-1]
        rule = statistics.StoppingRule(
            precision=options.uncertainty,
            minimum=options.minimum_samples,
            minimum_time_ns=_LEAST_TIME_NS if cold else 0.0,
            maximum_time_ns=options.max_time_s * 1e9,
        )
        if options.rounds > 1:
            least = LEAST_SAMPLES if number > 1 else options.minimum_samples
            rounds = max(number, statistics.rounds_of(launch_ns, options.rounds))
            least = least if launch_ns < _QUICK_NS else 1
            rule = rule.of_round(number, rounds, len(earlier), least)
        samples, during = [*earlier], [conditions()] if number == 1 else []
        began_ns, before_ns = time.perf_counter_ns(), launching_ns()
        looked_ns, stopped = 0, None
        while stopped is None:
            samples.append(positive(sample()))
            passed_ns = time.perf_counter_ns() - began_ns
            spent_ns = max(launching_ns() - before_ns, passed_ns // 2)
            stopped = rule.decide(samples, spent_ns)
            if stopped is not None or spent_ns - looked_ns > _LOOK_AT_CLOCKS_NS:
                during.append(conditions())
                looked_ns = spent_ns
        own, notes = samples[len(earlier) :], unrest(during)
        if best is None or len(notes) < len(best.notes):
            best = msgspec.structs.replace(
                timing_of(own, seed, graph=options.graph and not cold, notes=notes),
                rounds=() if options.rounds == 1 else (len(own),),
                warmups=len(warmups),
                settled=stopped == statistics.SETTLED,
                stopped=stopped,
                conditions=(*idle, *during),
            )
        best = msgspec.structs.replace(best, attempts=attempt)
        if not notes:
            break
    assert best is not None
    return best


def unrest(during: Sequence[Conditions]) -> tuple[str, ...]:
    """Notes on a GPU's clocks if they were throttled or varied during sampling."""
    notes = []
    throttled = sorted({reason for moment in during for reason in moment.throttled})
    if throttled:
        notes.append(f"clocks throttled during sampling: {', '.join(throttled)}")
    clocks = [moment.sm_mhz for moment in during if moment.sm_mhz]
    if clocks and max(clocks) - min(clocks) > _CLOCK_TOLERANCE * max(clocks):
        notes.append(
            f"SM clock varied from {min(clocks):,} to {max(clocks):,} MHz during sampling "
            "(`matbench doctor` says how to hold it)"
        )
    return tuple(notes)


def sample_in_turns(
    samplers: Sequence[Sampler],
    plan: statistics.ComparisonPlan,
    seed: int,
    launching_ns: Callable[[], int] = time.perf_counter_ns,
    *,
    is_warm: bool = False,
    place: Callable[[int], None] | None = None,
) -> tuple[tuple[list[float], list[float]], Comparison]:
    """Samples of a baseline and a candidate, pair by pair, until the plan has a verdict.

    The order within each pair is random, with a seed, so that neither side gains from coming
    second. Time counts as in `sample_until_known`. Unless the device `is_warm`, two samples of each
    are taken before, which do not count. `place` puts data and code at other places, between blocks
    of pairs that it gets the number of.
    """
    samples: tuple[list[float], list[float]] = ([], [])
    for sample in () if is_warm else (*samplers, *samplers):
        sample()
    began_ns, before_ns, starts = time.perf_counter_ns(), launching_ns(), [0]
    for pair, order in enumerate(statistics.interleaved_order(plan.looks[-1], seed)):
        if place is not None and pair == statistics.end_of_block(starts[-1]):
            place(len(starts))
            starts.append(pair)
            for sample in samplers if samples[0][-1] < _QUICK_NS else ():
                sample()  # a warm-up
        for which in order:
            samples[which].append(positive(samplers[which]()))
        passed_ns = time.perf_counter_ns() - began_ns
        spent_ns = max(launching_ns() - before_ns, passed_ns // 2)
        comparison = plan.decide(*samples, spent_ns, starts)
        if comparison is not None:
            return samples, comparison
    raise AssertionError("a plan ends at its last look")


def timing_of(
    samples: Sequence[float], seed: int, *, graph: bool = False, rotating: bool = False,
    notes: Sequence[str] = (),
) -> Timing:  # fmt: skip
    """Samples with their median and its interval; `seed` is that of the inputs."""
    return Timing(
        samples_ns=tuple(samples),
        median_ns=float(np.median(samples)),
        interval_ns=statistics.median_interval(samples),
        graph=graph,
        rotating=rotating,
        seed=f"{seed:x}",
        notes=tuple(notes),
    )


def positive(sample_ns: float) -> float:
    """The sample; `CaseError` if the clock did not advance."""
    if not 0 < sample_ns < math.inf:
        raise CaseError("the device's clock did not advance during a launch")
    return sample_ns
