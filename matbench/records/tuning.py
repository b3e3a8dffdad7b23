"""What a search for the fastest parameters tried, and the winners that later runs take."""

from __future__ import annotations

from typing import Literal

import msgspec

from matbench.model import Problem
from matbench.records.comparison import Comparison
from matbench.records.outcome import Outcome


class SearchSpace(msgspec.Struct, frozen=True, kw_only=True):
    """What there was to try on one problem.

    `combinations` counts all there are, `drawn` those that were looked through for legal ones:
    `candidates` are legal, `refused` are not, `merged` are the same launch as a candidate.
    """

    combinations: int
    drawn: int
    candidates: int
    refused: int
    merged: int = 0


class TuningRecord(msgspec.Struct, frozen=True, tag="tuning", tag_field="type", kw_only=True):
    """One candidate of a search; `comparison` is with the fastest default, timed in turns.

    `median_ratio` is the candidate's median over that of the default, which were not taken at the
    same time. `round` counts how often it went on. A search that was interrupted is not `complete`.
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

    `ratio` is its time over that of the default, by turns; None when it is the default. `tried`
    counts the candidates that were looked at, of `combinations` in all. A search that was
    interrupted is not `complete`. An empty string is not known.
    """

    schema: Literal[1] = 1
    kernel: str
    sha256: str
    backend: str
    device: str
    driver: str = ""
    toolkit: str = ""
    problem: Problem
    params: dict[str, int]
    median_ns: float | None = None
    ratio: float | None = None
    tried: int = 0
    combinations: int = 0
    complete: bool = True
    time: str = ""
