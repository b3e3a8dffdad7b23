"""The candidates of a search for the fastest parameters."""

from __future__ import annotations

import msgspec

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
