"""Tells devices of the same name apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from matbench.model import Problem
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
    about = [
        replace(
            environment,
            devices=tuple(
                replace(info, name=name(info.backend, info.name, info.identity))
                for info in environment.devices
            ),
        )
        for environment in environments
    ]
    return sorted(renamed, key=lambda outcome: outcome.case.device), about


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
