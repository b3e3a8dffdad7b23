"""Which claims of a kernel file weaken a check, and in which words that is said.

A kernel that claims less precision, a larger error or fewer sizes is judged by that claim, so its
time is no rival for a kernel that is held to everything. All who rank or show go by `weakening`.
"""

from __future__ import annotations

import re

from matbench.records.outcome import Claims

#: The range of binary exponents of float32.
FLOAT32_EXPONENTS = (-126, 127)
_SIZES = re.compile(r"\b[MNK]\b")


def restricts_sizes(condition: str) -> bool:
    """Whether a condition of `where` names a size, and not constants and limits alone."""
    return _SIZES.search(condition) is not None


def narrows_exponents(claims: Claims) -> bool:
    """Whether the claimed range leaves out some of float32's."""
    low, high = claims.exponents or FLOAT32_EXPONENTS
    return low > FLOAT32_EXPONENTS[0] or high < FLOAT32_EXPONENTS[1]


def weakening(claims: Claims) -> tuple[str, ...]:
    """Each claim that makes a check easier to pass, in words; empty for a kernel without any."""
    found = []
    if claims.precision != "float32":
        found.append(f"inputs rounded to {claims.precision}")
    if claims.error_constant > 0:
        found.append(f"each product may lose {claims.error_constant:g} u")
    if claims.exponents is not None and narrows_exponents(claims):
        low, high = claims.exponents
        found.append(f"exponents from {low} to {high} only")
    if not claims.deterministic:
        found.append("not deterministic")
    found += [f"only where {condition}" for condition in filter(restricts_sizes, claims.where)]
    return tuple(found)
