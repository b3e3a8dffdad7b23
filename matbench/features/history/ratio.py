"""Ratios of times, and what follows from two of them."""

from __future__ import annotations

import math
from typing import NamedTuple

from matbench.records.comparison import ComparisonRecord


class Ratio(NamedTuple):
    """A ratio of two times, in the middle of its interval."""

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, record: ComparisonRecord) -> Ratio | None:
        """The candidate's time over the baseline's; None if it has no interval."""
        if record.interval is None or record.ratio is None:
            return None
        return cls(record.interval[0], record.ratio, record.interval[1])

    def inverse(self) -> Ratio:
        return Ratio(1 / self.high, 1 / self.middle, 1 / self.low)

    def over(self, other: Ratio) -> Ratio:
        """C over B, of C over A and B over A, which were measured independently.

        Intervals of logarithms are combined by the squares of their widths, as in
        `analysis.statistics.compare_samples`.
        """
        middle = self.middle / other.middle
        below = math.hypot(math.log(self.middle / self.low), math.log(other.high / other.middle))
        above = math.hypot(math.log(self.high / self.middle), math.log(other.middle / other.low))
        return Ratio(middle * math.exp(-below), middle, middle * math.exp(above))
