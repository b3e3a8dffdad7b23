"""A candidate against a baseline: their outcomes, and the comparison of their samples."""

from __future__ import annotations

from typing import Literal

import msgspec

from matbench.model import Count
from matbench.records.outcome import Amount, Factor, Outcome

Verdict = Literal["FASTER", "SLOWER", "SAME", "UNDECIDED"]


class Comparison(msgspec.Struct, frozen=True):
    """Two sets of samples compared; None for a number that they do not allow.

    `ratio` is median(candidate) / median(baseline), `interval` its confidence interval. `samples`
    counts (baseline, candidate), `looks` counts the interim analyses, including this one.

    Samples that were not taken in turns: `processes` counts those that took them, and `allowance`
    is the share by which the interval is wider on both sides, because runs of the same code differ;
    if they are not `comparable`, because their environments differ, no interval decides.
    """

    ratio: Factor | None
    interval: tuple[Factor, Factor] | None
    verdict: Verdict
    looks: Count
    samples: tuple[Count, Count]
    reason: str
    processes: tuple[Count, Count] | None = None
    allowance: Amount = 0.0
    comparable: bool = True


class ComparisonRecord(
    msgspec.Struct, frozen=True, tag="comparison", tag_field="type", kw_only=True
):
    """Two cases timed in turns, or one case in two record files; times are in the outcomes.

    The names distinguish the sides: kernels, files or versions of a file. Without a `comparison`,
    one of the outcomes has no samples, and its reason says why.
    """

    baseline_name: str
    candidate_name: str
    baseline: Outcome
    candidate: Outcome
    comparison: Comparison | None
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict | None:
        return self.comparison.verdict if self.comparison is not None else None

    @property
    def ratio(self) -> float | None:
        return self.comparison.ratio if self.comparison is not None else None

    @property
    def interval(self) -> tuple[float, float] | None:
        return self.comparison.interval if self.comparison is not None else None
