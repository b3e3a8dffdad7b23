"""Samples and the conditions they were taken under, as a page has them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from matbench.model import Conditions
from matbench.records.outcome import Outcome, Timing


class Series(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The samples of one case of one kind, in microseconds, and the conditions meanwhile."""

    mode: str
    values: list[float]
    sm_mhz: tuple[float | None, ...] = ()
    power_w: tuple[float | None, ...] = ()
    temperature_c: tuple[float | None, ...] = ()
    throttled: tuple[str, ...] = ()


def of(outcomes: list[Outcome]) -> list[list[Series]]:
    """The samples of each outcome, cold before hot."""
    kinds = [
        [(mode, t) for mode, t in (("cold", o.cold), ("hot", o.hot)) if t and t.samples_ns]
        for o in outcomes
    ]
    return [[_series(mode, timing) for mode, timing in found] for found in kinds]


def _series(mode: str, timing: Timing) -> Series:
    during = timing.conditions[1:]
    return Series(
        mode=mode,
        values=[float(f"{ns / 1e3:.5g}") for ns in timing.samples_ns],
        sm_mhz=_known(moment.sm_mhz for moment in during),
        power_w=_known(moment.power_w for moment in during),
        temperature_c=_known(moment.temperature_c for moment in during),
        throttled=_throttled(during),
    )


def _known(values: Iterable[float | None]) -> tuple[float | None, ...]:
    found = tuple(values)
    return found if any(value is not None for value in found) else ()


def _throttled(during: Iterable[Conditions]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for moment in during for reason in moment.throttled))
