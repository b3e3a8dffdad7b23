"""The test of Mann and Whitney: how likely two samples differ as much by chance alone."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

#: Up to so many samples on either side the chances are counted, if no two values are the same …
_FEW = 8
#: … and if there are not too many pairs to count; the normal approximation is as good there.
_MOST_PAIRS = 100_000


def p_value(a: Vector, b: Vector) -> float:
    """Two-sided; both have samples, and all are numbers.

    As SciPy's `mannwhitneyu` finds it, whose import takes a second.
    """
    m, n = a.size, b.size
    _, place, counts = np.unique(np.concatenate([a, b]), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[place]
    wins = float(ranks[:m].sum()) - m * (m + 1) / 2
    wins = max(wins, m * n - wins)
    if min(m, n) <= _FEW and len(counts) == m + n and m * n <= _MOST_PAIRS:
        return min(1.0, 2 * _tail(int(wins), min(m, n), max(m, n)))
    return min(1.0, 2 * _approximate_tail(wins, m, n, counts.astype(np.float64)))


def _approximate_tail(wins: float, m: int, n: int, counts: Vector) -> float:
    """Of the normal distribution, with its corrections for ties and for whole numbers."""
    total = m + n
    ties = float((counts**3 - counts).sum())
    variance = m * n / 12 * (total + 1 - ties / (total * (total - 1)))
    if not variance > 0:
        return 1.0  # all values are the same
    return math.erfc((wins - m * n / 2 - 0.5) / math.sqrt(2 * variance)) / 2


def _tail(wins: int, m: int, n: int) -> float:
    """The chance of as many wins, or more, among all orders of m and n different values."""
    return _at_least(m, n)[wins] / math.comb(m + n, m)


@lru_cache(maxsize=8)
def _at_least(m: int, n: int) -> list[int]:
    """How many orders have so many wins or more: sums of the Gaussian binomial's coefficients."""
    ways = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for wins in range(m * n, n + i - 1, -1):  # times 1 − q^(n + i)
            ways[wins] -= ways[wins - n - i]
        for wins in range(i, m * n + 1):  # over 1 − q^i
            ways[wins] += ways[wins - i]
    return list(accumulate(reversed(ways)))[::-1]
