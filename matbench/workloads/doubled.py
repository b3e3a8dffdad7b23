"""Products of float64 matrices, computed with twice the precision of float64."""

from __future__ import annotations

import numpy as np

from matbench.workloads.oracle import Float64

#: This many slices hold all bits of inputs, unless their exponents are far apart.
_MOST_SLICES = 6


def product(A: Float64, B: Float64) -> Float64:
    """A·B, rounded once.

    Inputs are split into slices with so few bits that float64 sums of their products are exact; the
    products of slices are added while keeping each rounding error: K. Ozaki, T. Ogita, S. Oishi and
    S. M. Rump, "Error-free transformations of matrix multiplication by using fast routines of
    matrix multiplication and its applications", Numer. Algorithms 59 (2012).
    """
    K = A.shape[1]
    bits = (53 - max(1, K - 1).bit_length()) // 2
    left, right = _slices(A, bits, axis=1), _slices(B, bits, axis=0)
    high, low = np.zeros((A.shape[0], B.shape[1])), np.zeros((A.shape[0], B.shape[1]))
    # The largest first; terms beyond the break do not change the result.
    pairs = sorted((i + j, i, j) for i in range(len(left)) for j in range(len(right)))
    for order, i, j in pairs:
        if order * bits > 2 * 53 + 8:
            break
        term = left[i] @ right[j]
        total = high + term
        moved = total - high
        low += (high - (total - moved)) + (term - moved)  # Knuth's two-sum
        high = total
    return high + low


def _slices(X: Float64, bits: int, axis: int) -> list[Float64]:
    """X as a sum of matrices whose numbers have `bits` bits, relative to their row's largest.

    `axis` is the one that a product sums over.
    """
    slices: list[Float64] = []
    rest = X
    while len(slices) < _MOST_SLICES and rest.any():
        largest = np.abs(rest).max(axis=axis, keepdims=True)
        exponent = np.frexp(largest)[1]
        unit = np.ldexp(1.0, exponent - bits)  # of the slice's last bit
        slice_ = np.rint(rest / unit) * unit
        slices.append(slice_)
        rest = rest - slice_
    return slices
