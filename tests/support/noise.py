"""Samples of a known kind: times with noise of unit scale."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Shape = int | tuple[int, int]


def autocorrelated(rng: np.random.Generator, shape: Shape, phi: float = 0.7) -> Vector:
    """AR(1) with unit variance."""
    from scipy.signal import lfilter  # which takes a second to import

    steps = rng.normal(0, math.sqrt(1 - phi**2), shape)
    return np.asarray(lfilter([1], [1, -phi], steps, axis=-1))


def times(noise: Vector, sigma: float, unit_ns: float = 1e6) -> Vector:
    return unit_ns * np.maximum(1 + sigma * noise, 0.1)
