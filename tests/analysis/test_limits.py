"""What a device allows by its clock and its caches."""

from __future__ import annotations

import msgspec
import pytest
from support.h200 import H200
from support.records import outcome

from matbench.analysis import limits
from matbench.model import Arithmetic, Precision
from matbench.records.outcome import Claims


def test_the_clock_allows_lanes_times_multiprocessors() -> None:
    allowed = limits.of_clock(H200, 1980)
    assert allowed == 132 * 128 * 2 * 1.98e9


@pytest.mark.parametrize(("precision", "lanes"), [("float16", 2048), ("tf32", 1024)])
def test_tensor_cores_have_a_rate_of_their_own(precision: Precision, lanes: int) -> None:
    assert limits.of_clock(H200, 1000, precision) == 132 * lanes * 2 * 1e9


def test_a_case_is_limited_by_what_it_multiplies_with() -> None:
    def allowed(arithmetic: Arithmetic | None, claims: Claims) -> float | None:
        return limits.of_case(H200, 1000, outcome(arithmetic=arithmetic, claims=claims).case)

    split, tf32 = Claims(error_constant=8.0), Claims(precision="tf32")
    assert allowed(None, Claims()) == limits.of_clock(H200, 1000)
    assert allowed(None, tf32) == limits.of_clock(H200, 1000, "tf32")
    assert allowed(Arithmetic(3, "float16"), split) == 132 * 2048 * 2 * 1e9 / 3
    assert allowed(Arithmetic(2, "tf32"), tf32) == 132 * 1024 * 2 * 1e9 / 2
    assert allowed(None, split) is None, "how it multiplies is not told"


def test_without_a_clock_or_a_known_architecture_nothing_is_claimed() -> None:
    unknown = msgspec.structs.replace(H200, compute_capability=None)
    assert limits.of_clock(H200, None) is None
    assert limits.of_clock(unknown, 1980) is None


def test_only_what_fits_is_held_by_the_cache_and_only_if_it_was_left_alone() -> None:
    cached = msgspec.structs.replace(H200, properties={"last-level cache (bytes)": 1000})
    assert limits.held_by_cache(cached, 999, "hot")
    assert limits.held_by_cache(cached, 999, "hot graph")
    assert not limits.held_by_cache(cached, 1000, "hot")
    assert not limits.held_by_cache(cached, 999, "cold")
    assert not limits.held_by_cache(H200, 999, "hot"), "its cache is not known"
