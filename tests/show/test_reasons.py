"""Reasons in words: what skipped cases lack, and why sides of a comparison have no times."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from support import any_record, toml
from support.golden import TableRegression
from support.tables import outcome

from matbench.model import Skip, SkipKind
from matbench.records.outcome import Outcome
from matbench.show.reasons import kind, outcome_reason, skip_reason


def words(question: str) -> str:
    """A reason to skip, given in TOML."""
    skip = msgspec.convert(toml.read(question), Skip)
    needing = msgspec.structs.replace(skip, needs=f"{skip.needs}\x1b")
    assert "\x1b" not in outcome_reason(outcome("x", status="skipped", skip=needing))
    return skip_reason(skip)


def test_what_is_missing_in_words(table_regression: TableRegression) -> None:
    table_regression("reasons.txt", words)


def skipped(what: SkipKind, needs: str, **given: int | float | str) -> Outcome:
    return outcome("x", status="skipped", skip=Skip(what, needs, given))


@pytest.mark.parametrize(
    "other",
    [
        skipped("limit", "N <= 8", N=9),
        skipped("condition", "N <= 9", N=9),
        skipped("condition", "N <= 8", M=9),
        skipped("condition", "N <= 8", N="9"),
        outcome("x", status="failed", reason="needs N <= 8 (N = 9)"),
    ],
)
def test_those_that_lack_something_else_are_of_another_kind(other: Outcome) -> None:
    assert kind(skipped("condition", "N <= 8", N=9)) != kind(other)
    assert kind(skipped("condition", "N <= 8", N=9)) == kind(skipped("condition", "N <= 8", N=10))


@given(any_record.outcomes())
def test_any_record_has_words(plain: Any) -> None:
    """Also a skip that says less than ours: records may be of other programs."""
    skip = plain.skip
    assert skip is None or isinstance(skip_reason(skip, skip), str)
    assert isinstance(kind(plain), tuple)
