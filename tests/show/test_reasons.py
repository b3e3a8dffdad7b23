"""Reasons in words: what skipped cases lack, and why sides of a comparison have no times."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from support import any_record
from support.tables import outcome

from matbench.model import Skip, SkipKind
from matbench.records.outcome import Outcome
from matbench.show.reasons import kind, outcome_reason, skip_reason

_GIVEN: dict[str, int | float | str] = {"asked": 2000, "allowed": 1024}


@pytest.mark.parametrize(
    ("skip", "words"),
    [
        (Skip("condition", "N <= 8", {"N": 9}), "needs N <= 8 (N = 9)"),
        (Skip("condition", "1 > 2"), "needs 1 > 2"),
        (Skip("condition", "alpha = 1", {"alpha": 2.5}), "needs alpha = 1 (alpha = 2.5)"),
        (Skip("limit", "max_threads_per_block", _GIVEN),
         "needs 2,000 threads per block; the device allows 1,024"),
        (Skip("limit", "max_grid_y", _GIVEN | {"asked": 1e30}),
         "needs 1e+30 blocks in y; the device allows 1,024"),
        (Skip("limit", "max_shared_bytes_per_block", _GIVEN),
         "needs 2,000 bytes of shared memory per block; the device allows 1,024"),
        (Skip("requirement", "sm_90a", {"device": "sm_75"}), "needs sm_90a; the device is sm_75"),
        (Skip("requirement", "cuda", {"device": "opencl"}), "needs CUDA; this is opencl"),
        (Skip("unavailable", "no library; install it"), "no library; install it"),
        (Skip("argument", "a / 0: no"), "front matter: a / 0: no"),
        (Skip("timeouts", given={"probes": 5, "timeouts": 2}),
         "5 probes skipped after 2 timeouts (see --timeout)"),
        (Skip("pair"), "not compared: the other kernel could not run"),
    ],
)  # fmt: skip
def test_what_is_missing_in_words(skip: Skip, words: str) -> None:
    assert skip_reason(skip) == words
    needing = msgspec.structs.replace(skip, needs=f"{skip.needs}\x1b")
    assert "\x1b" not in outcome_reason(outcome("x", status="skipped", skip=needing))


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
