"""Checks beyond types: values of one record that contradict each other or are meaningless."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from matbench import workloads
from matbench.records.outcome import Outcome, Timing

#: The relative difference that rounding may cause.
_ROUNDING = 1e-9


def contradiction(outcome: Outcome) -> str | None:
    """What is wrong with an outcome, and in which field; None if nothing is."""
    return next(_contradictions(outcome), None)


def _contradictions(outcome: Outcome) -> Iterator[str]:
    workload = outcome.case.problem.workload
    if workload not in workloads.WORKLOADS:
        yield f"workload {workload!r:.60} is unknown - at `$.case.problem`"
    for name in ("cold", "hot", "blocks"):
        if outcome.status != "measured" and getattr(outcome, name) is not None:
            yield f"a {outcome.status} case cannot have times - at `$.{name}`"
    for name, timing in (("cold", outcome.cold), ("hot", outcome.hot)):
        if timing is not None:
            yield from (f"{what} - at `$.{name}`" for what in _of_timing(timing))
    if outcome.cold is not None and outcome.cold.graph:
        yield "cold samples cannot come from a graph - at `$.cold`"


def _of_timing(timing: Timing) -> Iterator[str]:
    samples, median = timing.samples_ns, timing.median_ns
    if median is not None and samples:
        expected = statistics.median(samples)
        if not math.isclose(median, expected, rel_tol=_ROUNDING):
            yield f"median_ns is {median:g}, but the median of the samples is {expected:g}"
    if timing.interval_ns is not None:
        low, high = timing.interval_ns
        if not low <= high:
            yield f"interval_ns is reversed: {low:g} to {high:g}"
        elif median is not None and not (low * (1 - _ROUNDING) <= median <= high * (1 + _ROUNDING)):
            yield f"median_ns {median:g} is outside its interval {low:g} to {high:g}"
