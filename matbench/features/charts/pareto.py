"""The cases that no other is both faster and more accurate than."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from matbench.analysis.ranking import time_ns
from matbench.records.outcome import Outcome

_Key = TypeVar("_Key")


def front(outcomes: Iterable[tuple[_Key, Outcome]]) -> list[_Key]:
    """The keys of those cases, fastest first; what has no time or no error is not among them."""
    known = [
        (time, outcome.max_rel_err, key)
        for key, outcome in outcomes
        if (time := time_ns(outcome)) is not None and outcome.max_rel_err is not None
    ]
    keys: list[_Key] = []
    least = float("inf")
    for _, error, key in sorted(known, key=lambda case: case[:2]):
        if error < least:
            keys.append(key)
            least = error
    return keys
