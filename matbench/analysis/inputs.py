"""How the time of a case depends on the distribution of its inputs.

A GPU at its power limit may run faster on some inputs than on others. Their times are not taken in
turns, so only a difference beyond both intervals and a margin counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from matbench.model import Inputs
from matbench.records.outcome import Outcome

_MARGIN = 1.02


class Faster(NamedTuple):
    """The inputs with which a case is faster, and by what factor; `is_sustained`: over seconds."""

    inputs: Inputs
    factor: float
    is_sustained: bool


def faster_inputs(outcomes: Iterable[Outcome]) -> dict[int, list[Faster]]:
    """For each outcome, by its `id`, the inputs that make the same case fastest, if others do."""
    alike: dict[object, list[Outcome]] = {}
    for outcome in outcomes:
        case = outcome.case
        problem = msgspec.structs.replace(case.problem, inputs="uniform", seed=0)
        params = tuple(case.params.items())
        key = case.backend, case.device, case.device_id, case.sha256, case.kernel, params, problem
        alike.setdefault((*key, outcome.mode), []).append(outcome)
    return {
        id(outcome): list(_faster(outcome, together))
        for together in alike.values()
        if len({outcome.case.problem.inputs for outcome in together}) > 1
        for outcome in together
    }


def _faster(outcome: Outcome, others: Iterable[Outcome]) -> Iterator[Faster]:
    for is_sustained in (False, True):
        own = _time(outcome, is_sustained=is_sustained)
        timed = [
            (*time, other.case.problem.inputs)
            for other in others
            if (time := _time(other, is_sustained=is_sustained)) is not None
        ]
        if own is not None and timed:
            (own_ns, own_low_ns, _), (best_ns, _, high_ns, inputs) = own, min(timed)
            if high_ns < own_low_ns and own_ns > _MARGIN * best_ns:
                yield Faster(inputs, own_ns / best_ns, is_sustained)


def _time(outcome: Outcome, *, is_sustained: bool) -> tuple[float, float, float] | None:
    """A time and the ends of its interval, in nanoseconds."""
    timing, sustained = outcome.timing, outcome.sustained
    if is_sustained and sustained is not None:
        return sustained.mean_ns, min(sustained.blocks_ns), max(sustained.blocks_ns)
    if is_sustained or timing is None or not timing.median_ns or timing.interval_ns is None:
        return None
    return timing.median_ns, *timing.interval_ns
