"""Tells devices of the same name apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from matbench.model import DeviceInfo, Problem
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome


def told_apart(
    outcomes: Sequence[Outcome], environments: Sequence[Environment]
) -> tuple[list[Outcome], list[Environment]]:
    """The same, with longer names for devices of one name that measured the same problem.

    Their rows are never ranked together, because cards of one model differ by several percent.
    """
    measured: dict[tuple[str, str, Problem], set[str]] = {}
    for outcome in outcomes:
        measured.setdefault(outcome.case.contest, set()).add(outcome.case.device_id)
    apart = {key[:2] for key, ids in measured.items() if len(ids) > 1}
    names = places(environments)

    def name(backend: str, device: str, device_id: str) -> str:
        is_one_of_several = (backend, device) in apart
        return f"{device} ({names.get(device_id, device_id)})" if is_one_of_several else device

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
            msgspec.structs.replace(environment, devices=tuple(map(of, environment.devices)))
            for environment in environments
        ],
    )


def places(environments: Iterable[Environment]) -> dict[str, str]:
    """`cuda:0` for the UUID of each device; the UUID itself if two devices had that place."""
    place_of = {
        info.identity: info.where for environment in environments for info in environment.devices
    }
    taken = list(place_of.values())
    return {
        identity: place if taken.count(place) == 1 else identity
        for identity, place in place_of.items()
    }
