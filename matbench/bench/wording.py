"""Which of the rows, columns or terms something is about, in words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Member = npt.NDArray[np.bool_]


def run(member: Member, name: str) -> str | None:
    """`rows 2–7`, if these are all."""
    places = np.flatnonzero(member)
    if places.size == 0 or places[-1] - places[0] + 1 != places.size:
        return None
    return f"{name} {places[0]}" if places.size == 1 else f"{name}s {places[0]}–{places[-1]}"


def periodic(member: Member, name: str) -> str | None:
    """`every 3rd row from 1 on`, or `rows 2–7 of every 8`; the last ones may be cut off."""
    starts, ends = np.flatnonzero(np.diff(member, prepend=False, append=False)).reshape(-1, 2).T
    period = int(np.diff(starts).min(initial=member.size))
    first = np.resize(member[:period], member.size)
    if starts.size < 2 or starts[0] >= period or (first != member).any():
        return None
    if ends[0] - starts[0] == 1 < starts.size - 1:
        return f"every {_ordinal(period)} {name} from {starts[0]} on"
    return f"{run(member[:period], name)} of every {period}"


def _ordinal(number: int) -> str:
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 < number % 100 < 20 else last}"
