"""Which claims of a kernel file weaken a check, and how they are worded.

A kernel that claims less precision, a larger error or fewer sizes passes weaker checks, so its time
is not ranked with those of kernels without claims. Rankings and tables both use `weakening`.
"""

from __future__ import annotations

import functools
import re
from typing import Literal, NamedTuple

from matbench.records.outcome import Claims

Key = Literal[
    "precision", "error_constant", "exponents", "deterministic", "where", "accumulator", "result"
]

#: The range of binary exponents of float32.
FLOAT32_EXPONENTS = (-126, 127)
_SIZES = re.compile(r"\b(?:[MNK]|ld[abc]|stride_[abc])\b")


class Weakening(NamedTuple):
    """One claim: its key in front matter, its declaration in the file, and its meaning."""

    key: Key
    declared: str
    words: str


def restricts_sizes(condition: str) -> bool:
    """Whether a condition of `where` names a size, not only constants and limits."""
    return _SIZES.search(condition) is not None


def weakenings(claims: Claims) -> list[Weakening]:
    """Each claim that makes a check easier to pass, in the order of front matter."""
    relaxed = []
    if claims.precision not in ("float32", "float64"):
        words = f"inputs rounded to {claims.precision}"
        relaxed.append(Weakening("precision", f'precision = "{claims.precision}"', words))
    if claims.error_constant > 0:
        words = f"each product may be off by {claims.error_constant:g}·2⁻²⁴"
        declared = f"error_constant = {claims.error_constant:g}"
        relaxed.append(Weakening("error_constant", declared, words))
    low, high = claims.exponents or FLOAT32_EXPONENTS
    if low > FLOAT32_EXPONENTS[0] or high < FLOAT32_EXPONENTS[1]:
        words = f"exponents from {low} to {high} only"
        relaxed.append(Weakening("exponents", f"exponents = [{low}, {high}]", words))
    if not claims.deterministic:
        relaxed.append(Weakening("deterministic", "deterministic = false", "not deterministic"))
    result = "float64" if claims.result == "float64" else "float32"
    if claims.accumulator not in (None, "float64", result):
        declared = f'accumulator = "{claims.accumulator}"'
        relaxed.append(Weakening("accumulator", declared, f"sums in {claims.accumulator}"))
    if claims.result in ("float16", "bfloat16"):
        relaxed.append(Weakening("result", f"C of {claims.result}", f"C of {claims.result}"))
    conditions = filter(restricts_sizes, claims.where)
    return [*relaxed, *(Weakening("where", text, f"only where {text}") for text in conditions)]


@functools.cache
def weakening(claims: Claims) -> tuple[str, ...]:
    """The meanings of these claims; empty for a kernel without claims."""
    return tuple(claim.words for claim in weakenings(claims))
