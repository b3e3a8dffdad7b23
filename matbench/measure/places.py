"""Describes which rows, columns or terms are meant, in words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def described(member: npt.NDArray[np.bool_], name: str) -> str | None:
    """One run of them, lines at equal distances, or a run of every so many; None if they are in no
    such order."""
    places = np.flatnonzero(member)
    if run := _run(places, name):
        return run
    steps = np.diff(places)
    if places.size > 2 and (steps == steps[0]).all():
        return f"every {_ordinal(int(steps[0]))} {name} from {places[0]} on"
    for period in range(2, member.size // 2 + 1):
        if (member[period:] == member[:-period]).all():
            run = _run(np.flatnonzero(member[:period]), name)
            return f"{run} of every {period}" if run else None
    return None


def _run(places: npt.NDArray[np.int64], name: str) -> str | None:
    """`rows 2–7`, if no place between the first and the last is missing."""
    if places.size == 0 or places[-1] - places[0] + 1 != places.size:
        return None
    return f"{name} {places[0]}" if places.size == 1 else f"{name}s {places[0]}–{places[-1]}"


def _ordinal(number: int) -> str:
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 < number % 100 < 20 else last}"
