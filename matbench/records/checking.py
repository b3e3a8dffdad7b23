"""What types cannot say: values of one record that contradict each other, or mean nothing."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

import msgspec

from matbench import workloads
from matbench.records.outcome import Outcome, Timing

_MAX_SIZE = 2**63
#: Numbers that may be negative. A block clock can seem to make its launch faster.
_SIGNED = {"params", "seed", "exponents", "temperature_c", "perturbation"}
#: How far rounding may take a number from what it should be.
_ROUNDING = 1e-9


def contradiction(outcome: Outcome) -> str | None:
    """What is wrong with an outcome, and in which field; None when nothing is."""
    return next(_contradictions(outcome), None)


def _contradictions(outcome: Outcome) -> Iterator[str]:
    problem = outcome.case.problem
    for name in ("M", "N", "K"):
        # Sizes whose product has no end would stop whoever computes with it.
        if not 1 <= getattr(problem, name) < _MAX_SIZE:
            yield f"{name} is no size of a matrix - at `$.case.problem`"
    if problem.workload not in workloads.WORKLOADS:
        yield f"workload {problem.workload!r:.60} is unknown - at `$.case.problem`"
    for path, value in _numbers(outcome, "$"):
        if value < -_ROUNDING:
            yield f"{value:g} is negative - at `{path}`"
    for name in ("cold", "hot", "blocks"):
        if outcome.status != "measured" and getattr(outcome, name) is not None:
            yield f"a case that is {outcome.status} has no times - at `$.{name}`"
    for name, timing in (("cold", outcome.cold), ("hot", outcome.hot)):
        if timing is not None:
            yield from (f"{what} - at `$.{name}`" for what in _of_timing(timing))
    if outcome.cold is not None and outcome.cold.graph:
        yield "cold samples are not those of a graph - at `$.cold`"
    if outcome.blocks is not None and outcome.blocks.median_ns == 0:
        yield "a block that takes no time - at `$.blocks.median_ns`"


def _of_timing(timing: Timing) -> Iterator[str]:
    samples, median = timing.samples_ns, timing.median_ns
    if not all(sample > 0 for sample in samples):
        yield "a sample that took no time"
    if median is None:
        return
    if not median > 0:
        yield "a median of no time"
    if samples and not math.isclose(median, statistics.median(samples), rel_tol=_ROUNDING):
        yield f"median_ns is {median:g}, that of the samples {statistics.median(samples):g}"
    if timing.interval_ns is not None:
        low, high = timing.interval_ns
        if not low <= high:
            yield f"interval_ns is reversed: {low:g} to {high:g}"
        if not low * (1 - _ROUNDING) <= median <= high * (1 + _ROUNDING):
            yield f"median_ns {median:g} is outside its interval, {low:g} to {high:g}"


def _numbers(value: Any, path: str) -> Iterator[tuple[str, int | float]]:
    """Every number of a record that may not be negative, and where it stands."""
    if isinstance(value, int | float):
        yield path, value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in _SIGNED:
                yield from _numbers(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, tuple):
        for item in value:
            yield from _numbers(item, path)
