"""Devices of the same name: which are told apart, and by how much they differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from matbench import workloads
from matbench.model import DeviceInfo
from matbench.records.environment import Environment
from matbench.records.outcome import CaseRecord, Outcome, TimingMode


def told_apart(
    outcomes: Sequence[Outcome], environments: Sequence[Environment]
) -> tuple[list[Outcome], list[Environment]]:
    """The same, with longer names for devices of one name that measured the same problem.

    Their rows are never ranked together, because cards of one model differ by several percent.
    """
    measured: dict[tuple[object, ...], set[str]] = {}
    for outcome in outcomes:
        case = outcome.case
        if case.device_id:
            problem = case.backend, case.device, case.problem
            measured.setdefault(problem, set()).add(case.device_id)
    apart = {key[:2] for key, ids in measured.items() if len(ids) > 1}
    names = places(environments)

    def name(backend: str, device: str, device_id: str) -> str:
        known = (backend, device) in apart and device_id
        return f"{device} ({names.get(device_id, device_id)})" if known else device

    def of(info: DeviceInfo) -> DeviceInfo:
        return msgspec.structs.replace(info, name=name(info.backend, info.name, info.identity))

    def renamed(outcome: Outcome) -> Outcome:
        case = outcome.case
        shown = name(case.backend, case.device, case.device_id)
        return msgspec.structs.replace(outcome, case=msgspec.structs.replace(case, device=shown))

    if not apart:
        return list(outcomes), list(environments)
    return (
        sorted(map(renamed, outcomes), key=lambda outcome: outcome.case.device),
        [
            msgspec.structs.replace(each, devices=tuple(map(of, each.devices)))
            for each in environments
        ],
    )


def places(environments: Iterable[Environment]) -> dict[str, str]:
    """`cuda:0` for the UUID of each device; the UUID itself if two devices had that place."""
    found = {
        info.identity: info.where for environment in environments for info in environment.devices
    }
    taken = list(found.values())
    return {
        identity: place if taken.count(place) == 1 else identity
        for identity, place in found.items()
    }


@dataclass(frozen=True)
class CardSpread:
    """The medians of a case on several devices of one name, by their identities."""

    case: CaseRecord
    mode: TimingMode | None
    medians_ns: dict[str, float]

    @property
    def fastest_ns(self) -> float:
        return min(self.medians_ns.values())

    @property
    def spread(self) -> float:
        """How much longer the slowest took than the fastest, as a share."""
        return max(self.medians_ns.values()) / self.fastest_ns - 1


def spreads(outcomes: Iterable[Outcome], *, fastest: bool = False) -> list[CardSpread]:
    """The cases that several devices of one name measured, the least work first.

    With `fastest`, each kernel and problem only with the parameters that were fastest on any.
    """
    found: dict[tuple[object, ...], dict[str, Outcome]] = {}
    for outcome in outcomes:
        case = outcome.case
        if outcome.status == "measured" and outcome.median_ns and case.device_id:
            where = case.backend, case.device, case.problem, case.kernel, case.sha256, outcome.mode
            params = tuple(case.params.items())
            found.setdefault((*where, params), {})[case.device_id] = outcome
    every = {
        key: CardSpread(
            next(iter(each.values())).case,
            next(iter(each.values())).mode,
            {device_id: outcome.median_ns or 0.0 for device_id, outcome in each.items()},
        )
        for key, each in found.items()
        if len(each) > 1
    }
    ordered = sorted(every, key=lambda key: (_work(every[key]), every[key].fastest_ns))
    if fastest:
        ordered = list({key[:-1]: key for key in reversed(ordered)}.values())[::-1]
    return [every[key] for key in ordered]


def _work(each: CardSpread) -> int:
    problem = each.case.problem
    return workloads.of(problem).work(problem)
