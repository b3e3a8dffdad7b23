"""Reasons in words: what skipped cases lack, and why sides of a comparison have no times."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from support import any_record
from support.tables import compared, outcome

from matbench.model import Skip, SkipKind
from matbench.records.outcome import Outcome
from matbench.show import comparisons, formats
from matbench.show.reasons import comparison_reason, kind, outcome_reason, skip_reason

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


def test_several_that_lack_the_same_are_one_text_with_ranges() -> None:
    sizes = [skipped("condition", "N % T == 0", N=n, T=32) for n in (100, 50, 70)]
    assert len(set(map(kind, sizes))) == 1
    assert outcome_reason(*sizes) == "needs N % T == 0 (N = 50…100, T = 32)"
    launches = [skipped("limit", "max_block_x", asked=n, allowed=1024) for n in (4000, 2000)]
    assert outcome_reason(*launches) == "needs 2,000…4,000 threads in x; the device allows 1,024"


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


def test_failures_are_of_one_kind_if_their_words_are() -> None:
    said = [outcome("x", status="failed", reason=reason) for reason in ("no 1", "no 2", "no 1")]
    assert kind(said[0]) == kind(said[2]) != kind(said[1])
    assert outcome_reason(said[0], said[2]) == "no 1"
    assert outcome_reason(outcome("x")) == ""


def test_each_side_without_times_has_its_reason() -> None:
    done, never = compared(), compared(None, 9000)
    assert comparison_reason(done) == "the whole interval is above 1"
    assert comparison_reason(never) == "shared-row: skipped: needs K * 4 <= 49152 (K = 9000)"
    several = comparison_reason(never, compared(None, 20_000))
    assert several == "shared-row: skipped: needs K * 4 <= 49152 (K = 9000…20000)"
    (row,) = formats.text(comparisons.report([never]), "csv").splitlines()[1:]
    assert "shared-row: skipped: needs K * 4 <= 49152 (K = 9000)" in row


@given(any_record.outcomes())
def test_any_record_has_words(plain: Any) -> None:
    """Also a skip that says less than ours: records may be of other programs."""
    skip = plain.skip
    assert skip is None or isinstance(skip_reason(skip, skip), str)
    assert isinstance(kind(plain), tuple)
