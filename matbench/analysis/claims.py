"""Which claims of a kernel file weaken a check, and how they are worded.

A kernel that claims less precision or a larger error passes weaker checks, so its time is not
ranked with those of kernels without claims. Rankings and tables both use `weakening`. A condition
on sizes or resources weakens nothing: it says when a kernel runs, not how its result is judged.
"""

from __future__ import annotations

import functools
from typing import Literal, NamedTuple

from matbench.model import EIGHT_BITS, INTEGERS
from matbench.records.outcome import Claims

Key = Literal[
    "precision", "error_constant", "exponents", "deterministic", "where", "accumulator", "result"
]

#: The range of binary exponents of float32.
FLOAT32_EXPONENTS = (-126, 127)


class Weakening(NamedTuple):
    """One claim: its key in front matter, its declaration in the file, and its meaning."""

    key: Key
    declared: str
    words: str


def weakenings(claims: Claims) -> list[Weakening]:
    """Each claim on arithmetic that makes a check easier to pass, in the order of front matter."""
    relaxed = []
    if claims.precision not in ("float32", "float64"):
        are = "are" if claims.precision in (*EIGHT_BITS, *INTEGERS) else "rounded to"
        words = f"inputs {are} {claims.precision}"
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
    if claims.accumulator not in (None, "float64", "int32", result):
        declared = f'accumulator = "{claims.accumulator}"'
        words = f"sums in {claims.accumulator}"
        if claims.promotes is not None:
            words += f", {claims.promotes:,} terms at a time"
        relaxed.append(Weakening("accumulator", declared, words))
    if claims.result in ("float16", "bfloat16"):
        relaxed.append(Weakening("result", f"C of {claims.result}", f"C of {claims.result}"))
    return relaxed


@functools.cache
def weakening(claims: Claims) -> tuple[str, ...]:
    """The meanings of these claims; empty for a kernel without claims."""
    return tuple(claim.words for claim in weakenings(claims))
