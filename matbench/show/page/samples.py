"""Samples and the conditions they were taken under, packed for a page."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import msgspec
import numpy as np

from matbench.model import Conditions
from matbench.records.outcome import Outcome, Timing


class Series(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The samples of one case of one kind: base64 of little-endian float32, in microseconds.

    Conditions are those before and during sampling.
    """

    mode: str
    packed: str
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
    with np.errstate(over="ignore"):
        kept = (np.array(timing.samples_ns) / 1e3).astype("<f4")
    during = timing.conditions[1:]
    return Series(
        mode=mode,
        packed=base64.b64encode(kept.tobytes()).decode("ascii"),
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
