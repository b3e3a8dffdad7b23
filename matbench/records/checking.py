"""Checks beyond types: values of one record that contradict each other or are meaningless."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from itertools import pairwise

from matbench import workloads
from matbench.records.blocks import BlockProfile, Timeline
from matbench.records.grade import Grade
from matbench.records.outcome import ErrorCells, Outcome, Timing

#: The relative difference that rounding may cause.
_ROUNDING = 1e-9


def contradiction(record: object) -> str | None:
    """What is wrong with a record, and in which field; None if nothing is."""
    match record:
        case Outcome():
            return next(_of_outcome(record), None)
        case BlockProfile():
            return next(_of_profile(record), None)
        case Grade():
            return next(_of_grade(record), None)
    return None


def _of_outcome(outcome: Outcome) -> Iterator[str]:
    workload = outcome.case.problem.workload
    if workload not in workloads.WORKLOADS:
        yield f"workload {workload!r:.60} is unknown - at `$.case.problem`"
    for name in ("cold", "hot", "blocks"):
        if outcome.status != "measured" and getattr(outcome, name) is not None:
            yield f"a {outcome.status} case cannot have times - at `$.{name}`"
    for name, timing in (("cold", outcome.cold), ("hot", outcome.hot)):
        if timing is not None:
            yield from (f"{what} - at `$.{name}`" for what in _of_timing(timing))
    if isinstance(outcome.error_map, ErrorCells):
        if outcome.status != "wrong":
            yield f"a {outcome.status} case has no wrong elements - at `$.error_map`"
        found = outcome.error_map
        cells = tuple(-(-side // found.step) for side in found.shape)
        if len(found.rows) != cells[0] or {len(row) for row in found.rows} != {cells[1]}:
            yield f"not {cells[0]} rows of {cells[1]} cells - at `$.error_map.rows`"
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


def _of_profile(found: BlockProfile) -> Iterator[str]:
    if any(not bin_.low_us < bin_.high_us for bin_ in found.histogram):
        yield "a bin that does not end above its start - at `$.histogram`"
    each = found.blocks_per_multiprocessor, found.multiprocessors_used, found.resident_median
    if len({figure is None for figure in each}) > 1:
        yield "multiprocessors are only partly known - at `$.multiprocessors_used`"
    if found.counters in ("aligned", "not aligned") and found.counter_offset_ticks is None:
        yield "counters are compared without an offset - at `$.counter_offset_ticks`"
    if found.timeline is not None:
        yield from _of_timeline(found.timeline)


def _of_grade(grade: Grade) -> Iterator[str]:
    found = grade.growth
    if found is not None and len(found.sizes) != len(found.errors):
        yield f"{len(found.errors)} errors for {len(found.sizes)} sizes - at `$.growth`"
    if found is not None and found.slope is not None and not found.sizes:
        yield "a slope without sizes - at `$.growth.sizes`"


def _of_timeline(found: Timeline) -> Iterator[str]:
    names = found.multiprocessors
    if names is not None and len(names) != found.lanes:
        yield f"{len(names)} multiprocessors for {found.lanes} lanes - at `$.timeline`"
    if any(bar.lane >= found.lanes or bar.end_ns < bar.start_ns for bar in found.bars):
        yield "a lane that is not there, or an end before its start - at `$.timeline.bars`"
    if any((a.lane, a.start_ns) > (b.lane, b.start_ns) for a, b in pairwise(found.bars)):
        yield "not in order of lane and start - at `$.timeline.bars`"
    if any(bar.slot >= found.slots for bar in found.bars):
        yield "a slot that is not there - at `$.timeline.bars`"
