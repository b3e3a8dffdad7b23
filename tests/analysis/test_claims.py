"""Which claims of a kernel file weaken a check."""

from __future__ import annotations

import pytest

from matbench.analysis import claims
from matbench.records.outcome import Claims


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Claims(precision="tf32"), "inputs rounded to tf32"),
        (Claims(error_constant=8.0), "each product may be off by 8·2⁻²⁴"),
        (Claims(error_constant=0.5), "each product may be off by 0.5·2⁻²⁴"),
        (Claims(exponents=(-12, 15)), "exponents from -12 to 15 only"),
        (Claims(exponents=(-126, 15)), "exponents from -126 to 15 only"),
        (Claims(deterministic=False), "not deterministic"),
        (Claims(accumulator="float16"), "sums in float16"),
        (Claims(accumulator="float32", result="float64", precision="float64"), "sums in float32"),
        (Claims(result="bfloat16"), "C of bfloat16"),
        (Claims(precision="e4m3"), "inputs are e4m3"),
        (Claims(precision="int8", result="int32"), "inputs are int8"),
        (Claims(accumulator="float22"), "sums in float22"),
        (Claims(accumulator="float22", promotes=128), "sums in float22, 128 terms at a time"),
    ],
)
def test_each_claim_that_weakens_a_check_in_words(given: Claims, words: str) -> None:
    assert claims.weakening(given) == (words,)


@pytest.mark.parametrize(
    "given",
    [
        Claims(),
        Claims(precision="float64", result="float64"),
        Claims(accumulator="float64"),
        Claims(accumulator="int32"),
        Claims(scales="rows"),
        Claims(exponents=(-126, 127)),
        Claims(exponents=(-200, 200)),
        Claims(where=("TILE * TILE <= max_threads_per_block", "N % 4 == 0", "ldc % 32 == 0")),
    ],
)
def test_a_condition_or_what_is_usual_weakens_nothing(given: Claims) -> None:
    assert claims.weakening(given) == ()


def test_conditions_on_sizes() -> None:
    texts = ("N % 4 == 0", "ldc % 32 == 0", "stride_a > 1000", "M * N <= max_threads_per_block")
    constants = ("TILE * TILE <= max_threads_per_block", "BM % TM == 0", "KN < NM")
    found = claims.conditions(Claims(where=(*constants, *texts)))
    assert [claim.declared for claim in found] == [*texts]
    assert found[0] == ("where", "N % 4 == 0", "only where N % 4 == 0")


def test_all_claims_of_a_kernel_in_the_order_of_front_matter() -> None:
    given = Claims("tf32", 2.0, (-14, 15), False, ("TILE <= 32", "K <= 64", "M == N"))
    assert claims.weakening(given) == (
        "inputs rounded to tf32",
        "each product may be off by 2·2⁻²⁴",
        "exponents from -14 to 15 only",
        "not deterministic",
    )  # fmt: skip
