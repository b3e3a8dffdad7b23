"""The outcomes of several attempts, processes and devices, as one table has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from matbench.analysis import statistics
from matbench.model import Problem
from matbench.records.environment import Environment
from matbench.records.outcome import CaseRecord, Outcome, Timing


def gathered(
    outcomes: Iterable[Outcome], environments: Sequence[Environment]
) -> tuple[list[Outcome], list[Environment]]:
    """A failed case that was retried once, and so the repetitions of a case; the devices of one
    name that measured the same problem have longer names."""
    kept = without_retried(list(outcomes))
    return told_apart([merge(repeats) for repeats in sets(kept)], environments)


class CaseKey(NamedTuple):
    """Identifies a case: its source, parameters, problem (with inputs and seed) and device.

    `repetition` tells apart the processes that measured it.
    """

    kernel: str
    sha256: str
    params: frozenset[tuple[str, int]]
    contest: tuple[str, str, Problem]
    device_id: str
    repetition: int = 1

    @classmethod
    def from_case(cls, case: CaseRecord, repetition: int = 1) -> CaseKey:
        params = frozenset(case.params.items())
        return cls(case.kernel, case.sha256, params, case.contest, case.device_id, repetition)


def outcome_key(outcome: Outcome) -> CaseKey:
    return CaseKey.from_case(outcome.case, outcome.repetition)


def finished(outcomes: Iterable[Outcome]) -> dict[CaseKey, Outcome]:
    """The cases that a resumed run need not run again.

    Failed cases are run again, because the cause (a deadline, a lost device, memory used by another
    program, a killed worker) may be gone. Those that were interrupted lack rounds.
    """
    whole = (one for one in outcomes if one.status != "failed" and not one.interrupted)
    return {outcome_key(outcome): outcome for outcome in whole}


def without_retried(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Outcomes without those that were measured again; a retry after a failure has a note."""
    kept: list[Outcome] = []
    later: dict[CaseKey, int] = {}
    for outcome in reversed(outcomes):
        key = outcome_key(outcome)
        if key in later and outcome.status == "failed":
            retry = kept[later[key]]
            note = f"an earlier attempt failed: {outcome.reason}"
            kept[later[key]] = msgspec.structs.replace(retry, notes=(*retry.notes, note))
        if key in later and (outcome.status == "failed" or outcome.interrupted):
            continue
        later[key] = len(kept)
        kept.append(outcome)
    return kept[::-1]


# Cases that several processes measured, one after the other (`run --repeat`). Medians differ more
# between processes than the samples of one suggest: memory lies elsewhere, clocks have changed.


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
    timed = sorted((o for o in repeats if o.median_ns), key=lambda o: o.median_ns or 0.0)
    if not timed:
        return repeats[0]
    middle = timed[(len(timed) - 1) // 2]
    medians_ns = [outcome.median_ns or 0.0 for outcome in timed]
    most = medians_ns[-1] / medians_ns[0] - 1
    note = f"{len(timed)} processes, whose medians differ by up to {100 * most:.3g}%"
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


def told_apart(
    outcomes: Sequence[Outcome], environments: Sequence[Environment]
) -> tuple[list[Outcome], list[Environment]]:
    """The same, with longer names for devices of one name that measured the same problem.

    Their rows are never ranked together, because cards of one model differ by several percent.
    """
    measured = {(outcome.case.contest, outcome.case.device_id) for outcome in outcomes}
    devices = Counter(contest for contest, _ in measured)
    apart = {contest[:2] for contest, count in devices.items() if count > 1}
    if not apart:
        return list(outcomes), list(environments)
    names = places(environments)

    def name(backend: str, device: str, device_id: str) -> str:
        is_one_of_several = (backend, device) in apart
        return f"{device} ({names.get(device_id, device_id)})" if is_one_of_several else device

    replace = msgspec.structs.replace
    renamed = []
    for outcome in outcomes:
        case = outcome.case
        device = name(case.backend, case.device, case.device_id)
        renamed.append(replace(outcome, case=replace(case, device=device)))
    about = []
    for environment in environments:
        named = (replace(d, name=name(d.backend, d.name, d.identity)) for d in environment.devices)
        about.append(replace(environment, devices=tuple(named)))
    return sorted(renamed, key=lambda outcome: outcome.case.device), about


def places(environments: Iterable[Environment]) -> dict[str, str]:
    """`cuda:0` for the UUID of each device; the UUID itself if two devices had that place."""
    devices = [device for environment in environments for device in environment.devices]
    place_of = {device.identity: device.where for device in devices}
    taken = Counter(place_of.values())
    return {name: place if taken[place] == 1 else name for name, place in place_of.items()}
