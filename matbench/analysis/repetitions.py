"""Cases that several processes measured, one after the other (`run --repeat`).

Medians differ more between processes than the samples of one process suggest: memory lies
elsewhere, clocks and neighbours have changed. One process cannot show that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from matbench.analysis import statistics
from matbench.records.outcome import Outcome, Timing
from matbench.records.resuming import CaseKey, outcome_key


def sets(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """The outcomes of each case, together if they are repetitions of one run.

    A repetition that a set already has begins the next set: the same case in another run.
    """
    groups: list[list[Outcome]] = []
    latest: dict[CaseKey, list[Outcome]] = {}
    for outcome in outcomes:
        key = outcome_key(outcome)._replace(repetition=1)
        known = latest.get(key)
        if known is None or any(outcome.repetition == other.repetition for other in known):
            groups.append(known := [])
            latest[key] = known
        known.append(outcome)
    return groups


def merged(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """One outcome for each set of repetitions."""
    return [merge(repeats) for repeats in sets(outcomes)]


def merge(repeats: Sequence[Outcome]) -> Outcome:
    """The repetition with the median time; its intervals cover the medians of all of them.

    If any repetition is wrong or failed, the first of these.
    """
    if len(repeats) == 1:
        return repeats[0]
    for status in ("wrong", "failed"):
        bad = [outcome for outcome in repeats if outcome.status == status]
        if bad:
            note = f"{status} in {len(bad)} of {len(repeats)} processes"
            return msgspec.structs.replace(bad[0], repetition=1, notes=(note, *bad[0].notes))
    timed = sorted(
        (outcome for outcome in repeats if outcome.median_ns), key=lambda o: o.median_ns or 0.0
    )
    if not timed:
        return repeats[0]
    middle = timed[(len(timed) - 1) // 2]
    medians_ns = [outcome.median_ns or 0.0 for outcome in timed]
    most = medians_ns[-1] / medians_ns[0] - 1
    note = f"{len(timed)} processes, whose medians differ by up to {most:.2%}"
    return msgspec.structs.replace(
        middle,
        cold=_widened(middle.cold, [o.cold for o in timed]),
        hot=_widened(middle.hot, [o.hot for o in timed]),
        repetition=1,
        notes=(*middle.notes, note),
    )


def _widened(timing: Timing | None, others: Sequence[Timing | None]) -> Timing | None:
    """The timing with the samples of all processes, each of which counts as one round, and an
    interval that also covers the median of the processes' medians. The rest is that of its own."""
    every = [(other, other.median_ns) for other in others if other and other.median_ns]
    if timing is None or timing.interval_ns is None or not every:
        return timing
    medians = statistics.median_interval([median_ns for _, median_ns in every])
    ends = *medians, *timing.interval_ns
    return msgspec.structs.replace(
        timing,
        samples_ns=tuple(ns for other, _ in every for ns in other.samples_ns),
        rounds=tuple(len(other.samples_ns) for other, _ in every if other.samples_ns),
        interval_ns=(min(ends), max(ends)),
    )
