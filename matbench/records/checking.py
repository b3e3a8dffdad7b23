"""What types cannot say: values of one record that contradict each other, or mean nothing."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

import msgspec

from matbench import workloads
from matbench.records.outcome import Outcome, Timing

_MAX_SIZE = 2**63
#: How far rounding may take a number from what it should be.
_ROUNDING = 1e-9


def contradiction(outcome: Outcome) -> str | None:
    """What is wrong with an outcome, and in which field; None when nothing is."""
    return next(_contradictions(outcome), None)


def _contradictions(outcome: Outcome) -> Iterator[str]:
    problem, launch = outcome.case.problem, outcome.case.launch
    for name in ("M", "N", "K"):
        # Sizes whose product has no end would stop whoever computes with it.
        if not 1 <= getattr(problem, name) < _MAX_SIZE:
            yield f"{name} is no size of a matrix - at `$.case.problem`"
    if problem.workload not in workloads.WORKLOADS:
        yield f"workload {problem.workload!r:.60} is unknown - at `$.case.problem`"
    if launch is not None and min(*launch.grid, *launch.block, launch.shared_bytes) < 0:
        yield "a negative count - at `$.case.launch`"
    if outcome.build is not None and outcome.build.resources is not None:
        counts = msgspec.structs.astuple(outcome.build.resources)
        if any(isinstance(count, int) and count < 0 for count in counts):
            yield "a negative count - at `$.build.resources`"
    for name in ("cold", "hot", "blocks"):
        if outcome.status != "measured" and getattr(outcome, name) is not None:
            yield f"a case that is {outcome.status} has no times - at `$.{name}`"
    for name, timing in (("cold", outcome.cold), ("hot", outcome.hot)):
        if timing is not None:
            yield from (f"{what} - at `$.{name}`" for what in _of_timing(timing))
    if outcome.cold is not None and outcome.cold.graph:
        yield "cold samples are not those of a graph - at `$.cold`"


def _of_timing(timing: Timing) -> Iterator[str]:
    samples, median = timing.samples_ns, timing.median_ns
    if median is not None and samples:
        expected = statistics.median(samples)
        if not math.isclose(median, expected, rel_tol=_ROUNDING):
            yield f"median_ns is {median:g}, that of the samples {expected:g}"
    if timing.interval_ns is not None:
        low, high = timing.interval_ns
        if not low <= high:
            yield f"interval_ns is reversed: {low:g} to {high:g}"
        elif median is not None and not (low * (1 - _ROUNDING) <= median <= high * (1 + _ROUNDING)):
            yield f"median_ns {median:g} is outside its interval, {low:g} to {high:g}"
