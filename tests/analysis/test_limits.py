"""What a device allows by its clock and its caches."""

from __future__ import annotations

import msgspec
import pytest
from support.h200 import H200

from matbench.analysis import limits
from matbench.model import Precision


def test_the_clock_allows_lanes_times_multiprocessors() -> None:
    allowed = limits.of_clock(H200, 1980)
    assert allowed == 132 * 128 * 2 * 1.98e9


@pytest.mark.parametrize(("precision", "lanes"), [("float16", 2048), ("tf32", 1024)])
def test_tensor_cores_have_a_rate_of_their_own(precision: Precision, lanes: int) -> None:
    assert limits.of_clock(H200, 1000, precision) == 132 * lanes * 2 * 1e9


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
