"""The candidates of a search for the fastest parameters, and the winners that later runs use."""

from __future__ import annotations

from typing import Literal

import msgspec

from matbench.model import Problem
from matbench.records.comparison import Comparison
from matbench.records.outcome import Outcome


class SearchSpace(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters that could be tried on one problem.

    `combinations` counts all, `drawn` those that were examined. Of these, `candidates` are legal,
    `refused` are not, and `merged` are the same launch as a candidate.
    """

    combinations: int
    drawn: int
    candidates: int
    refused: int
    merged: int = 0


class TuningRecord(msgspec.Struct, frozen=True, tag="tuning", tag_field="type", kw_only=True):
    """One candidate of a search; `comparison` is with the fastest default, timed in turns.

    `median_ratio` is the candidate's median over the default's, which were not timed in turns.
    `round` is the last round that it reached. A search that was interrupted is not `complete`.
    """

    outcome: Outcome
    round: int
    is_best: bool = False
    is_default: bool = False
    complete: bool = True
    median_ratio: float | None = None
    comparison: Comparison | None = None
    tried: int
    space: SearchSpace


class Tuned(msgspec.Struct, frozen=True, tag="tuned", tag_field="type", kw_only=True):
    """The parameters that won for one kernel source on one device and problem.

    `ratio` is its time over the default's, timed in turns; None if it is the default. `tried`
    counts the candidates that were timed, of `combinations` in all. A search that was interrupted
    is not `complete`.
    """

    schema: Literal[1]
    kernel: str
    sha256: str
    backend: str
    device: str
    driver: str
    toolkit: str
    problem: Problem
    params: dict[str, int]
    median_ns: float | None
    ratio: float | None
    tried: int
    combinations: int
    complete: bool
    time: str
